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
	"strings"
	"syscall"

	"github.com/radome-io/fleeting-plugin-openstack/internal/dist"
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
		return errors.New("usage: dist build|repro [flags], dist compare FOLDER FOLDER, or dist sums FOLDER")
	}
	opts := dist.Options{Source: ".", Log: out}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	platforms := flags.String("platforms", "", "platforms, separated by commas; none means those of a release")
	flags.StringVar(&opts.Out, "o", "build/dist", "folder to write to")
	flags.StringVar(&opts.Version, "version", "0.0.0-dev", "version of the executables")
	flags.StringVar(&opts.Revision, "revision", "", "commit of the sources")
	flags.BoolVar(&opts.PluginOnly, "plugin-only", false, "leave the distribution tool out")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var err error
	if opts.Platforms, err = dist.ParsePlatforms(*platforms); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		_, err := dist.Build(ctx, opts)
		return err
	case "repro":
		return repro(ctx, opts, out)
	case "compare":
		return compare(flags.Args(), out)
	case "sums":
		if flags.NArg() != 1 {
			return errors.New("sums needs one folder")
		}
		return dist.WriteSums(flags.Arg(0))
	default:
		return fmt.Errorf("unknown command %q: use build, repro, compare or sums", args[0])
	}
}

// compare tells whether two folders hold the same files.
func compare(folders []string, out io.Writer) error {
	if len(folders) != 2 {
		return errors.New("compare needs two folders")
	}
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
