//go:build !linux

package store

import "errors"

func exchange(_, _ string) error { return errors.ErrUnsupported }
