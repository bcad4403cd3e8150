package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pageOfServers are n servers with the tag, and a link to the next page.
func pageOfServers(from, n int, next string) string {
	var servers []string
	for i := range n {
		servers = append(servers, fmt.Sprintf(`{"id": "id-%d", "name": "n-%d", "tags": ["tag"], "status": "ACTIVE"}`, from+i, from+i))
	}
	links := ""
	if next != "" {
		links = fmt.Sprintf(`, "servers_links": [{"rel": "next", "href": "http://elsewhere/x?marker=%s"}]`, next)
	}
	return `{"servers": [` + strings.Join(servers, ",") + `]` + links + `}`
}

// TestEveryListingEnds: pages that go on for ever, that lead back to each other,
// or that are the same for each marker.
func TestEveryListingEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		page func(marker string, call int) string
		want int // servers; -1 for an error
	}{
		"one page": {func(string, int) string { return pageOfServers(0, 3, "") }, 3},
		"two pages": {func(m string, _ int) string {
			return map[string]string{"": pageOfServers(0, 2, "a"), "a": pageOfServers(2, 2, "")}[m]
		}, 4},
		"an empty last page": {func(m string, _ int) string {
			return map[string]string{"": pageOfServers(0, 2, "a"), "a": pageOfServers(0, 0, "a")}[m]
		}, 2},
		"endless":                {func(_ string, call int) string { return pageOfServers(1000*call, 1000, fmt.Sprint("m", call)) }, -1},
		"two that alternate":     {func(_ string, call int) string { return pageOfServers(call, 1, fmt.Sprint("m", call%2)) }, -1},
		"two that are the same":  {func(_ string, call int) string { return pageOfServers(call%2, 1, fmt.Sprint("m", call%2)) }, 2},
		"the same whatever":      {func(string, int) string { return pageOfServers(0, 2, "a") }, 2},
		"a link without marker":  {func(string, int) string { return strings.ReplaceAll(pageOfServers(0, 2, "a"), "marker", "page") }, -1},
		"a link that is no link": {func(string, int) string { return strings.ReplaceAll(pageOfServers(0, 2, "a"), "http:", "%zz:") }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					if !strings.HasSuffix(r.URL.Path, "/servers/detail") {
						return nil, nil //nolint:nilnil // as usual
					}
					asked++
					return reply(http.StatusOK, row.page(r.URL.Query().Get("marker"), asked)), nil
				})
				servers, err := s.connect(t).ListServers(t.Context(), "tag", time.Hour)
				if row.want < 0 && err == nil || row.want >= 0 && (err != nil || len(servers) != row.want) {
					t.Errorf("%d servers, %v; want %d", len(servers), err, row.want)
				}
				if asked > itemsMost/1000+1 {
					t.Errorf("%d pages were read", asked)
				}
			})
		})
	}
}

// TestResourcesOnSeveralPages: whatever is listed is found on the last page, too,
// by link or, for server groups, by number.
func TestResourcesOnSeveralPages(t *testing.T) {
	t.Parallel()
	for what, call := range calls() {
		const lists = "ResolveFlavor ResolveImage ResolveNetwork ResolveSecurityGroup ResolveServerGroup CheckKeyPair ResolveVolumeType"
		if !strings.Contains(lists, what) {
			continue
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					query := r.URL.Query()
					page := 0
					_, _ = fmt.Sscan(query.Get("marker")+query.Get("offset"), &page)
					if r.URL.Host == "keystone.example" || r.URL.Path == "/v2.1/" || page > 3 {
						return nil, nil //nolint:nilnil // as usual
					}
					return reply(http.StatusOK, resourcePage(call.key, page)), nil
				})
				if err := call.do(t.Context(), s.connect(t)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// resourcePage has one element; that of page 3 is named n.
func resourcePage(key string, page int) string {
	name := map[bool]string{true: "n", false: fmt.Sprint("other-", page)}[page == 3]
	element := fmt.Sprintf(`{"id": "id-%d", "name": %q, "status": "active"}`, page, name)
	if key == "keypairs" {
		element = fmt.Sprintf(`{"keypair": %s}`, element)
	}
	next := ""
	if page < 3 {
		link := fmt.Sprintf("/x?marker=%d", page+1)
		switch key {
		case "images":
			next = fmt.Sprintf(`, "next": %q`, link)
		case "volume_types":
			next = fmt.Sprintf(`, "volume_type_links": [{"rel": "next", "href": %q}]`, link)
		case "server_groups":
		default:
			next = fmt.Sprintf(`, %q: [{"rel": "self", "href": "?marker=99"}, {"rel": "next", "href": %q}]`, key+"_links", link)
		}
	}
	return fmt.Sprintf(`{%q: [%s]%s}`, key, element, next)
}

// TestListingCutOff: what was read of a listing is kept for the next one, which
// goes on from there, and says so.
func TestListingCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		s := newStage(t, func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/servers/detail") {
				return nil, nil //nolint:nilnil // as usual
			}
			marker := r.URL.Query().Get("marker")
			asked = append(asked, marker)
			page := 0
			_, _ = fmt.Sscan(marker, &page)
			select {
			case <-time.After(5 * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			next := fmt.Sprint(page + 1)
			if page == 10 {
				next = ""
			}
			return reply(http.StatusOK, pageOfServers(100*page, 100, next)), nil
		})
		client := s.connect(t)
		list := func() ([]Server, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 32*time.Second)
			defer cancel()
			return client.ListServers(ctx, "tag", time.Hour)
		}
		_, err := list()
		if err == nil || !errors.Is(err, ErrTransient) || !strings.Contains(err.Error(), "6 pages with 600 elements") || !strings.Contains(err.Error(), "goes on from there") {
			t.Errorf("got %v, want the pages that were read", err)
		}
		servers, err := list()
		if err != nil || len(servers) != 1100 {
			t.Errorf("%d servers, %v; want 1100", len(servers), err)
		}
		if len(asked) != 12 {
			t.Errorf("%d pages were asked for, want 11 and the one that was cut off: %v", len(asked), asked)
		}
		if servers, err = list(); err == nil || servers != nil {
			t.Errorf("a listing after a whole one begins anew: %d servers, %v", len(servers), err)
		}
		<-time.After(listingKept)
		before := len(asked)
		if _, err = list(); err == nil || asked[before] != "" {
			t.Errorf("what was read long ago is used: %v, %q", err, asked[before])
		}
	})
}

// TestTagFilterIgnored: thousands of servers of others, in every listing of a
// cloud that does not filter, are neither the group's nor foreign ones with its
// tag, and are told of once.
func TestTagFilterIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/servers/detail") {
				return nil, nil //nolint:nilnil // as usual
			}
			page := 0
			_, _ = fmt.Sscan(r.URL.Query().Get("marker"), &page)
			if page == 3 {
				return reply(http.StatusOK, pageOfServers(3000, 2, "")), nil
			}
			others := strings.ReplaceAll(pageOfServers(1000*page, 1000, fmt.Sprint(page+1)), `["tag"]`, `["tag2"]`)
			return reply(http.StatusOK, others), nil
		})
		client := s.connect(t)
		for range 3 {
			servers, err := client.ListServers(t.Context(), "tag", time.Hour)
			if err != nil || len(servers) != 2 {
				t.Fatalf("%d servers, %v", len(servers), err)
			}
		}
		if got := strings.Count(s.logged(), "does not filter servers by tag"); got != 1 || !strings.Contains(s.logged(), "others=3000 own=2") {
			t.Errorf("lines: %d\n%s", got, s.logged())
		}
	})
}

// TestServersThatLoseTheirTag while they are deleted are still listed.
func TestServersThatLoseTheirTag(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		server Server
		want   bool
	}{
		"tagged":         {Server{Tags: []string{"a", "tag"}, Status: "ACTIVE"}, true},
		"another's":      {Server{Tags: []string{"tag2"}, Status: "ACTIVE"}, false},
		"no tags":        {Server{Status: "ACTIVE"}, false},
		"deleted":        {Server{Status: "DELETED"}, true},
		"being deleted":  {Server{Status: "ACTIVE", TaskState: "deleting"}, true},
		"its tag longer": {Server{Tags: []string{"tagged"}, Status: "ACTIVE"}, false},
	} {
		if got := row.server.carries("tag"); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
