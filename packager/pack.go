package packager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// Packed says what [Pack] made.
type Packed struct {
	// Layout is the folder.
	Layout string `json:"layout"`
	// Version is also the layout's tag.
	Version Version `json:"version"`
	// Digest of the index: what will be published.
	Digest digest.Digest `json:"digest"`
	// Created is the time that the artifact carries; nil if nothing tells one.
	Created *time.Time `json:"created,omitempty"`
	// Platforms in the order of the index.
	Platforms []PlatformResult `json:"platforms"`
	// Warnings are those of the input.
	Warnings []dist.Warning `json:"warnings,omitempty"`
}

// PlatformResult is one platform of an artifact.
type PlatformResult struct {
	// Platform as "os/arch[/variant]".
	Platform string `json:"platform"`
	// Digest of the image manifest.
	Digest digest.Digest `json:"digest"`
	// Layer is the digest of the compressed layer, Size its size in bytes.
	Layer digest.Digest `json:"layer"`
	Size  int64         `json:"size"`
	// Executable is the SHA-256 digest of the plugin itself.
	Executable string `json:"executable"`
	// Files are all that the layer holds.
	Files []LayerFile `json:"files"`
}

// Pack writes the artifact for the executables of a folder to an OCI image layout
// in the folder dir, with bills of materials hanging off it. A layout that is
// there is replaced as a whole at the end; any other folder with content is
// refused with [ErrExists]. Nothing is left behind after an error, and what a
// process left behind that was killed is removed by the next. Of two that write
// the same folder at once, the second waits.
//
// There is no network access. Errors are of [dist.ErrInput], [ErrVersion],
// [ErrExists] or of the file system.
func Pack(ctx context.Context, from *dist.Dist, version Version, dir string, opts PackOptions) (*Packed, error) {
	if err := replaceable(dir); err != nil {
		return nil, err
	}
	out, err := openOutput(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer out.close()
	stage := out.beside(stageSuffix)
	if err := os.Mkdir(stage, 0o755); err != nil {
		return nil, fmt.Errorf("staging the layout: %w", err)
	}
	defer os.RemoveAll(stage) //nolint:errcheck // after success it is gone, or the layout of before
	if err := os.Chmod(stage, 0o755); err != nil {
		return nil, err
	}
	b, err := pack(ctx, from, version, stage, opts)
	if err != nil {
		return nil, err
	}
	if err := durable.SyncTree(stage); err != nil {
		return nil, err
	}
	if err := durable.PlaceDir(stage, dir); err != nil {
		return nil, err
	}
	return &Packed{
		Layout: dir, Version: version, Digest: b.index.desc.Digest, Created: b.metadata.told(),
		Platforms: b.results(), Warnings: from.Warnings(),
	}, nil
}

// pack writes the artifact to a layout in an empty folder.
func pack(ctx context.Context, from *dist.Dist, version Version, dir string, opts PackOptions) (*built, error) {
	opts.Report = serialised(opts.Report)
	layout, err := ociregistry.CreateLayout(ctx, dir)
	if err != nil {
		return nil, err
	}
	b, err := build(ctx, from, version, layout, opts)
	if err != nil {
		return nil, err
	}
	if err := b.store(ctx, layout); err != nil {
		return nil, err
	}
	return b, layout.Tag(ctx, b.index.desc, version.String())
}

// store stores everything but the layers, which are there.
func (b *built) store(ctx context.Context, layout *ociregistry.Layout) error {
	quiet := func(Event) {} // small content in a folder takes no time
	if err := b.pushBases(ctx, layout, quiet); err != nil {
		return err
	}
	emptyDesc, empty := artifact.EmptyConfig()
	blobs := []blob{{emptyDesc, empty}}
	var manifests []blob
	for _, p := range b.platforms {
		blobs, manifests = append(blobs, p.config), append(manifests, p.manifest)
	}
	manifests = append(manifests, b.index)
	for _, d := range b.documents {
		blobs, manifests = append(blobs, d.content), append(manifests, d.manifest)
	}
	for _, content := range blobs {
		if err := pushBlob(ctx, layout, content, quiet); err != nil {
			return err
		}
	}
	for _, m := range manifests {
		if err := layout.PushManifest(ctx, m.desc, m.content); err != nil {
			return err
		}
	}
	return nil
}

func isLayout(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile))
	return err == nil
}

// replaceable says whether dir may be written.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755)
	case err != nil:
		return err
	case len(entries) == 0 || isLayout(dir):
		return nil
	}
	return fmt.Errorf("%s: %w", dir, ErrExists)
}

func (b *built) results() []PlatformResult {
	out := make([]PlatformResult, len(b.platforms))
	for i, p := range b.platforms {
		out[i] = PlatformResult{
			Platform: p.platform.String(), Digest: p.manifest.desc.Digest,
			Layer: p.layer.Digest, Size: p.layer.Size, Executable: "sha256:" + p.executable.SHA256, Files: p.files,
		}
	}
	return out
}

// serialised returns a function that may be called from several goroutines.
func serialised(f func(Event)) func(Event) {
	var mu sync.Mutex
	call := reporter(f)
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		call(e)
	}
}

// output is a folder that this process alone is writing. What is half written
// lies beside it, under a name that begins with its own.
type output struct {
	target string
	lock   *flock.Flock
}

// lockInterval is how often an output that another process writes is tried.
const lockInterval = 50 * time.Millisecond

// openOutput waits for other processes that write target, and then clears what
// one left behind that was killed: nobody else is at work there.
func openOutput(ctx context.Context, target string) (*output, error) {
	o := &output{target: filepath.Clean(target)}
	path := o.beside(".lock")
	for {
		o.lock = flock.New(path)
		err := durable.WhileInUse(func() error { // by the one before, who removes it
			_, err := o.lock.TryLockContext(ctx, lockInterval)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// The one before may have removed the file that was locked now.
		if o.holds(path) {
			break
		}
		_ = o.lock.Unlock()
	}
	if err := o.clear(); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *output) holds(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	locked, err := o.lock.Stat()
	return err == nil && os.SameFile(there, locked)
}

// close lets others write the output. Windows removes no file that is open, and
// there it does not matter that another process may lock it in between: that one
// has it open.
func (o *output) close() {
	removed := os.Remove(o.lock.Path())
	_ = o.lock.Unlock()
	if removed != nil {
		_ = os.Remove(o.lock.Path())
	}
}

// beside is the name of a file that goes with the output.
func (o *output) beside(suffix string) string {
	dir, name := filepath.Split(o.target)
	return filepath.Join(dir, "."+name+".fleeting-plugin"+suffix)
}

// stageSuffix is that of what is being written.
const stageSuffix = "-new"

// clear removes what a killed process left, and finishes what it was doing.
func (o *output) clear() error {
	stage := o.beside(stageSuffix)
	if err := durable.Recover(stage, o.target); err != nil {
		return err
	}
	return errors.Join(durable.RemoveAll(stage), durable.RemoveAll(stage+".old"))
}
