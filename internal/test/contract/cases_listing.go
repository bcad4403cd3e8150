package contract

import (
	"fmt"
	"strings"
)

func listingCases() []Case {
	return []Case{
		{"listing-pages", listingPages},
		{"listing-filters", listingFilters},
		{"listing-many-at-once", func(s *Session) {
			spec := s.Spec("contract-many", object{"networks": "none", "min_count": 1, "max_count": 2, "return_reservation_id": true})
			reply := s.Call("create", post, "compute", "/servers", spec)
			found := "/servers/detail?reservation_id=" + reply.Text("reservation_id")
			s.Until("two servers", "compute", found, func(r Reply) bool {
				return len(r.List("servers")) == 2 && states(r) == "ACTIVE,ACTIVE"
			})
			s.Call("list by reservation", get, "compute", found+"&sort_key=display_name&sort_dir=asc", nil)
			for _, server := range s.Quiet(get, "compute", found, nil).List("servers") {
				s.Gone("/servers/" + text(server["id"]))
			}
		}},
	}
}

func states(r Reply) string {
	var all []string
	for _, server := range r.List("servers") {
		all = append(all, text(server["status"]))
	}
	return strings.Join(all, ",")
}

// listingPages makes three servers without networks, one after the other
// since Nova orders them by the second of their creation.
func listingPages(s *Session) {
	var paths []string
	for i := range 3 {
		spec := s.Spec(fmt.Sprintf("contract-page-%d", i), object{"networks": "none", "tags": []any{"contract-page"}})
		path := s.Adopt(s.Quiet(post, "compute", "/servers", spec))
		s.State(path, "ACTIVE")
		paths = append(paths, path)
	}
	s.Call("a page of two", get, "compute", "/servers/detail?tags=contract-page&limit=2", nil)
	marker := strings.TrimPrefix(paths[1], "/servers/")
	s.Call("the page after it", get, "compute", "/servers/detail?tags=contract-page&limit=2&marker="+marker, nil)
	s.Call("a page just full", get, "compute", "/servers?tags=contract-page&limit=3", nil)
	last := strings.TrimPrefix(paths[0], "/servers/")
	s.Call("the empty page after it", get, "compute", "/servers?tags=contract-page&limit=3&marker="+last, nil)
	s.Call("oldest first", get, "compute", "/servers?tags=contract-page&limit=1&sort_key=created_at&sort_dir=asc", nil)
	s.Call("unknown marker", get, "compute", "/servers/detail?tags=contract-page&marker="+nowhere, nil)
	s.Call("no number", get, "compute", "/servers/detail?tags=contract-page&limit=many", nil)
	s.Call("negative", get, "compute", "/servers/detail?tags=contract-page&limit=-1", nil)
	s.Gone(paths[1])
	s.Call("marker of a deleted server", get, "compute", "/servers/detail?tags=contract-page&marker="+marker, nil)
}

func listingFilters(s *Session) {
	one := s.Adopt(s.Quiet(post, "compute", "/servers", s.Spec("contract-filter-one", object{"networks": "none", "tags": []any{"contract-f", "contract-1"}})))
	s.State(one, "ACTIVE")
	two := s.Adopt(s.Quiet(post, "compute", "/servers", s.Spec("contract-filter-two", object{"networks": "none", "tags": []any{"contract-f", "contract-2"}})))
	s.State(two, "ACTIVE")
	for _, version := range []string{"2.52", "2.93"} {
		s.Micro(version)
		for _, query := range []string{
			"name=contract-filter", "name=^contract-filter-one$", "name=FILTER-TWO", "name=contract-filter&status=ACTIVE",
			"name=contract-filter&status=ERROR", "tags=contract-f", "tags=contract-f,contract-1", "tags-any=contract-1,contract-2",
			"tags=contract-f&not-tags=contract-1", "tags=contract-f&not-tags-any=contract-1,contract-3",
			"tags=contract-f&flavor=nope", "tags=contract-f&status=nonsense", "tags=contract-f&nonsense=1", "tags=contract-f&locked=true",
			"tags=contract-f&changes-since=2090-01-01T00:00:00Z", "tags=contract-f&changes-since=nonsense", "tags=",
		} {
			if query == "tags=" {
				// An empty tag: what it gives depends on what else there is.
				continue
			}
			s.Call(query, get, "compute", "/servers?"+query, nil)
		}
	}
}
