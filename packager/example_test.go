package packager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// buildExample builds a plugin to dist/linux/amd64/plugin in a new folder.
func buildExample(version string) (folder string, remove func()) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	folder = filepath.Join(dir, "dist")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X main.version="+version,
		"-o", filepath.Join(folder, "linux", "amd64", "plugin"), "./testdata/plugin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v\n%s", err, out)
	}
	return folder, func() { _ = os.RemoveAll(dir) }
}

// A whole release: a key pair, the executables of a folder, a registry, and a
// look at what is published.
func Example() {
	dir, remove := buildExample("1.2.3")
	defer remove()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	ctx := context.Background()

	version, err := packager.ParseVersion("v1.2.3")
	if err != nil {
		log.Fatal(err)
	}
	scanned, err := dist.Scan(ctx, dir, dist.Options{})
	if err != nil {
		log.Fatal(err)
	}
	private, _, err := packager.GenerateKeyPair([]byte("password"))
	if err != nil {
		log.Fatal(err)
	}
	signer, err := packager.KeySigner(private, []byte("password"), packager.SigningServices{})
	if err != nil {
		log.Fatal(err)
	}
	repo, err := packager.Connect(strings.TrimPrefix(server.URL, "http://")+"/group/demo", packager.ConnectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	released, err := packager.Release(ctx, scanned, version, repo, packager.ReleaseOptions{Signer: signer})
	if err != nil {
		log.Fatal(err)
	}
	for _, alias := range released.Aliases {
		fmt.Println(alias.Tag, "→", alias.Version)
	}
	report, err := packager.Inspect(ctx, repo, "latest", packager.InspectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Platforms[0].Platform, report.Platforms[0].Version, report.Tags)
	// Output:
	// 1.2 → 1.2.3
	// 1 → 1.2.3
	// latest → 1.2.3
	// linux/amd64 1.2.3 [1.2.3 1.2 1 latest]
}

// Packaging needs no network: the layout can be pushed later, elsewhere.
func ExamplePack() {
	dir, remove := buildExample("1.2.3")
	defer remove()
	ctx := context.Background()
	version, err := packager.ParseVersion("1.2.3")
	if err != nil {
		log.Fatal(err)
	}
	scanned, err := dist.Scan(ctx, dir, dist.Options{})
	if err != nil {
		log.Fatal(err)
	}
	packed, err := packager.Pack(ctx, scanned, version, filepath.Join(filepath.Dir(dir), "layout"), packager.PackOptions{
		Metadata: packager.Metadata{Title: "demo", Licenses: "MIT"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(packed.Version, packed.Platforms[0].Platform)
	// Output: 1.2.3 linux/amd64
}

// What is wrong with the input comes with what to do about it.
func ExampleInputError() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	if err := os.MkdirAll(filepath.Join(dir, "linux", "x86_64"), 0o750); err != nil {
		log.Fatal(err)
	}
	_, err = dist.Scan(context.Background(), dir, dist.Options{})
	if input, ok := errors.AsType[*dist.InputError](err); ok {
		fmt.Println(input.Problem)
		fmt.Println(input.Remedy)
	}
	// Output:
	// is not a platform that plugins are published for
	// rename the folder to linux/amd64
}
