package plugin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// network is the way to a simulated cloud that is seeded. Each call takes a time of
// its own, which follows from the seed, from what is asked for and from how often it
// was asked for before. So no two things happen in one moment, and the order in which
// the system runs goroutines changes nothing.
type network struct {
	http.RoundTripper
	seed uint64

	mu    sync.Mutex
	asked map[string]uint64
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	latency, err := n.latency(r)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(latency):
		return n.RoundTripper.RoundTrip(r)
	}
}

// latency is between 10 and 50 ms.
func (n *network) latency(r *http.Request) (time.Duration, error) {
	key := r.Method + " " + r.URL.RequestURI()
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return 0, err
		}
		r.Body = io.NopCloser(bytes.NewReader(content))
		var create struct{ Server struct{ Name string } }
		if json.Unmarshal(content, &create) == nil {
			key += " " + create.Server.Name
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[key]++
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, n.asked[key], key)
	return 10*time.Millisecond + time.Duration(h.Sum64()%uint64(40*time.Millisecond)), nil
}

// repeatable are the options of a group whose random choices follow from a seed.
func repeatable(seed uint64) plugin.Option {
	var mu sync.Mutex
	waits, names := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	random := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return waits.Float64()
	}
	suffix := func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%08d", names.IntN(1e8))
	}
	return plugin.WithRandom(random, suffix)
}

// TestWeatherIsExact: what a seed leads to does not depend on how the machine runs
// goroutines, so that figures are the same everywhere and a failure can be repeated.
func TestWeatherIsExact(t *testing.T) {
	t.Parallel()
	for name, weather := range map[string]weather{"without faults": nil, "everything": everything(",match=compute:server.create"), "any call": anyCall()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			days := make([]day, 8)
			t.Run("runs", func(t *testing.T) {
				for i := range days {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						days[i] = twenty.run(t, 11, weather)
					})
				}
			})
			for i, d := range days {
				for n, call := range d.calls {
					if n >= len(days[0].calls) || call != days[0].calls[n] {
						t.Errorf("run %d differs from call %d on: %q, the first %q", i, n, d.calls[max(0, n-3):n+1], days[0].calls[max(0, n-3):min(n+1, len(days[0].calls))])
						break
					}
				}
			}
		})
	}
}
