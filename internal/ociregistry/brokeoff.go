package ociregistry

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// brokeOff reports whether a connection was made and then lost, or timed out:
// worth another try. A refused connection or an unknown host is not: the
// registry is not there, and its user should hear so at once.
func brokeOff(err error) bool {
	var netErr net.Error
	switch {
	case errors.Is(err, errStalled), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return true
	case errors.As(err, &netErr):
		return netErr.Timeout()
	default:
		return false
	}
}
