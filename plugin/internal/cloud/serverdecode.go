package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// wireServer is the part of Nova's server that is decoded. The rest, several
// times as much, is skipped without being kept.
type wireServer struct {
	ID        string                   `json:"id"`
	Name      string                   `json:"name"`
	Status    string                   `json:"status"`
	TaskState string                   `json:"OS-EXT-STS:task_state"`
	Created   string                   `json:"created"`
	Image     wireImage                `json:"image"`
	Locked    bool                     `json:"locked"`
	Metadata  map[string]string        `json:"metadata"`
	Addresses map[string][]wireAddress `json:"addresses"`
	Fault     *wireFault               `json:"fault"`
}

type wireAddress struct {
	Addr string `json:"addr"`
	Type string `json:"OS-EXT-IPS:type"`
}

type wireFault struct {
	Message string `json:"message"`
}

// wireImage is an object, or an empty string for a server that boots from a
// volume.
type wireImage struct{ id string }

// UnmarshalJSON accepts both forms.
func (i *wireImage) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] != '{' {
		return nil
	}
	var object struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(raw, &object)
	i.id = object.ID
	return err
}

func (w *wireServer) server() Server {
	s := Server{
		ID: w.ID, Name: w.Name, Status: w.Status, TaskState: w.TaskState,
		Image: w.Image.id, Locked: w.Locked, Metadata: w.Metadata,
	}
	// A server whose time cannot be read is still a server.
	s.Created, _ = time.Parse(time.RFC3339, w.Created)
	if w.Fault != nil {
		s.Fault = w.Fault.Message
	}
	for _, name := range slices.Sorted(maps.Keys(w.Addresses)) {
		for _, a := range w.Addresses[name] {
			if ip, err := netip.ParseAddr(a.Addr); err == nil {
				s.Addresses = append(s.Addresses, Address{Network: name, IP: ip, Floating: a.Type == "floating"})
			}
		}
	}
	return s
}

// serverPage is one page of a listing.
type serverPage struct {
	servers []Server
	next    string // link to the next page; empty on the last
}

// decodePage reads a page of servers one by one, so that no more than one is
// held in its wire form.
func decodePage(body io.Reader) (serverPage, error) {
	var page serverPage
	decoder := json.NewDecoder(body)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return page, err
	}
	listed := false
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return page, err
		}
		switch key {
		case "servers":
			listed = true
			err = page.decodeServers(decoder)
		case "servers_links":
			err = page.decodeLinks(decoder)
		default:
			var skipped json.RawMessage
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return page, err
		}
	}
	if err := expect(decoder, json.Delim('}')); err != nil {
		return page, err
	}
	if !listed {
		// Something else answered in Nova's place. An empty listing would
		// read as "all servers are gone".
		return page, errors.New("the answer has no list of servers")
	}
	return page, nil
}

func (p *serverPage) decodeServers(decoder *json.Decoder) error {
	if err := expect(decoder, json.Delim('[')); err != nil {
		return err
	}
	for decoder.More() {
		var wire wireServer
		if err := decoder.Decode(&wire); err != nil {
			return err
		}
		p.servers = append(p.servers, wire.server())
	}
	return expect(decoder, json.Delim(']'))
}

func (p *serverPage) decodeLinks(decoder *json.Decoder) error {
	var links []struct {
		Rel  string `json:"rel"`
		Href string `json:"href"`
	}
	if err := decoder.Decode(&links); err != nil {
		return err
	}
	for _, link := range links {
		if link.Rel == "next" {
			p.next = link.Href
		}
	}
	return nil
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("expected %q, found %v", want, token)
	}
	return nil
}
