//go:build !linux && !darwin

package durable

import "errors"

func exchange(_, _ string) error { return errors.ErrUnsupported }
