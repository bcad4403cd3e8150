package cloud

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// serverPage is one page of a listing.
type serverPage struct {
	servers []Server
	next    string // link to the next page; empty on the last
}

// serverID is what becomes part of the path of calls. Nova's are UUIDs.
var serverID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// decodePage reads a page of servers. It keeps only what [Server] has.
func decodePage(raw []byte) (serverPage, error) {
	var page serverPage
	listed := false
	err := decodeObject(raw, func(s *scanner, key []byte) {
		switch string(key) {
		case "servers":
			listed = s.array(func() { page.servers = append(page.servers, s.server()) })
		case "servers_links":
			s.array(func() {
				if rel, href := s.link(); rel == "next" {
					page.next = href
				}
			})
		default:
			s.skip()
		}
	})
	if err != nil {
		return serverPage{}, err
	}
	if !listed {
		// Something else answered in Nova's place. An empty listing would
		// read as "all servers are gone".
		return serverPage{}, errors.New("the answer has no list of servers")
	}
	for _, server := range page.servers {
		if !serverID.MatchString(server.ID) {
			return serverPage{}, errors.New("the answer has a server without a usable ID")
		}
	}
	return page, nil
}

// decodeServer reads the answer about one server.
func decodeServer(raw []byte) (Server, error) {
	var server Server
	err := decodeObject(raw, func(s *scanner, key []byte) {
		if string(key) == "server" {
			server = s.server()
		} else {
			s.skip()
		}
	})
	return server, err
}

// decodeObject walks over the members of a JSON object. What is cut off, or
// followed by anything, is refused.
func decodeObject(raw []byte, member func(s *scanner, key []byte)) error {
	s := &scanner{b: raw}
	if !s.object(func(key []byte) { member(s, key) }) {
		return errNotJSON
	}
	return s.end()
}

// server takes one server, in the form of the compute API reference, "Show
// server details".
func (s *scanner) server() Server {
	var server Server
	s.object(func(key []byte) {
		switch string(key) {
		case "id":
			server.ID = s.text()
		case "name":
			server.Name = Printable(s.text())
		case "status":
			server.Status = Printable(s.text())
		case "OS-EXT-STS:task_state":
			server.TaskState = Printable(s.text())
		case "created":
			// A server whose time cannot be read is still a server.
			server.Created, _ = time.Parse(time.RFC3339, s.text())
		case "image":
			server.Image = s.member("id")
		case "locked":
			server.Locked = s.flag()
		case "fault":
			server.Fault = s.member("message")
		case "tags":
			s.array(func() { server.Tags = append(server.Tags, s.text()) })
		case "metadata":
			server.Metadata = map[string]string{}
			s.object(func(key []byte) { server.Metadata[string(key)] = s.text() })
		case "addresses":
			s.object(func(key []byte) { server.Addresses = s.addresses(string(key), server.Addresses) })
		default:
			s.skip()
		}
	})
	return server
}

// addresses takes the addresses on one network.
func (s *scanner) addresses(network string, known []Address) []Address {
	s.array(func() {
		address := Address{Network: network}
		s.object(func(key []byte) {
			switch string(key) {
			case "addr":
				address.IP, _ = netip.ParseAddr(s.text())
			case "OS-EXT-IPS-MAC:mac_addr":
				address.MAC = strings.ToLower(s.text())
			case "OS-EXT-IPS:type":
				address.Floating = s.text() == "floating"
			default:
				s.skip()
			}
		})
		if address.IP.IsValid() {
			known = append(known, address)
		}
	})
	return known
}

// member takes an object and returns one text of it. A server that boots from
// a volume has an empty string in place of an image.
func (s *scanner) member(name string) string {
	var text string
	s.object(func(key []byte) {
		if string(key) == name {
			text = s.text()
		} else {
			s.skip()
		}
	})
	return text
}

// link takes a link of a listing.
func (s *scanner) link() (rel, href string) {
	s.object(func(key []byte) {
		switch string(key) {
		case "rel":
			rel = s.text()
		case "href":
			href = s.text()
		default:
			s.skip()
		}
	})
	return rel, href
}
