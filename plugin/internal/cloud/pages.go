package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

const (
	// pagesMost and itemsMost bound a listing. A project with more servers than
	// that needs another tool.
	pagesMost = 1_000
	itemsMost = 100_000
	// restarts is how often a listing is begun anew when what a page ended with is
	// deleted before the next page is asked for.
	restarts = 5
)

// collection is what a service lists in pages, each an object with the list
// under key.
type collection struct {
	op, service, path, key string
	query                  url.Values
	// offset counts what was read, for a service that links no pages.
	offset bool
	// once and sparing are those of its calls.
	once, sparing bool
}

// readAll reads all pages of a collection.
func readAll[T any](ctx context.Context, c *Client, from collection) ([]T, error) {
	return readUntil(ctx, c, from, func([]T) bool { return false })
}

// readUntil reads pages of a collection until there is enough.
func readUntil[T any](ctx context.Context, c *Client, from collection, enough func([]T) bool) ([]T, error) {
	var items []T
	var seen map[string]bool // pages
	begin := func() { items, seen = nil, map[string]bool{} }
	err := c.pages(ctx, from, begin, func(body io.Reader) (func() turn, error) {
		var page map[string]json.RawMessage
		if err := decodeJSON(body, &page); err != nil {
			return nil, err
		}
		var here []T
		raw := page[from.key]
		if len(raw) == 0 || raw[0] != '[' {
			return nil, fmt.Errorf("there is no list of %s in it", from.key)
		}
		if err := json.Unmarshal(raw, &here); err != nil {
			return nil, fmt.Errorf("an element of %s is not of the form that the API has", from.key)
		}
		return func() turn {
			if seen[string(raw)] {
				return turn{}
			}
			seen[string(raw)] = true
			items = append(items, here...)
			if enough(items) {
				return turn{}
			}
			return turn{items: len(here), fresh: len(here), next: nextOf(page, from.key)}
		}, nil
	})
	return items, err
}

// nextOf finds the link to the next page, which Glance has at the top, and the
// others among their links.
func nextOf(page map[string]json.RawMessage, key string) string {
	var next string
	_ = json.Unmarshal(page["next"], &next)
	for _, name := range []string{key + "_links", strings.TrimSuffix(key, "s") + "_links"} { // Cinder's has no s
		var links []struct{ Rel, Href string }
		_ = json.Unmarshal(page[name], &links)
		for _, link := range links {
			if link.Rel == "next" {
				next = link.Href
			}
		}
	}
	return next
}

// turn is how many elements a page has, how many of them are on no page before,
// and the link to the next page; empty on the last.
type turn struct {
	items, fresh int
	next         string
}

// reader reads a page, and returns what takes it on. It may have to read the same
// one twice.
type reader func(io.Reader) (take func() turn, err error)

// pages calls read with each page, and begin before the first, again should a
// listing be begun anew. Every listing ends: with a page that links no other, or
// with an error.
func (c *Client) pages(ctx context.Context, from collection, begin func(), read reader) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		begin()
		p := pager{collection: from}
		if err := p.run(ctx, c, read); !markerGone(err) || attempt >= restarts {
			return err
		}
	}
}

// errEndless reports a listing whose pages do not lead to an end.
var errEndless = errors.New("endless listing")

// pageError is a failure of any page but the first.
type pageError struct {
	err         error
	pages, read int
}

// Error implements error.
func (e *pageError) Error() string {
	return fmt.Sprintf("%s; %d pages with %d elements were read before", e.err, e.pages, e.read)
}

// Unwrap makes the cause visible.
func (e *pageError) Unwrap() error { return e.err }

// markerGone reports whether a service does not know the marker of a page.
func markerGone(err error) bool {
	var page *pageError
	var failed *Error
	return errors.As(err, &page) && errors.As(err, &failed) && failed.Status == http.StatusBadRequest
}

// pager is how far a listing has come.
type pager struct {
	collection
	marker string
	seen   map[string]bool // markers
	pages  int
	items  int
}

// run reads pages from where the listing stands to its end.
func (p *pager) run(ctx context.Context, c *Client, read reader) error {
	for {
		take, err := p.page(ctx, c, read)
		if err != nil && p.pages > 0 {
			return &pageError{err: err, pages: p.pages, read: p.items}
		}
		if err != nil {
			return err
		}
		here := take()
		p.pages++
		p.items += here.items
		more, err := p.advance(here)
		if err != nil {
			return &pageError{err: &Error{Op: p.op, Kind: ErrTransient, Err: err}, pages: p.pages, read: p.items}
		}
		if !more {
			return nil
		}
	}
}

// page reads the page after the marker.
func (p *pager) page(ctx context.Context, c *Client, read reader) (take func() turn, err error) {
	query, op := maps.Clone(p.query), p.op
	if query == nil {
		query = url.Values{}
	}
	if p.marker != "" {
		op += ", next page"
		name := "marker"
		if p.offset {
			name = "offset"
		}
		query.Set(name, p.marker)
	}
	err = c.do(ctx, call{
		op: op, method: http.MethodGet, service: p.service, path: p.path, query: query, once: p.once, sparing: p.sparing, ok: []int{http.StatusOK},
		decode: func(_ http.Header, body io.Reader) (err error) {
			take, err = read(body)
			return err
		},
	})
	return take, err
}

// advance moves to the next page, and reports whether there is one.
func (p *pager) advance(here turn) (more bool, err error) {
	next := ""
	switch {
	case here.fresh == 0: // also where a service answers each marker with the same
	case p.offset:
		next = fmt.Sprint(p.items)
	case here.next != "":
		if next, err = markerOf(here.next); err != nil {
			return false, err
		}
	}
	switch {
	case next == "":
		return false, nil
	case p.seen[next]:
		return false, fmt.Errorf("%w: its pages repeat", errEndless)
	case p.pages >= pagesMost || p.items >= itemsMost:
		return false, fmt.Errorf("%w: it has more than any project", errEndless)
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[next] = true
	p.marker = next
	return true, nil
}

// markerOf takes only the marker from a link: its host is what the service
// believes to be called, which behind a proxy is often wrong.
func markerOf(link string) (string, error) {
	parsed, err := url.Parse(link)
	if err != nil {
		return "", errors.New("the link to the next page is not valid")
	}
	marker := parsed.Query().Get("marker")
	if marker == "" {
		return "", errors.New("the link to the next page has no marker")
	}
	return marker, nil
}
