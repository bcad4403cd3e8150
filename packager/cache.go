package packager

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// layerRecord is what is known of a layer once it was written.
type layerRecord struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
	DiffID digest.Digest `json:"diffID"`
	// Files are what went in, in the order of the layer.
	Files []fileRecord `json:"files"`
	// Seal binds all of that to the layer that it was written for.
	Seal []byte `json:"seal,omitempty"`
}

// fileRecord is a file's content.
type fileRecord struct {
	SHA256 string `json:"sha256"`
	// Stamp, if not empty, is that of a file which has this content.
	Stamp string `json:"stamp,omitempty"`
}

func (r layerRecord) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: r.Digest, Size: r.Size}
}

// layerCache remembers the digests of layers by what went into them. It holds
// no content, so it stays small, and a layer that the registry has is neither
// compressed nor sent again. A zero cache remembers nothing.
//
// What is published rests on a record without a look at the layer. So each is
// sealed with the key: one that was altered, that belongs to another layer, or
// that somebody without the key wrote is as good as none.
type layerCache struct {
	dir string
	key []byte
}

// path covers everything that a layer's bytes depend on, but the content of the
// files: that is compared afterwards, so that files of which nothing is known
// are not read to learn it.
func (c layerCache) path(l layer) string {
	h := sha256.New()
	fmt.Fprintf(h, "v3 gzip level %d %s\n%s\n%s\n", compressionLevel, writers(debug.ReadBuildInfo()), l.in.platform, l.created.Format(time.RFC3339))
	for _, f := range l.in.files {
		fmt.Fprintf(h, "%q %d %t\n", f.name, f.size, f.executable)
	}
	return filepath.Join(c.dir, hexDigest(h)+".json")
}

// writers names what writes a layer: archive/tar by the version of Go, and the
// compressor. Another version of either may write other bytes.
func writers(info *debug.BuildInfo, ok bool) string {
	name := runtime.Version()
	if !ok {
		return name
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/klauspost/compress" {
			for ; dep != nil; dep = dep.Replace {
				name += " " + dep.Path + " " + dep.Version + " " + dep.Sum
			}
			break
		}
	}
	return name
}

// seal is what [layerRecord.Seal] has to be for this layer.
func (c layerCache) seal(l layer, r layerRecord) ([]byte, error) {
	r.Seal = nil
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, c.key)
	fmt.Fprintf(mac, "%s\n", filepath.Base(c.path(l)))
	mac.Write(raw)
	return mac.Sum(nil), nil
}

// load returns what is remembered, whatever the files' content.
func (c layerCache) load(l layer) (r layerRecord, ok bool) {
	if c.dir == "" {
		return r, false
	}
	raw, err := os.ReadFile(c.path(l))
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return r, false
	}
	seal, err := c.seal(l, r)
	return r, err == nil && hmac.Equal(seal, r.Seal) && r.Digest.Validate() == nil && r.DiffID.Validate() == nil &&
		r.Size > 0 && len(r.Files) == len(l.in.files)
}

// get returns the record of a layer. It tells the sums of the layer's files
// from it; those that do not look as they did then are read.
func (c layerCache) get(ctx context.Context, l layer) (layerRecord, bool, error) {
	r, ok := c.load(l)
	if !ok {
		return layerRecord{}, false, nil
	}
	read := false
	for i, f := range l.in.files {
		if r.Files[i].Stamp == "" || r.Files[i].Stamp != l.sums.stamp(f) {
			read = true
			sum, err := l.sums.of(ctx, f)
			if err != nil || sum != r.Files[i].SHA256 {
				return layerRecord{}, false, err
			}
			continue
		}
		if err := l.sums.set(f, r.Files[i].SHA256); err != nil {
			return layerRecord{}, false, err
		}
	}
	if read {
		c.set(l, r)
	}
	return r, true, nil
}

// set remembers a layer. A cache that cannot be written only costs time, so
// there is no error.
func (c layerCache) set(l layer, r layerRecord) {
	if c.dir == "" || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	r.Files = make([]fileRecord, len(l.in.files))
	for i, f := range l.in.files {
		r.Files[i] = fileRecord{SHA256: l.sums.get(f), Stamp: l.sums.stamp(f)}
	}
	var err error
	if r.Seal, err = c.seal(l, r); err != nil {
		return
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return
	}
	_ = durable.WriteFile(c.path(l), raw, 0o600)
}
