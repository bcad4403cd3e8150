package installer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// receiptSchema is the version of the form of receipts. A reader refuses others.
const receiptSchema = 1

// Receipt says what was installed, from where, and why it was allowed. It lies
// beside the executable as fleeting-plugin.receipt.json.
//
// A receipt is as trustworthy as the folder: whoever may change the executable
// may change the receipt. The lock, kept elsewhere, is what finds that.
type Receipt struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Name is what the plugin is installed as; Reference is where it came from.
	Name      string    `json:"name"`
	Reference Reference `json:"reference"`
	// Version with its build metadata, which the folder's name lacks.
	Version version.Version `json:"version"`
	// Tag is the tag that was resolved, "" for a digest.
	Tag      string `json:"tag,omitempty"`
	Platform string `json:"platform"`
	// Index is "" for a single manifest.
	Index    digest.Digest `json:"index,omitempty"`
	Manifest digest.Digest `json:"manifest"`
	Layer    digest.Digest `json:"layer"`
	// Executable is the name of the plugin's executable, one of Files.
	Executable string        `json:"executable"`
	Files      []ReceiptFile `json:"files"`
	Installed  time.Time     `json:"installed"`
	// Verification says why it was allowed.
	Verification Verification `json:"verification"`
}

// ReceiptFile is one installed file.
type ReceiptFile struct {
	// Name relative to the folder of the version, with slashes.
	Name string `json:"name"`
	// Size in bytes.
	Size   int64         `json:"size"`
	Digest digest.Digest `json:"digest"`
	// Mode is 0755 or 0644, as text.
	Mode string `json:"mode"`
}

// Digest is what was resolved: the index, or the single manifest.
func (r Receipt) Digest() digest.Digest {
	if r.Index != "" {
		return r.Index
	}
	return r.Manifest
}

func (r Receipt) encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// decodeReceipt is strict: a receipt is written by us, so anything unknown in it
// means that something else is going on.
func decodeReceipt(content []byte) (Receipt, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var r Receipt
	if err := decoder.Decode(&r); err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", errInvalidReceipt, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Receipt{}, fmt.Errorf("%w: data behind its end", errInvalidReceipt)
	}
	if r.Schema != receiptSchema {
		return Receipt{}, fmt.Errorf("%w: schema %d, this program knows %d", errInvalidReceipt, r.Schema, receiptSchema)
	}
	return r, r.check()
}

// check holds what every receipt of ours has; the folder is somebody else's to
// write in, so nothing is taken for granted.
func (r Receipt) check() error {
	for _, d := range []digest.Digest{r.Manifest, r.Layer, r.Digest()} {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("%w: digest %q: %w", errInvalidReceipt, d, err)
		}
	}
	if _, err := artifact.ReadPlatform(r.Platform); err != nil {
		return fmt.Errorf("%w: %w", errInvalidReceipt, err)
	}
	if r.Executable != "plugin" && r.Executable != "plugin.exe" {
		return fmt.Errorf("%w: %q is no name of an executable", errInvalidReceipt, r.Executable)
	}
	seen := map[string]bool{}
	for _, f := range r.Files {
		if err := f.Digest.Validate(); err != nil {
			return fmt.Errorf("%w: file %q: %w", errInvalidReceipt, f.Name, err)
		}
		if seen[f.Name] || !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("%w: file %q comes twice or is elsewhere", errInvalidReceipt, f.Name)
		}
		seen[f.Name] = true
	}
	if !seen[r.Executable] {
		return fmt.Errorf("%w: it names no executable", errInvalidReceipt)
	}
	return nil
}

// belongs says whether the receipt is that of the folder it lies in: a folder
// that was copied or renamed is another version to the runner.
func (r Receipt) belongs(entry store.Entry) error {
	if r.Name != entry.Plugin.Name() || !r.Version.Core().Equal(entry.Version.Core()) {
		return fmt.Errorf("%w: it belongs to %s %s", errInvalidReceipt, r.Name, r.Version)
	}
	return nil
}

func receiptFiles(files []untar.File) []ReceiptFile {
	out := make([]ReceiptFile, 0, len(files))
	for _, f := range files {
		out = append(out, ReceiptFile{Name: f.Name, Size: f.Size, Digest: f.Digest, Mode: fmt.Sprintf("%04o", f.Mode.Perm())})
	}
	return out
}
