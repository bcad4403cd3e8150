package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// recorded is an answer of a real service.
type recorded struct {
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	} `json:"response"`
}

func record(tb testing.TB, name string) recorded {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(raw, &r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// thousand is a page of 1,000 servers in the shape that Nova gave.
func thousand(tb testing.TB) []byte {
	tb.Helper()
	var one struct {
		Server map[string]any `json:"server"`
	}
	if err := json.Unmarshal(record(tb, "nova-2.93-server-show-active").Response.Body, &one); err != nil {
		tb.Fatal(err)
	}
	var page struct {
		Servers []map[string]any `json:"servers"`
	}
	for i := range 1000 {
		server := maps.Clone(one.Server)
		server["id"] = fmt.Sprintf("a895998f-1194-4834-ad6f-%012d", i)
		server["name"] = fmt.Sprintf("runner-%08d", i)
		page.Servers = append(page.Servers, server)
	}
	raw, err := json.Marshal(page)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// BenchmarkListing compares reading a page of 1,000 servers with the library's
// way to read the same bytes.
func BenchmarkListing(b *testing.B) {
	raw := thousand(b)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			readOurs(b, raw)
		}
	})
	b.Run("ExtractServers", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			readTheirs(b, raw)
		}
	})
}

func readOurs(tb testing.TB, raw []byte) {
	tb.Helper()
	page, err := decodePage(raw)
	if err != nil || len(page.servers) != 1000 {
		tb.Fatalf("%d servers, %v", len(page.servers), err)
	}
}

func readTheirs(tb testing.TB, raw []byte) {
	tb.Helper()
	var body any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		tb.Fatal(err)
	}
	page := servers.ServerPage{LinkedPageBase: pagination.LinkedPageBase{PageResult: pagination.PageResult{
		Result: gophercloud.Result{Body: body, Header: http.Header{}},
	}}}
	all, err := servers.ExtractServers(page)
	if err != nil || len(all) != 1000 {
		tb.Fatalf("%d servers, %v", len(all), err)
	}
}
