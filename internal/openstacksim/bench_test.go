package openstacksim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// BenchmarkListing is the cost of one detailed listing of 1,000 servers: what
// a benchmark of a client has to subtract.
func BenchmarkListing(b *testing.B) {
	sim, err := openstacksim.New(openstacksim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		if _, err := sim.AddServer(openstacksim.ServerSpec{Name: fmt.Sprintf("runner-%d", i), Tags: []string{"g1"}}); err != nil {
			b.Fatal(err)
		}
	}
	token := benchToken(b, sim)
	for b.Loop() {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://simulator/compute/v2.1/servers/detail?tags=g1", nil)
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("X-Auth-Token", token)
		request.Header.Set("X-OpenStack-Nova-API-Version", "2.93")
		response, err := sim.Transport().RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("%v, %v", response, err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}

func benchToken(b *testing.B, sim *openstacksim.Simulator) string {
	b.Helper()
	body, err := json.Marshal(passwordRequest(openstacksim.DefaultProject))
	if err != nil {
		b.Fatal(err)
	}
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://simulator/identity/v3/auth/tokens", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	response, err := sim.Transport().RoundTrip(request)
	if err != nil {
		b.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("X-Subject-Token")
}
