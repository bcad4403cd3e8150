package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// whole hands an answer over in one piece, which decode may not keep: the
// memory is used again for the next answer.
func (c *Client) whole(decode func(raw []byte) error) func(http.Header, io.Reader) error {
	return func(_ http.Header, body io.Reader) error {
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
}

// restarts is how often a listing is begun anew when the server that a page
// ended with is deleted before the next page is asked for.
const restarts = 5

// ListServers returns all servers of the project that carry the tag, in one
// call per page. With a cell down, Nova leaves that cell's servers out: their
// absence proves nothing.
func (c *Client) ListServers(ctx context.Context, tag string) ([]Server, error) {
	return c.list(ctx, "list servers", url.Values{"tags": {tag}})
}

// FindServers returns the servers of the project with exactly this name.
func (c *Client) FindServers(ctx context.Context, tag, name string) ([]Server, error) {
	// Nova takes the name for a regular expression or a part, by its database.
	found, err := c.list(ctx, "look up server "+name, url.Values{"tags": {tag}, "name": {name}})
	if err != nil {
		return nil, err
	}
	var exact []Server
	for _, s := range found {
		if s.Name == name {
			exact = append(exact, s)
		}
	}
	return exact, nil
}

// list reads all pages of a listing, and starts again when a page's marker is
// gone.
func (c *Client) list(ctx context.Context, op string, query url.Values) ([]Server, error) {
	for attempt := 0; ; attempt++ {
		servers, err := c.listOnce(ctx, op, query)
		var failed *Error
		if errors.As(err, &failed) && failed.Status == http.StatusBadRequest && failed.Op == markerOp && attempt < restarts {
			continue
		}
		return servers, err
	}
}

// markerOp names the reading of any page but the first.
const markerOp = "list servers, next page"

func (c *Client) listOnce(ctx context.Context, op string, query url.Values) ([]Server, error) {
	var servers []Server
	seen := map[string]bool{}
	marker := ""
	for {
		page, err := c.page(ctx, op, query, marker)
		if err != nil {
			return nil, err
		}
		for _, s := range page.servers {
			// A server can move between pages while they are read.
			if !seen[s.ID] {
				seen[s.ID] = true
				servers = append(servers, s)
			}
		}
		next, err := markerOf(page.next)
		if err != nil {
			return nil, &Error{Op: op, Kind: ErrTransient, Err: err}
		}
		if next == "" || next == marker {
			return servers, nil
		}
		marker, op = next, markerOp
	}
}

func (c *Client) page(ctx context.Context, op string, query url.Values, marker string) (serverPage, error) {
	var page serverPage
	asked := maps.Clone(query)
	if marker != "" {
		asked.Set("marker", marker)
	}
	err := c.do(ctx, call{
		op: op, method: http.MethodGet, service: compute, path: "servers/detail", query: asked, ok: []int{http.StatusOK},
		decode: c.whole(func(raw []byte) (err error) {
			page, err = decodePage(raw)
			return err
		}),
	})
	return page, err
}

// markerOf takes only the marker from a link: its host is what Nova believes
// to be called, which behind a proxy is often wrong.
func markerOf(link string) (string, error) {
	if link == "" {
		return "", nil
	}
	parsed, err := url.Parse(link)
	if err != nil {
		return "", fmt.Errorf("link to the next page: %w", err)
	}
	return parsed.Query().Get("marker"), nil
}

// GetServer returns one server, or an error that wraps [ErrNotFound].
func (c *Client) GetServer(ctx context.Context, id string) (Server, error) {
	op := "show server " + id
	var server Server
	err := c.do(ctx, call{
		op: op, method: http.MethodGet, service: compute, path: "servers/" + url.PathEscape(id), ok: []int{http.StatusOK},
		decode: c.whole(func(raw []byte) (err error) {
			server, err = decodeServer(raw)
			return err
		}),
	})
	if err == nil && server.ID != id {
		err = &Error{Op: op, Kind: ErrTransient, Message: "the answer is about something else"}
	}
	return server, err
}

// DeleteServer asks for the deletion of a server. Nova answers before the work
// is done.
func (c *Client) DeleteServer(ctx context.Context, id string) error {
	return c.do(ctx, call{
		op: "delete server " + id, method: http.MethodDelete, service: compute,
		path: "servers/" + url.PathEscape(id), ok: []int{http.StatusNoContent, http.StatusAccepted},
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
		ok: []int{http.StatusAccepted, http.StatusNoContent},
	})
}
