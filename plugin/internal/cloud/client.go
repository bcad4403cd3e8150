package cloud

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
)

// Options of a [Client].
type Options struct {
	// Cloud is the entry of clouds.yaml. Required.
	Cloud string
	// CloudsFile is the path to clouds.yaml; empty for the standard places.
	CloudsFile string
	// FromEnv logs in with the variables OS_* alone, and reads no clouds.yaml.
	FromEnv bool
	// LookupEnv reads the environment. Nil reads none.
	LookupEnv func(string) (string, bool)
	// VolumeType asks for a compute service that can choose volume types.
	VolumeType bool
	// Calls bounds the calls of a second, 0 for [DefaultCalls].
	Calls float64
	// UserAgent is put in front of gophercloud's.
	UserAgent string
	// Transport carries the requests in place of the network's; then the entry's
	// certificates have no effect. Nil for the network.
	Transport http.RoundTripper
	// Hidden are texts that requests will carry, such as user data. They are kept
	// out of the messages of errors, should the cloud repeat them.
	Hidden []string
	// Random returns numbers from 0 to below 1, which spread waits. Nil for those of
	// math/rand.
	Random func() float64
	// Log receives retries at debug level. Nil discards.
	Log *slog.Logger
	// Retrying is told of each call that failed and is tried again. Calls may
	// overlap. Nil tells nobody.
	Retrying func(failed error)
}

// Client makes calls to one project of one cloud. It is safe for concurrent
// use.
type Client struct {
	session    *session
	limiter    *limiter
	minor      atomic.Int32 // of the microversion
	need       int          // the least of it
	patience   patience
	log        *slog.Logger
	retrying   func(error)
	buffers    sync.Pool // of *bytes.Buffer, for listings
	proof      atomic.Pointer[versionProof]
	unfinished atomic.Pointer[serverListing]
	views      fullViews
	briefTold  atomic.Bool
	othersTold atomic.Bool
}

// Connect reads the credentials, authenticates and chooses a microversion.
func Connect(ctx context.Context, opts Options) (*Client, error) {
	if opts.LookupEnv == nil {
		opts.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Retrying == nil {
		opts.Retrying = func(error) {}
	}
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	c := &Client{
		limiter: newLimiter(cmp.Or(opts.Calls, DefaultCalls), opts.Random, opts.Log), log: opts.Log, retrying: opts.Retrying,
	}
	var err error
	if c.session, err = openSession(ctx, opts); err != nil {
		return nil, err
	}
	if err := c.negotiate(ctx, opts.VolumeType); err != nil {
		return nil, err
	}
	return c, nil
}

// Microversion is the one that was negotiated with Nova.
func (c *Client) Microversion() Microversion { return Microversion{int(c.minor.Load())} }

// Place is where servers are made, for people: the project that the token is
// scoped to, and the region.
func (c *Client) Place() string { return c.session.here().String() }

// Close ends idle connections.
func (c *Client) Close() { c.session.transport.close() }
