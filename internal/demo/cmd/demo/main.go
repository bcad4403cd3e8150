// Command demo tells the story of internal/demo. See the target demo of the
// Makefile.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/radome-io/fleeting-plugin-openstack/internal/demo"
)

func main() {
	keep := flag.Bool("keep", false, "leave the demo's folder behind")
	source := flag.String("source", ".", "root of the module")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo.Run(ctx, demo.Options{Source: *source, Out: os.Stdout, Environ: os.Environ(), Keep: *keep})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
