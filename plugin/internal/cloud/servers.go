package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// whole hands an answer over in one piece, which decode may not keep: the memory
// is used again for the next answer.
func (c *Client) whole(body io.Reader, decode func(raw []byte) error) error {
	buffer, _ := c.buffers.Get().(*bytes.Buffer)
	if buffer == nil {
		buffer = &bytes.Buffer{}
	}
	defer c.buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(body); err != nil {
		return err
	}
	return decode(buffer.Bytes())
}

// listingKept is how long a listing that was cut off may be gone on with: the
// beginning of an older one says too little.
const listingKept = 5 * time.Minute

// serverListing is a listing of servers that is under way.
type serverListing struct {
	pager
	tag     string
	begun   time.Time
	servers []Server
	known   map[string]bool // IDs
	others  int             // servers that do not carry the tag
}

func newServerListing(op, tag string, query url.Values) *serverListing {
	query.Set("tags", tag)
	return &serverListing{
		pager: pager{collection: collection{op: op, service: compute, path: "servers/detail", query: query}},
		tag:   tag, begun: time.Now(), known: map[string]bool{},
	}
}

// ListServers returns all servers of the project that carry the tag, in one
// call per page. With a cell down, Nova leaves that cell's servers out: their
// absence proves nothing. What was read of a listing that ctx or the cloud cut
// off is kept: the error wraps [ErrUnfinished], and the next call goes on from
// there. If the cloud refuses calls for their rate, and the last listing is of that
// age only, there is none: the error wraps [ErrPutOff].
func (c *Client) ListServers(ctx context.Context, tag string, age time.Duration) ([]Server, error) {
	if c.limiter.putsOff(age) {
		return nil, ErrPutOff
	}
	listing := c.beginListing(tag)
	listing.sparing = age < crowdedWait
	for attempt := 0; ; attempt++ {
		err := listing.run(ctx, c, listing.read(c))
		switch {
		case err == nil:
			c.reportOthers(ctx, listing)
			c.views.replace(listing.servers)
			c.briefTold.Store(false)
			return listing.servers, nil
		case Throttled(err) && age < crowdedWait:
			return nil, fmt.Errorf("%w: %w", ErrPutOff, err)
		case markerGone(err) && attempt < restarts:
			listing = newServerListing("list servers", tag, url.Values{})
		case cannotShow(err):
			servers, _, err := c.listBriefly(ctx, listing.query, err)
			return servers, err
		case errors.Is(err, ErrTransient) && !errors.Is(err, errEndless) && listing.pages > 0:
			c.unfinished.Store(listing)
			return nil, fmt.Errorf("%w: %w; the next listing goes on from there", ErrUnfinished, err)
		default:
			return nil, err
		}
	}
}

// beginListing takes up the listing that was cut off, or begins a new one.
func (c *Client) beginListing(tag string) *serverListing {
	listing := c.unfinished.Swap(nil)
	if listing == nil || listing.tag != tag || time.Since(listing.begun) > listingKept {
		return newServerListing("list servers", tag, url.Values{})
	}
	return listing
}

// FindServers returns the servers of the project with exactly this name.
func (c *Client) FindServers(ctx context.Context, tag, name string) ([]Server, error) {
	// Nova takes the name for a regular expression or a part, by its database.
	listing := newServerListing("look up server "+name, tag, url.Values{"name": {name}})
	listing.once = true
	err := listing.run(ctx, c, listing.read(c))
	if cannotShow(err) {
		var whole bool
		cause := err
		if listing.servers, whole, err = c.listBriefly(ctx, listing.query, cause); err == nil && !whole {
			err = cause // one of those left out may be it
		}
	}
	return slices.DeleteFunc(listing.servers, func(s Server) bool { return s.Name != name }), err
}

// read reads a page of servers.
func (l *serverListing) read(c *Client) reader {
	return func(body io.Reader) (func() turn, error) {
		var page serverPage
		err := c.whole(body, func(raw []byte) (err error) {
			page, err = decodePage(raw)
			return err
		})
		return func() turn { return l.take(c, page) }, err
	}
}

// take keeps the servers of a page that carry the tag: some clouds answer with
// all of them.
func (l *serverListing) take(c *Client, page serverPage) turn {
	here := turn{items: len(page.servers), next: page.next}
	for _, s := range page.servers {
		if l.known[s.ID] {
			continue // it moved between pages while they were read
		}
		l.known[s.ID] = true
		here.fresh++
		if s.carries(l.tag) {
			l.servers = append(l.servers, c.received(s))
		} else {
			l.others++
		}
	}
	return here
}

// carries reports whether a listed server has the tag. Nova takes the tags of a
// server away while it deletes it.
func (s Server) carries(tag string) bool {
	return slices.Contains(s.Tags, tag) || s.Status == "DELETED" || s.TaskState == "deleting"
}

// reportOthers says once that listings are longer than they should be.
func (c *Client) reportOthers(ctx context.Context, listing *serverListing) {
	if listing.others > 0 && !c.othersTold.Swap(true) {
		c.log.WarnContext(ctx, "the compute service does not filter servers by tag, so each listing has those of others, too",
			"tag", listing.tag, "others", listing.others, "own", len(listing.servers))
	}
}

// received completes a server with what this side knows: its own clock, and what
// must not be shown.
func (c *Client) received(s Server) Server {
	s.Fault = Printable(quote(s.Fault, messageLimit, &c.session.secrets))
	if !s.Created.IsZero() {
		s.Created = s.Created.Add(-c.session.clock.offset())
	}
	return s
}

// GetServer returns one server, or an error that wraps [ErrNotFound].
func (c *Client) GetServer(ctx context.Context, id string) (Server, error) {
	op := "show server " + id
	var server Server
	err := c.do(ctx, call{
		op: op, method: http.MethodGet, service: compute, path: "servers/" + url.PathEscape(id), once: true, ok: []int{http.StatusOK},
		decode: func(_ http.Header, body io.Reader) error {
			return c.whole(body, func(raw []byte) (err error) {
				server, err = decodeServer(raw)
				return err
			})
		},
	})
	if err == nil && server.ID != id {
		err = &Error{Op: op, Kind: ErrTransient, Message: "the answer is about something else"}
	}
	return c.received(server), err
}

// DeleteServer asks for the deletion of a server. Nova answers before the work
// is done.
func (c *Client) DeleteServer(ctx context.Context, id string) error {
	return c.do(ctx, call{
		op: "delete server " + id, method: http.MethodDelete, service: compute,
		path: "servers/" + url.PathEscape(id), once: true, ok: []int{http.StatusNoContent, http.StatusAccepted},
	})
}

// ForceDeleteServer asks for a deletion in any state, and at once where Nova
// would keep the server for a while. Project members may do this.
func (c *Client) ForceDeleteServer(ctx context.Context, id string) error {
	return c.action(ctx, "force the deletion of", id, "forceDelete")
}

// UnlockServer lets a locked server be deleted. Whoever locked it may do this.
func (c *Client) UnlockServer(ctx context.Context, id string) error {
	return c.action(ctx, "unlock", id, "unlock")
}

// action makes a server action without arguments. Those used here may be
// repeated without harm.
func (c *Client) action(ctx context.Context, verb, id, name string) error {
	return c.do(ctx, call{
		op: verb + " server " + id, method: http.MethodPost, service: compute,
		path: "servers/" + url.PathEscape(id) + "/action", body: map[string]any{name: nil},
		once: true, ok: []int{http.StatusAccepted, http.StatusNoContent},
	})
}
