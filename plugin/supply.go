package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

const (
	// supplyFirst and supplyMost are the pauses between two look-ups of the names
	// of a configuration: the first, and the one that it doubles to.
	supplyFirst = 5 * time.Second
	supplyMost  = time.Minute
	// supplyTimeout bounds one look-up of all names: Init waits for the first, and
	// the runner gives it and five updates a minute.
	supplyTimeout = 20 * time.Second
	// supplyTold is how often the same reason is logged.
	supplyTold = 10 * time.Minute
)

// supply knows what servers are made of. What a configuration names may be gone
// or out of reach for a while: nothing is created then, and the names are looked
// up again while servers are asked for.
type supply struct {
	client *cloud.Client
	config Config
	images *imageBook
	random func() float64
	log    hclog.Logger
	wake   chan struct{}

	mu       sync.Mutex
	found    resources
	reason   error // why nothing can be created; nil if found is complete
	doubted  bool  // the cloud refused a server that was made of found
	due      time.Time
	pause    time.Duration
	told     string
	toldWhen time.Time
}

func newSupply(client *cloud.Client, config Config, logger hclog.Logger) *supply {
	return &supply{
		client: client, config: config, random: rand.Float64, log: logger, wake: make(chan struct{}, 1),
		images: newImageBook(client, config.Server.Image, slogger(logger)),
		reason: errors.New("what server names has not been looked up yet"),
	}
}

// run looks names up whenever that is asked for, until ctx ends.
func (s *supply) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		s.mu.Lock()
		due := !time.Now().Before(s.due) && (s.reason != nil || s.doubted)
		s.mu.Unlock()
		if due {
			s.lookUp(ctx)
		}
	}
}

// ready reports whether servers can be created, and has the names looked up again
// if not.
func (s *supply) ready() bool {
	s.mu.Lock()
	ready, doubted := s.reason == nil, s.doubted
	s.mu.Unlock()
	if !ready || doubted {
		s.kick()
	}
	return ready
}

// get returns what servers are made of, or why none can be.
func (s *supply) get() (resources, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.reason
}

// doubt notes that the cloud refused a server for what it was to be made of, such
// as a flavor that was made anew and has another ID now.
func (s *supply) doubt() {
	s.mu.Lock()
	s.doubted = true
	s.mu.Unlock()
	s.kick()
}

func (s *supply) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookUp finds what the configuration names. What is only out of reach does not
// take away what was found before.
func (s *supply) lookUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, supplyTimeout)
	defer cancel()
	found, wrong, failed := resolve(ctx, s.client, s.config, s.log)
	for i, err := range failed {
		if call, ok := errors.AsType[*cloud.Error](err); ok && ctx.Err() != nil && call.Status == 0 {
			failed[i] = fmt.Errorf("%s: no answer within %s", call.Op, supplyTimeout)
		}
	}
	reason := errors.Join(append([]error{wrong.err()}, failed...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.reason == nil && len(wrong) == 0
	if reason == nil || !known {
		s.take(found, reason)
	}
	if s.doubted = reason != nil && known; reason == nil {
		s.pause = supplyFirst
	}
	// Many groups wait for the same service.
	s.due = time.Now().Add(s.pause + time.Duration(s.random()*float64(s.pause)/5))
	s.pause = min(max(2*s.pause, supplyFirst), supplyMost)
}

// take keeps the outcome of a look-up, and says what has changed.
func (s *supply) take(found resources, reason error) {
	if len(found.networks) < len(s.found.networks) {
		// The servers that exist are on them, whether others can be made or not.
		found.networks, found.addressNetwork, found.addressTwins = s.found.networks, s.found.addressNetwork, s.found.addressTwins
	}
	before := s.found
	s.found, s.reason = found, reason
	if found.image.ID != "" {
		s.images.take(found.image)
	}
	if reason != nil {
		s.complain(reason)
		return
	}
	for _, doubt := range found.doubts {
		if !slices.Contains(before.doubts, doubt) {
			s.log.Warn("perhaps not meant", "setting", doubt.Subject, "detail", doubt.Detail)
		}
	}
	if s.told != "" {
		s.log.Info("servers can be created again")
	}
	s.told = ""
}

// complain says why no servers can be created: once for each reason, and again
// while it lasts.
func (s *supply) complain(reason error) {
	text := request.ReplaceAllString(reason.Error(), "")
	if text == s.told && time.Since(s.toldWhen) < supplyTold {
		return
	}
	s.told, s.toldWhen = text, time.Now()
	s.log.Error("no servers can be created; those that exist are kept, and the names are looked up again while servers are asked for",
		"reason", reason.Error())
}

// request is the ID of a request, which makes no other reason.
var request = regexp.MustCompile(`req-[0-9a-f-]+`)
