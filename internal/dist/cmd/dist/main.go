// Command dist builds the executables of a release, checks that they can be built
// again, and sums what goes with them. See the targets dist, repro and
// release-files of the Makefile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/dist"
	"github.com/radome-io/fleeting-plugin-openstack/internal/flagtext"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: dist build|repro -version VERSION [flags], dist compare FOLDER FOLDER, dist archives -version VERSION -license FILE FOLDER, or dist sums FOLDER")
	}
	switch args[0] {
	case "build":
		opts, err := options(args, out)
		if err != nil {
			return err
		}
		_, err = dist.Build(ctx, opts)
		return err
	case "repro":
		opts, err := options(args, out)
		if err != nil {
			return err
		}
		return repro(ctx, opts, out)
	case "compare":
		folders, err := folders(args, 2)
		if err != nil {
			return err
		}
		return compare(folders, out)
	case "archives":
		return archives(args, os.Getenv("SOURCE_DATE_EPOCH"))
	case "sums":
		folders, err := folders(args, 1)
		if err != nil {
			return err
		}
		return dist.WriteSums(folders[0])
	default:
		return fmt.Errorf("unknown command %q: use build, repro, compare, archives or sums", args[0])
	}
}

// options reads the flags of a command that builds. Of two flags in a row, the
// first takes the second as its value and the rest is left over, as when a
// shell variable is empty: that must not build something else.
func options(args []string, log io.Writer) (dist.Options, error) {
	opts := dist.Options{Source: ".", Log: log}
	flags := flag.NewFlagSet("dist "+args[0], flag.ContinueOnError)
	platforms := flags.String("platforms", "", "platforms, separated by commas; none means those of a release")
	flags.StringVar(&opts.Out, "o", "build/dist", "folder to write to")
	flags.StringVar(&opts.Version, "version", "", "version of the executables, without v")
	flags.StringVar(&opts.Revision, "revision", "", "commit of the sources")
	flags.BoolVar(&opts.PluginOnly, "plugin-only", false, "leave the distribution tool out")
	if err := flagtext.Parse(flags, args[1:]); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	v, err := version.Parse(opts.Version)
	if err != nil {
		return opts, fmt.Errorf("-version: %w", err)
	}
	if v.Build() != "" {
		return opts, fmt.Errorf("-version %s: a tag in a registry cannot hold the +%s", v, v.Build())
	}
	opts.Platforms, err = dist.ParsePlatforms(*platforms)
	return opts, err
}

// archives writes archives of what lies in a folder; epoch is the time of the files
// in them, in seconds.
func archives(args []string, epoch string) error {
	var opts dist.ArchiveOptions
	flags := flag.NewFlagSet("dist archives", flag.ContinueOnError)
	flags.StringVar(&opts.Version, "version", "", "version of the executables, without v")
	flags.StringVar(&opts.License, "license", "LICENSE", "text of the licence")
	if err := flagtext.Parse(flags, args[1:]); err != nil {
		return err
	}
	if _, err := version.Parse(opts.Version); err != nil {
		return fmt.Errorf("-version: %w", err)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("archives takes 1 folder, not %d arguments", flags.NArg())
	}
	opts.Time = time.Unix(seconds, 0)
	return dist.WriteArchives(flags.Arg(0), opts)
}

// folders reads the arguments of a command that takes want folders and no flags.
func folders(args []string, want int) ([]string, error) {
	flags := flag.NewFlagSet("dist "+args[0], flag.ContinueOnError)
	if err := flagtext.Parse(flags, args[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() != want {
		return nil, fmt.Errorf("%s takes %d folders, not %d arguments", args[0], want, flags.NArg())
	}
	return flags.Args(), nil
}

// compare tells whether two folders hold the same files.
func compare(folders []string, out io.Writer) error {
	var builds [2][]dist.File
	for i, folder := range folders {
		var err error
		if builds[i], err = dist.Files(folder); err != nil {
			return err
		}
	}
	if differ := dist.Diff(builds[0], builds[1]); len(differ) > 0 || len(builds[0]) == 0 {
		return fmt.Errorf("%s and %s differ, or are empty: %s", folders[0], folders[1], strings.Join(differ, ", "))
	}
	fmt.Fprintf(out, "%d files, bit for bit the same\n", len(builds[0]))
	return nil
}

func repro(ctx context.Context, opts dist.Options, out io.Writer) error {
	files, differ, err := dist.Repro(ctx, opts)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return fmt.Errorf("two builds differ in %s", strings.Join(differ, ", "))
	}
	for _, f := range files {
		fmt.Fprintf(out, "%s  %s\n", f.SHA256, f.Path)
	}
	fmt.Fprintf(out, "two builds in different folders: %d files, bit for bit the same\n", len(files))
	return nil
}
