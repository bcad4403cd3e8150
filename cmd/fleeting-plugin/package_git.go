package main

import (
	"cmp"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// gitMetadata reads the origin of the repository in the working folder. Without
// git, or outside a repository, it finds nothing.
func gitMetadata(ctx context.Context) packager.Metadata {
	origin := webAddress(git(ctx, "config", "--get", "remote.origin.url"))
	return packager.Metadata{Source: origin, URL: origin}
}

// commitTime asks the repository in the working folder when a commit was made,
// that of its checkout if none is named; the zero time if it does not know.
func commitTime(ctx context.Context, revision string) time.Time {
	seconds, err := strconv.ParseInt(git(ctx, "log", "-1", "--no-show-signature", "--format=%ct", "--end-of-options", cmp.Or(revision, "HEAD"), "--"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
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
