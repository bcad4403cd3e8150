package ociregistry

import "os"

// lockedFile is locked while a layout's index changes. On Windows no other process
// can read what is locked, so that it is a file of its own.
const lockedFile = ".index.json.lock"

// unlocked removes the file, unless another process has locked it already.
func unlocked(path string) error {
	_ = os.Remove(path)
	return nil
}
