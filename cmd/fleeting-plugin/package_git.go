package main

import (
	"context"
	"os/exec"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// gitMetadata reads the commit and the origin of the repository in the working
// folder. Without git, or outside a repository, it finds nothing.
func gitMetadata(ctx context.Context) packager.Metadata {
	origin := webAddress(git(ctx, "config", "--get", "remote.origin.url"))
	return packager.Metadata{Source: origin, URL: origin}
}

func git(ctx context.Context, args ...string) string {
	out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // G204: fixed arguments
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// webAddress turns a remote's address into a link without credentials; what is
// none, such as a folder, into nothing.
func webAddress(remote string) string {
	remote = strings.TrimSuffix(remote, ".git")
	if rest, ok := strings.CutPrefix(remote, "ssh://"); ok {
		_, rest, found := strings.Cut(rest, "@")
		if !found {
			return ""
		}
		return "https://" + rest
	}
	if rest, ok := strings.CutPrefix(remote, "git@"); ok {
		return "https://" + strings.Replace(rest, ":", "/", 1)
	}
	scheme, rest, ok := strings.Cut(remote, "://")
	if !ok || (scheme != "https" && scheme != "http") {
		return ""
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 && at < strings.IndexByte(rest+"/", '/') {
		rest = rest[at+1:]
	}
	return scheme + "://" + rest
}
