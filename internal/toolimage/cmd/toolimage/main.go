// Command toolimage writes the container image of fleeting-plugin to an OCI
// layout:
//
//	toolimage -o build/image -version 1.2.3 linux/amd64=FILE linux/arm64=FILE
//
// The licences of what is in FILE are in -notices/FILE.txt. The time in the image
// comes from SOURCE_DATE_EPOCH.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/toolimage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolimage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	opts := toolimage.Options{Executables: map[string]string{}, Notices: map[string]string{}, Created: time.Unix(0, 0)}
	flags := flag.NewFlagSet("toolimage", flag.ContinueOnError)
	dir := flags.String("o", "build/image", "folder of the layout")
	texts := flags.String("notices", "build/dist/notices", "folder with the licences of what is in each FILE")
	flags.StringVar(&opts.Version, "version", "", "version, without v")
	flags.StringVar(&opts.Revision, "revision", "", "commit of the sources")
	flags.StringVar(&opts.Source, "source", "https://github.com/radome-io/fleeting-plugin-openstack", "link to the code")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, arg := range flags.Args() {
		platform, path, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%s: want PLATFORM=FILE", arg)
		}
		opts.Executables[platform], opts.Notices[platform] = path, filepath.Join(*texts, filepath.Base(path)+".txt")
	}
	license, err := toolimage.CertificatesLicense(ctx)
	if err != nil {
		return err
	}
	opts.CertificatesLicense = license
	if epoch := getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		opts.Created = time.Unix(seconds, 0)
	}
	index, err := toolimage.Build(ctx, *dir, opts)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, index.Digest)
	return nil
}
