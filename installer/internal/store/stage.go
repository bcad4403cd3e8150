package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Staging is a version that is being put together. Either [Staging.Commit] or
// [Staging.Drop] ends it.
type Staging struct {
	store     *Store
	plugin    Plugin
	admission admission.Admission
	// dir is the folder of this staging alone, root the version in it.
	dir  string
	root *os.Root
}

// Stage starts a version of the locked plugin. Without an admission there is no
// staging, and what is staged can only be what was admitted.
func (s *Store) Stage(lock *Lock, admitted admission.Admission) (*Staging, error) {
	if err := admitted.Check(); err != nil {
		return nil, err
	}
	parent := s.staging(lock.plugin.hash())
	if err := durable.MkdirAll(parent, folderMode); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "stage-")
	if err != nil {
		return nil, err
	}
	// The umask may have taken bits away.
	content := filepath.Join(dir, stagedName)
	if err := errors.Join(os.Mkdir(content, folderMode), os.Chmod(content, folderMode)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	root, err := os.OpenRoot(content)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Staging{store: s, plugin: lock.plugin, admission: admitted, dir: dir, root: root}, nil
}

// Root is where the files go.
func (s *Staging) Root() *os.Root { return s.root }

// Admission is what may be staged here.
func (s *Staging) Admission() admission.Admission { return s.admission }

// Empty removes what was put into the root so far.
func (s *Staging) Empty() error {
	names, err := os.ReadDir(s.root.Name())
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.root.RemoveAll(name.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes what was staged.
func (s *Staging) Drop() error {
	if s.root == nil {
		return nil
	}
	// The lock is held, so whatever else is in the parent is a leftover too.
	return errors.Join(s.close(), s.store.clear(s.plugin))
}

func (s *Staging) close() error {
	err := s.root.Close()
	s.root = nil
	return err
}

// Commit writes the receipt and makes the version visible, by one rename, after
// everything has reached the disk. An installed version of the same number is
// replaced. Afterwards the staging is gone, whatever the outcome.
func (s *Staging) Commit(v version.Version, receipt []byte) (path string, err error) {
	defer func() { err = errors.Join(err, s.Drop()) }()
	if s.root == nil {
		return "", errors.New("staging is closed")
	}
	if err := s.writeReceipt(receipt); err != nil {
		return "", fmt.Errorf("writing the receipt: %w", err)
	}
	target, err := s.store.Path(s.plugin, v)
	if err != nil {
		return "", err
	}
	staged := s.root.Name()
	// Windows renames no folder that is open.
	if err := s.close(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.store.clear(s.plugin)) }()
	if err := durable.SyncTree(staged); err != nil {
		return "", err
	}
	// The name is what a later process goes by if this one is killed.
	dir := filepath.Join(s.dir, filepath.Base(target))
	if err := durable.Rename(staged, dir); err != nil {
		return "", err
	}
	if err := placeBeneath(dir, target); err != nil {
		return "", fmt.Errorf("installing into %s: %w", target, err)
	}
	return target, nil
}

func (s *Staging) writeReceipt(receipt []byte) (err error) {
	f, err := s.root.OpenFile(ReceiptName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, receiptMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(receipt); err != nil {
		return err
	}
	if err := f.Chmod(receiptMode); err != nil {
		return err
	}
	return f.Sync()
}

// Amend replaces the receipt of an installed version of the locked plugin.
func (s *Store) Amend(lock *Lock, v version.Version, receipt []byte) error {
	entry, err := s.Version(lock.plugin, v)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(entry.Dir, ReceiptName), receipt, receiptMode)
}

// placeBeneath creates the folder above target and places dir there. Removing
// another plugin takes away folders that are empty, this one perhaps, so that
// it is tried again. What was at target is dir now.
func placeBeneath(dir, target string) error {
	var err error
	for range placeAttempts {
		if err = durable.MkdirAll(filepath.Dir(target), folderMode); err == nil {
			err = durable.PlaceDir(dir, target)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

const (
	placeAttempts = 10
	// stagedName cannot be read as a version.
	stagedName = "new"
)
