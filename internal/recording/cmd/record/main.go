// Command record runs a command on a terminal and writes what it showed as a
// recording and as a picture:
//
//	record -o docs/recordings/demo -title "The main job" COMMAND [ARG...]
//
// See the target pictures of the Makefile. It runs on Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/radome-io/fleeting-plugin-openstack/internal/recording"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	cast := recording.Cast{}
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	out := flags.String("o", "", "path of the files to write, without .cast and .svg")
	flags.StringVar(&cast.Title, "title", "", "what is shown")
	flags.IntVar(&cast.Width, "width", 110, "width of the terminal")
	flags.IntVar(&cast.Height, "height", 26, "height of the terminal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("usage: record -o FILE [flags] COMMAND [ARG...]")
	}
	cmd := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...) // #nosec G204 -- the caller's command
	cast, err := recording.Record(ctx, cmd, cast)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, cast.Text())
	}
	cast = cast.Paced()
	return errors.Join(
		os.WriteFile(*out+".cast", []byte(cast.String()), 0o644), // #nosec G306 -- documentation
		os.WriteFile(*out+".svg", []byte(cast.SVG()), 0o644),     // #nosec G306 -- documentation
	)
}
