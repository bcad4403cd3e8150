package packager

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
}

func (r layerRecord) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: r.Digest, Size: r.Size}
}

// layerCache remembers the digests of layers by what went into them. It holds
// no content, so it stays small, and a layer that the registry has is neither
// compressed nor sent again. A zero cache remembers nothing.
type layerCache struct{ dir string }

// key covers everything that a layer's bytes depend on.
func (c layerCache) key(l layer) string {
	h := sha256.New()
	fmt.Fprintf(h, "v1 gzip level %d\n%s\n%s\n", compressionLevel, l.in.platform, l.created.Format(time.RFC3339))
	for _, f := range l.in.files {
		fmt.Fprintf(h, "%q %d %t %s\n", f.name, f.size, f.executable, f.sha256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c layerCache) get(l layer) (layerRecord, bool) {
	if c.dir == "" {
		return layerRecord{}, false
	}
	raw, err := os.ReadFile(filepath.Join(c.dir, c.key(l)+".json"))
	if err != nil {
		return layerRecord{}, false
	}
	var r layerRecord
	if json.Unmarshal(raw, &r) != nil || r.Digest.Validate() != nil || r.DiffID.Validate() != nil || r.Size <= 0 {
		return layerRecord{}, false
	}
	return r, true
}

// set remembers a layer. A cache that cannot be written only costs time, so
// there is no error.
func (c layerCache) set(l layer, r layerRecord) {
	if c.dir == "" || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return
	}
	_ = durable.WriteFile(filepath.Join(c.dir, c.key(l)+".json"), raw, 0o600)
}
