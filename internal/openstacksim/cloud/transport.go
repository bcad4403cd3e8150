package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Transport reaches the simulator without a socket, for any host of the URL.
// It is the way in from a testing/synctest bubble, where a goroutine that
// waits for the network would stop the clock.
func (c *Cloud) Transport() http.RoundTripper { return transport{c} }

type transport struct{ cloud *Cloud }

// RoundTrip answers the request in the caller's goroutine.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	result, err := t.cloud.exchange(r)
	if errors.Is(err, errRefused) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(result.body)
	if result.cut {
		body = io.MultiReader(bytes.NewReader(result.body[:len(result.body)/2]), cutReader{})
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", result.status, http.StatusText(result.status)),
		StatusCode:    result.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        result.header,
		Body:          io.NopCloser(body),
		ContentLength: int64(len(result.body)),
		Request:       r,
	}, nil
}

type cutReader struct{}

func (cutReader) Read([]byte) (int, error) {
	return 0, fmt.Errorf("%w: %w", errCut, io.ErrUnexpectedEOF)
}
