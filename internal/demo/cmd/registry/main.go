// Command registry serves the demo's registry on loopback, for the tutorial
// docs/tutorials/publish.md and for trying. It asks nobody for a password.
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
	listen := flag.String("listen", "127.0.0.1:5001", "loopback `address`; port 0 picks a free one")
	dir := flag.String("dir", "build/registry", "`folder` for what is pushed, made if missing")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "registry: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo.ServeRegistry(ctx, *listen, *dir, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}
