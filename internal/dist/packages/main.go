// Command packages makes the .deb and .rpm packages of our executables with
// nfpm:
//
//	packages -o build/packages -version 1.2.3 -arch amd64 NAME=FILE ...
//
// A package holds one executable, in /usr/bin, the licences of all that is linked
// into it, from -notices/FILE.txt, where Debian and its minimal images keep them
// (/usr/share/doc/NAME/copyright), and what lies in -share/NAME, such as its manual page, below /usr/share. The time in it
// comes from SOURCE_DATE_EPOCH. The command has a module of its own, so that
// nothing else of ours depends on nfpm.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the format
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// options are what all packages of a run have in common.
type options struct {
	out, version, arch, notices, share string
	made                               time.Time
}

func run(args []string, getenv func(string) string, stdout io.Writer) error {
	opts := options{made: time.Unix(0, 0)}
	flags := flag.NewFlagSet("packages", flag.ContinueOnError)
	flags.StringVar(&opts.out, "o", "build/packages", "folder to write to")
	flags.StringVar(&opts.version, "version", "", "version, without v")
	flags.StringVar(&opts.arch, "arch", "amd64", "architecture, as Go names it")
	flags.StringVar(&opts.notices, "notices", "build/dist/notices", "folder with the licences in each FILE, as its name and .txt")
	flags.StringVar(&opts.share, "share", "", "folder with files for /usr/share, in a folder for each NAME")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if opts.version == "" || flags.NArg() == 0 {
		return errors.New("a version and at least one NAME=FILE are needed")
	}
	if epoch := getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		opts.made = time.Unix(seconds, 0)
	}
	if err := os.MkdirAll(opts.out, 0o750); err != nil {
		return err
	}
	for _, arg := range flags.Args() {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%s: want NAME=FILE", arg)
		}
		for _, format := range []string{"deb", "rpm"} {
			path, err := write(opts, format, name, file)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", format, name, err)
			}
			fmt.Fprintln(stdout, path)
		}
	}
	return nil
}

// descriptions of the executables, by name.
func describe(name string) (string, error) {
	switch name {
	case "fleeting-plugin":
		return "Installs and publishes plugins for GitLab Runner's fleeting\n" +
			"Resolves, verifies, installs, packages, signs and mirrors plugins in OCI registries.", nil
	case "fleeting-plugin-openstack":
		return "Lets GitLab Runner create and delete servers on OpenStack\n" +
			"A plugin for the runner's docker-autoscaler and instance executors.", nil
	default:
		return "", fmt.Errorf("no description of %s", name)
	}
}

// write makes one package and returns its path.
func write(opts options, format, name, file string) (path string, err error) {
	description, err := describe(name)
	if err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	shared, err := sharedFiles(filepath.Join(opts.share, name))
	if err != nil {
		return "", err
	}
	owned := func(mode os.FileMode) *files.ContentFileInfo {
		return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: opts.made}
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: name, Arch: opts.arch, Platform: "linux", Version: opts.version, Section: "admin", Priority: "optional",
		Maintainer: "The maintainers of fleeting-plugin-openstack", Description: description,
		Homepage: "https://github.com/radome-io/fleeting-plugin-openstack", License: "MIT", MTime: opts.made,
		Overridables: nfpm.Overridables{RPM: nfpm.RPM{BuildHost: "localhost"}, Contents: files.Contents{
			{Source: file, Destination: "/usr/bin/" + name, FileInfo: owned(0o755)},
			{Source: filepath.Join(opts.notices, filepath.Base(file)+".txt"), Destination: "/usr/share/doc/" + name + "/copyright", FileInfo: owned(0o644)},
		}},
	})
	for target, source := range shared {
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: "/usr/share/" + target, FileInfo: owned(0o644)})
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	path = filepath.Join(opts.out, packager.ConventionalFileName(info))
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(packager.Package(info, out), out.Close())
}

// sharedFiles are the files below dir, if there is one: their paths in it, with
// slashes, to their paths.
func sharedFiles(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == dir && errors.Is(err, fs.ErrNotExist) {
			return filepath.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = path
		return err
	})
	return found, err
}
