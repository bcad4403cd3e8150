package cloud

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestHowFarARequestGot breaks connections of a real transport at each point: only
// a request that the connection took whole may have had an effect.
func TestHowFarARequestGot(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		serve    func(net.Conn) error // with what a client sends; nil for no server
		doubtful bool
	}{
		"no server": {nil, false},
		"the connection ends before the body is read": {func(c net.Conn) error {
			return c.Close()
		}, false},
		"the answer is lost": {func(c net.Conn) error {
			if err := readRequest(c); err != nil {
				return err
			}
			return c.Close()
		}, true},
		"the answer is cut off": {func(c net.Conn) error {
			if err := readRequest(c); err != nil {
				return err
			}
			_, err := io.WriteString(c, "HTTP/1.1 202 Acc")
			return errors.Join(err, c.Close())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of a test, closed below
			if err != nil {
				t.Fatal(err)
			}
			var server errgroup.Group
			if row.serve == nil {
				_ = listener.Close()
			} else {
				server.Go(func() error {
					connection, err := listener.Accept()
					if err != nil {
						return err
					}
					return row.serve(connection)
				})
			}
			err = post(t.Context(), "http://"+listener.Addr().String())
			if got := failure("create", compute, err, true, &redactor{}).Doubtful; got != row.doubtful {
				t.Errorf("doubtful: got %v, want %v: %v", got, row.doubtful, err)
			}
			_ = listener.Close()
			if err := server.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// bodySize is more than the buffers of two sockets on loopback hold.
const bodySize = 64 << 20

// post sends a request as Client.send does.
func post(ctx context.Context, address string) error {
	var sent progress
	request, err := http.NewRequestWithContext(sent.watch(ctx), http.MethodPost, address, bytes.NewReader(make([]byte, bodySize)))
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err == nil {
		_ = answer.Body.Close()
		return errors.New("there was an answer")
	}
	if sent.incomplete() {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	}
	return err
}

// readRequest reads a whole request.
func readRequest(c net.Conn) error {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, request.Body)
	return err
}
