package cloud

import (
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// TestEndpointsAreCompleted: addresses come with and without slash, version and
// project, and below any path.
func TestEndpointsAreCompleted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ service, address, want string }{
		{compute, "http://c:8774/v2.1", "http://c:8774/v2.1/"},
		{compute, "http://c:8774/v2.1/p1", "http://c:8774/v2.1/p1/"},
		{compute, "http://c:8774/v2.1/%(project_id)s", "http://c:8774/v2.1/p1/"},
		{compute, "http://c:8774/v2.1/$(tenant_id)s/", "http://c:8774/v2.1/p1/"},
		{compute, "http://c/compute/v2.1/", "http://c/compute/v2.1/"},
		{compute, "http://c:8774", "http://c:8774/v2.1/"},
		{compute, "http://c:8774/", "http://c:8774/v2.1/"},
		{compute, " http://c/compute ", "http://c/compute/v2.1/"},
		{compute, "https://api.example.com/v1/nova", "https://api.example.com/v1/nova/v2.1/"},
		{compute, "https://api.example.com/v3.9/nova/v2.1//p1/?x=y#z", "https://api.example.com/v3.9/nova/v2.1/p1/"},
		{compute, "http://c:8774/v2/p1", "http://c:8774/v2/p1/"},
		{network, "http://n:9696", "http://n:9696/v2.0/"},
		{network, "http://n:9696/v2", "http://n:9696/v2.0/"},
		{network, "http://n/networking/v2.0/", "http://n/networking/v2.0/"},
		{image, "http://g/image/v2", "http://g/image/v2/"},
		{image, "http://g:9292/v1/", "http://g:9292/v2/"},
		{image, "http://[fd00::1]:9292", "http://[fd00::1]:9292/v2/"},
		{volume, "http://v:8776/v3/p1", "http://v:8776/v3/p1/"},
		{volume, "http://v/volume", "http://v/volume/v3/p1/"},
		{identity, "http://k:5000", "http://k:5000/v3/"},
		{identity, "http://k:5000/v3/", "http://k:5000/v3/"},
		{identity, "http://k/identity/v2.0", "http://k/identity/v3/"},
		{identity, "http://k/identity/v3/auth/tokens", "http://k/identity/v3/"},
		{identity, "https://k/dev1/keystone", "https://k/dev1/keystone/v3/"},
	} {
		if got, err := versioned(row.service, row.address, "p1"); err != nil || got != row.want {
			t.Errorf("%s %s: got %s %v, want %s", row.service, row.address, got, err, row.want)
		}
	}
	for address, says := range map[string]string{
		"keystone.example.com:5000/v3": "begin with https://",
		"keystone.example.com/v3":      "begin with https://",
		"https:///v3":                  "begin with https://",
		"ftp://k/v3":                   "begin with https://",
		"":                             "begin with https://",
		"https://u:hunter2@k/v3":       "user or a password",
		"http://k\n/v3":                "not valid",
	} {
		if _, err := versioned(identity, address, ""); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want %q", address, err, says)
		}
	}
	for address, want := range map[string]string{
		"http://c:8774/v2.1/": "http://c:8774/v2.1/", "http://c/compute/v2.1/p1/": "http://c/compute/v2.1/", "http://c/v2/p1/": "http://c/v2/",
	} {
		if got := versionRoot(address); got != want {
			t.Errorf("root of %s: got %s, want %s", address, got, want)
		}
	}
}

// catalogue makes entries of "type region interface address".
func catalogue(lines ...string) []tokens.CatalogEntry {
	var entries []tokens.CatalogEntry
	for _, line := range lines {
		parts := strings.Fields(line)
		entries = append(entries, tokens.CatalogEntry{Type: parts[0], Endpoints: []tokens.Endpoint{{
			Region: parts[1], RegionID: parts[1], Interface: parts[2], URL: parts[3],
		}}})
	}
	return entries
}

// TestCatalogues: the choice does not depend on the catalogue's order, and is
// refused where it would be a guess. Only the compute service has to be there.
func TestCatalogues(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lines   []string
		creds   credentials
		want    map[string]string
		region  string
		says    string
		missing map[string]string
	}{
		"one region": {
			lines:  []string{"compute R1 public http://c", "network R1 public http://n", "image R1 public http://g"},
			want:   map[string]string{compute: "http://c/v2.1/", network: "http://n/v2.0/", image: "http://g/v2/"},
			region: "R1", missing: map[string]string{volume: "no public endpoint"},
		},
		"several regions, none named": {
			lines: []string{"compute R2 public http://c2", "compute R1 public http://c1"},
			says:  "several regions: R1, R2; set region_name",
		},
		"several regions, one named": {
			lines: []string{"compute R2 public http://c2", "compute R1 public http://c1", "image R2 public http://g2", "image R1 public http://g1"},
			creds: credentials{region: "R1"}, region: "R1",
			want: map[string]string{compute: "http://c1/v2.1/", image: "http://g1/v2/"},
		},
		"the others are looked for where the servers are": {
			lines: []string{"image R1 public http://g1", "image R2 public http://g2", "compute R2 public http://c2"},
			want:  map[string]string{compute: "http://c2/v2.1/", image: "http://g2/v2/"}, region: "R2",
		},
		"another region": {
			lines: []string{"compute R2 public http://c2"}, creds: credentials{region: "R1"}, says: `region "R1" does not have it; these do: R2`,
		},
		"no compute": {lines: []string{"image R1 public http://g1"}, says: "no public endpoint"},
		"no network, no image": {
			lines: []string{"compute R1 public http://c", "network R1 admin http://n", "image R9 public http://g"}, region: "R1",
			want:    map[string]string{compute: "http://c/v2.1/"},
			missing: map[string]string{network: "no public endpoint", image: `region "R1" does not have it`},
		},
		"an interface of its own": {
			lines: []string{"compute R1 internal http://ci", "compute R1 public http://c", "image R1 public http://g"},
			creds: credentials{iface: "public", ifaces: map[string]string{compute: "internal"}}, region: "R1",
			want: map[string]string{compute: "http://ci/v2.1/", image: "http://g/v2/"},
		},
		"the legacy API last": {
			lines:  []string{"compute R1 public http://a/v2/p", "compute R1 public http://c/v2.1"},
			region: "R1", want: map[string]string{compute: "http://c/v2.1/"},
		},
		"override": {
			lines: []string{"compute R1 public http://a"}, creds: credentials{overrides: map[string]string{compute: "https://own/v2.1"}},
			region: "R1", want: map[string]string{compute: "https://own/v2.1/"},
		},
		"no address": {lines: []string{"compute R1 public nova"}, says: "begin with https://"},
	} {
		creds := row.creds
		if creds.iface == "" {
			creds.iface = "public"
		}
		for range 2 {
			got, err := chooseEndpoints(catalogue(row.lines...), creds, "p")
			if row.says != "" {
				if err == nil || !strings.Contains(err.Error(), row.says) {
					t.Errorf("%s: got %v, want %q", name, err, row.says)
				}
			} else if err != nil || got.region != row.region {
				t.Errorf("%s: region %q, %v", name, got.region, err)
			}
			for service, want := range row.want {
				if got.addresses[service] != want {
					t.Errorf("%s: %s at %s, want %s", name, service, got.addresses[service], want)
				}
			}
			for service, says := range row.missing {
				if err := got.missing[service]; err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %s: got %v, want %q", name, service, err, says)
				}
			}
			slices.Reverse(row.lines)
		}
	}
}
