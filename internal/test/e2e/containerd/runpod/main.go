// Command runpod runs one Pod on a container runtime, with the CRI requests that
// a kubelet sends for it, and says how its containers ended:
//
//	runpod -socket containerd.sock -dir /tmp/pod objects.json
//
// The file holds Kubernetes objects one after the other: one Pod, and the
// ConfigMaps and Secrets that it mounts. Containers run one by one, in order, and
// the first that fails is the last; each writes DIR/logs/NAME, in the format of
// CRI. The Pod is on the host's network, and is gone when runpod ends. There is
// no more of Kubernetes in it than what the Pods of our documentation use, and a
// field that it does not know is an error.
//
// The module around it also pins the containerd that the end-to-end tests build,
// so that nothing else of ours depends on containerd.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "runpod:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("runpod", flag.ContinueOnError)
	socket := flags.String("socket", "", "the runtime's socket")
	dir := flags.String("dir", "", "folder for volumes and logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *socket == "" || *dir == "" || flags.NArg() != 1 {
		return errors.New("want -socket, -dir and a file of objects")
	}
	content, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	objects, err := decode(content)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runtime, err := dial(*socket, filepath.Join(*dir, "logs"))
	if err != nil {
		return err
	}
	mounts, err := makeVolumes(filepath.Join(*dir, "volumes"), objects)
	if err != nil {
		return err
	}
	ended, err := runtime.runPod(ctx, objects.pod, mounts)
	encoder := json.NewEncoder(stdout)
	for _, one := range ended {
		err = errors.Join(err, encoder.Encode(one))
	}
	return errors.Join(err, runtime.close())
}
