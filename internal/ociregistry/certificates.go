package ociregistry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// certificateFolders makes transports for hosts that have a folder.
type certificateFolders struct {
	folders []string
	mu      sync.Mutex
	byHost  map[string]folderTransport
}

type folderTransport struct {
	transport *http.Transport
	err       error
}

// transport is nil for a host without a folder.
func (c *certificateFolders) transport(host string) (*http.Transport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byHost[host]
	if !ok {
		known = c.load(host)
		c.byHost[host] = known
	}
	return known.transport, known.err
}

func (c *certificateFolders) load(host string) folderTransport {
	name := host
	if runtime.GOOS == "windows" {
		name = strings.ReplaceAll(host, ":", "") // as docker does
	}
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return folderTransport{}
	}
	for _, folder := range c.folders {
		files, err := hostFiles(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var cfg *tls.Config
		if err == nil {
			cfg, err = files.config()
		}
		if err != nil {
			return folderTransport{err: fmt.Errorf("certificates for %s: %w", host, err)}
		}
		if files == (TLSFiles{}) {
			continue // a folder with nothing in it says nothing
		}
		return folderTransport{transport: baseTransport(cfg)}
	}
	return folderTransport{}
}

// hostFiles finds the files in the folder of a host.
func hostFiles(dir string) (TLSFiles, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return TLSFiles{}, err
	}
	var files TLSFiles
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch filepath.Ext(entry.Name()) {
		case ".crt":
			files.CAFile = dir
		case ".cert":
			if files.CertFile != "" {
				return TLSFiles{}, fmt.Errorf("%w: %s and %s: one client certificate is enough", ErrInvalid, files.CertFile, path)
			}
			files.CertFile, files.KeyFile = path, strings.TrimSuffix(path, ".cert")+".key"
		}
	}
	return files, nil
}

// readAuthorities reads a file with certificates, or all *.crt of a folder.
func readAuthorities(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return textfile.ReadPEM(path)
	}
	names, err := filepath.Glob(filepath.Join(globEscape(path), "*.crt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		content, err := textfile.ReadPEM(name)
		if err != nil {
			return nil, err
		}
		all = append(append(all, content...), '\n')
	}
	return all, nil
}

// globEscape takes the meaning off characters that a pattern gives one, as the
// brackets of an IPv6 address.
func globEscape(path string) string {
	if runtime.GOOS == "windows" {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
