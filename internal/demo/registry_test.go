package demo

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestServeRegistry: it says where it answers, answers as a registry there, and
// serves nobody beyond the machine.
func TestServeRegistry(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- ServeRegistry(ctx, "127.0.0.1:0", t.TempDir(), writer) }()
	greeting, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(greeting, "A registry answers at "), " ")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s", host, response.Status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		if err := ServeRegistry(ctx, address, t.TempDir(), io.Discard); err == nil {
			t.Errorf("%s was served", address)
		}
	}
}
