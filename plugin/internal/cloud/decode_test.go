package cloud

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareIPs = cmpopts.EquateComparable(netip.Addr{})

func TestDecodeRecordedServers(t *testing.T) {
	t.Parallel()
	private := func(ip string) Address { return Address{Network: "private", IP: netip.MustParseAddr(ip)} }
	floating := func(ip string) Address {
		return Address{Network: "private", IP: netip.MustParseAddr(ip), Floating: true}
	}
	const image = "768fe147-0d7f-47c5-b775-f81cf16bc8b9"
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	of := func(mac string, addresses ...Address) []Address {
		for i := range addresses {
			addresses[i].MAC = mac
		}
		return addresses
	}
	for name, want := range map[string]Server{
		"nova-2.93-server-show-active": {
			ID: "a895998f-1194-4834-ad6f-dd67d8f0a204", Name: "runner-full-293", Status: "ACTIVE", Image: image,
			Created: at("2026-11-30T08:36:55Z"), Metadata: map[string]string{"group": "g1", "lab_spawn_seconds": "6"}, Tags: []string{"g1", "runner"},
			Addresses: of("fa:16:3e:33:cc:78", private("fd00:10::f816:3eff:fe33:cc78"), private("10.10.2.201")),
		},
		"nova-2.93-server-show-build": {
			ID: "a895998f-1194-4834-ad6f-dd67d8f0a204", Name: "runner-full-293", Status: "BUILD", TaskState: "spawning", Image: image,
			Created: at("2026-11-30T08:36:55Z"), Metadata: map[string]string{"group": "g1", "lab_spawn_seconds": "6"}, Tags: []string{"g1", "runner"},
		},
		"nova-2.93-server-show-active-volume": {
			ID: "5cbb57f4-4eb6-4925-a367-90e2ed28c5b3", Name: "runner-volume", Status: "ACTIVE",
			Created: at("2026-11-30T08:48:37Z"), Metadata: map[string]string{},
			Addresses: of("fa:16:3e:14:8c:ed", private("fd00:10::f816:3eff:fe14:8ced"), private("10.10.1.117")),
		},
		"nova-2.93-server-show-floating": {
			ID: "5d95f42d-8f5c-4a2e-ace6-e5277013b96b", Name: "runner-fip", Status: "ACTIVE", Image: image,
			Created: at("2026-11-30T08:48:21Z"), Metadata: map[string]string{},
			Addresses: of("fa:16:3e:c0:40:17", private("fd00:10::f816:3eff:fec0:4017"), private("10.10.3.226"), floating("203.0.113.196")),
		},
		"nova-2.93-server-show-error-novalidhost": {
			ID: "87a0bbd7-c588-4688-b48e-2e1f3fe4d044", Name: "runner-toobig", Status: "ERROR", Image: image,
			Created: at("2026-11-30T08:40:12Z"), Metadata: map[string]string{}, Fault: "No valid host was found. ",
		},
	} {
		got, err := decodeServer(record(t, name).Response.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, compareIPs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	deleting, err := decodeServer(record(t, "nova-2.93-server-show-deleting").Response.Body)
	if err != nil || deleting.Status != "ACTIVE" || deleting.TaskState != "deleting" {
		t.Errorf("deleting server: %+v, %v", deleting, err)
	}
}

func TestDecodePages(t *testing.T) {
	t.Parallel()
	page, err := decodePage(record(t, "nova-2.93-servers-detail-page").Response.Body)
	if err != nil || len(page.servers) != 1 {
		t.Fatalf("%d servers, %v", len(page.servers), err)
	}
	if marker, err := markerOf(page.next); marker != "a895998f-1194-4834-ad6f-dd67d8f0a204" || err != nil {
		t.Errorf("marker: got %q, %v", marker, err)
	}
	empty, err := decodePage(record(t, "nova-2.93-servers-detail-empty").Response.Body)
	if err != nil || len(empty.servers) != 0 || empty.next != "" {
		t.Errorf("empty page: %+v, %v", empty, err)
	}
	for name, body := range map[string]string{
		"nothing":               "",
		"HTML":                  "<html>login</html>",
		"an error":              `{"forbidden": {"code": 403}}`,
		"null":                  "null",
		"a list":                "[]",
		"no list of servers":    `{"servers": null}`,
		"a server without ID":   `{"servers": [{"name": "a"}]}`,
		"a server that is none": `{"servers": ["a"]}`,
		"trailing data":         `{"servers": []} {}`,
		"a cut-off body":        `{"servers": [{"id": "a"}`,
		"a cut-off string":      `{"servers": [{"id": "a`,
	} {
		if page, err := decodePage([]byte(body)); err == nil {
			t.Errorf("%s: accepted as %+v", name, page)
		}
	}
}

// reference is what encoding/json makes of the fields that are decoded.
type reference struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Status    string            `json:"status"`
	TaskState string            `json:"OS-EXT-STS:task_state"`
	Metadata  map[string]string `json:"metadata"`
}

// FuzzDecodePage checks that no bytes crash the scanner, and that it reads
// what encoding/json reads where that reads anything.
func FuzzDecodePage(f *testing.F) {
	for _, name := range []string{"nova-2.93-servers-detail", "nova-2.93-servers-detail-page", "nova-2.93-servers-detail-empty"} {
		f.Add([]byte(record(f, name).Response.Body))
	}
	f.Add([]byte(`{"servers":[{"id":"a\"\\","n\u0061me":"x","image":"","addresses":{"n":[{"addr":"::1"}]},"metadata":{"a":"b"}}]}`))
	f.Add([]byte(`{"servers":[{"id":1,"tags":[[],{}],"locked":true}],"servers_links":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := decodePage(raw)
		var want struct {
			Servers []reference `json:"servers"`
		}
		if err != nil || hasRepeatedOrOddKeys(raw) || json.Unmarshal(raw, &want) != nil {
			return
		}
		if len(want.Servers) != len(page.servers) {
			t.Fatalf("%d servers, encoding/json has %d", len(page.servers), len(want.Servers))
		}
		for i, s := range page.servers {
			got := reference{ID: s.ID, Name: s.Name, Status: s.Status, TaskState: s.TaskState, Metadata: s.Metadata}
			shown := want.Servers[i]
			shown.Name, shown.Status, shown.TaskState = Printable(shown.Name), Printable(shown.Status), Printable(shown.TaskState)
			if diff := cmp.Diff(shown, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("server %d (-encoding/json +scanner):\n%s", i, diff)
			}
		}
	})
}

// hasRepeatedOrOddKeys tells inputs on which encoding/json differs by design:
// it folds the case of keys, and merges repeated ones.
func hasRepeatedOrOddKeys(raw []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	seen := map[string]int{}
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		if text, ok := token.(string); ok {
			seen[strings.ToLower(text)]++
			if text != strings.ToLower(text) && !strings.HasPrefix(text, "OS-") {
				return true
			}
		}
	}
	for _, key := range []string{"servers", "id", "name", "status", "os-ext-sts:task_state", "metadata"} {
		if seen[key] > 1 {
			return true
		}
	}
	return false
}
