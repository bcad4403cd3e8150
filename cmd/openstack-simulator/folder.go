package main

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// folder is where one simulator writes what its users need.
type folder struct {
	path string
	lock *flock.Flock
}

// enter takes a folder, made if missing, for this process, until it leaves it
// or ends: two that write into one would take each other's keys away.
func enter(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(path, ".lock"), flock.SetPermissions(0o600))
	taken, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("--dir %s: %w", path, err)
	}
	if !taken {
		return nil, fmt.Errorf("--dir %s: another %s, which still runs, has its files there; choose another folder", path, program)
	}
	return &folder{path: path, lock: lock}, nil
}

func (f *folder) leave() { _ = f.lock.Close() }

// file gives the path of a file in the folder.
func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// write writes a file that only its owner can read.
func (f *folder) write(name string, content []byte) error {
	return durable.WriteFile(f.file(name), content, 0o600)
}

// newKey makes a key pair and gives its private half, for a file, and the
// public one, for authorized_keys.
func newKey() (private []byte, public string, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(privateKey, program)
	if err != nil {
		return nil, "", err
	}
	key, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return nil, "", err
	}
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}
