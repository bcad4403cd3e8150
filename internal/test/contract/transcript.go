package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Exchange is one call and its answer, without what differs from run to run.
type Exchange struct {
	Call   string            `json:"call"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   any               `json:"body,omitempty"`
}

// scrubber replaces what differs from run to run.
type scrubber struct {
	urls     *strings.Replacer
	patterns []pattern
}

type pattern struct {
	expression  *regexp.Regexp
	replacement string
}

func newScrubber(endpoints map[string]string) *scrubber {
	// Longest first, so that an endpoint wins over its root.
	type pair struct{ url, name string }
	var pairs []pair
	for service, endpoint := range endpoints {
		pairs = append(pairs, pair{endpoint, "<" + service + ">"})
		if root := rootOf(endpoint); root != endpoint && service != "legacy" { // whose root is Nova's
			pairs = append(pairs, pair{root, "<" + service + " root>"})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(len(b.url), len(a.url)) })
	var replacements []string
	for _, p := range pairs {
		replacements = append(replacements, p.url, p.name)
	}
	var patterns []pattern
	for _, p := range [][2]string{
		{`req-[0-9a-f]{8}-[0-9a-f-]{27}`, "<request>"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "<uuid>"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`, "<time with microseconds and zone>"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}`, "<time with microseconds>"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "<time>"},
		{`(?:[0-9a-f]{2}:){15}[0-9a-f]{2}`, "<fingerprint>"},
		{`(?:[0-9a-f]{2}:){5}[0-9a-f]{2}`, "<mac>"},
		{`\b[0-9a-f]{128}\b`, "<sha512>"},
		{`\b[0-9a-f]{56}\b`, "<host>"},
		{`\b[0-9a-f]{32}\b`, "<hex>"},
		{`\bfd00:10:[0-9a-f:]+`, "<ipv6>"},
		{`\b(?:\d{1,3}\.){3}\d{1,3}\b(?:/\d+)?`, "<ipv4>"},
		{`ssh-(?:rsa|ed25519) [A-Za-z0-9+/=]+(?: \S+)?`, "<public key>"},
		{`\baz-[ab]\b`, "<zone>"},
		{`\br-[0-9a-z]{8}\b`, "<reservation>"},
	} {
		patterns = append(patterns, pattern{regexp.MustCompile(p[0]), p[1]})
	}
	return &scrubber{urls: strings.NewReplacer(replacements...), patterns: patterns}
}

func (s *scrubber) text(value string) string {
	value = s.urls.Replace(value)
	for _, p := range s.patterns {
		value = p.expression.ReplaceAllString(value, p.replacement)
	}
	return value
}

// body scrubs a decoded body; key is where it hangs.
func (s *scrubber) body(key string, value any) any {
	switch value := value.(type) {
	case string:
		if placeholder, hidden := hidden(key); hidden && value != "" {
			return placeholder
		}
		return s.text(value)
	case float64:
		if placeholder, hidden := hidden(key); hidden {
			return placeholder
		}
		return value
	case map[string]any:
		clean := map[string]any{}
		for name, inner := range value {
			clean[s.text(name)] = s.body(name, inner)
		}
		return clean
	case []any:
		clean := make([]any, 0, len(value))
		for _, inner := range value {
			clean = append(clean, s.body(key, inner))
		}
		return ordered(key, clean)
	default:
		return value
	}
}

// hidden names the fields whose values are chance or a matter of the lab.
func hidden(key string) (string, bool) {
	switch key {
	case "adminPass", "private_key":
		return "<secret>", true
	case "audit_ids":
		return "<audit>", true
	case "revision_number", "standard_attr_id":
		return "<number>", true
	case "updated":
		// Of versions: when the document was written.
		return "<time>", true
	default:
		return "", false
	}
}

// ordered sorts the lists whose order means nothing. Keystone's list of methods
// is one: it comes out of a set.
func ordered(key string, list []any) []any {
	switch key {
	case "links", "servers", "tags", "instanceActions":
		return list
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

// exchange makes the entry of a transcript.
func (s *scrubber) exchange(label string, r Reply) Exchange {
	entry := Exchange{Call: label, Status: r.Status, Header: map[string]string{}, Body: s.body("", r.Body)}
	for _, name := range []string{
		"Content-Type", "Location", "Openstack-Api-Version", "X-Openstack-Nova-Api-Version", "Vary",
		"X-Openstack-Request-Id", "X-Compute-Request-Id", "Www-Authenticate", "Retry-After",
	} {
		if value := r.Header.Get(name); value != "" {
			entry.Header[name] = s.text(value)
		}
	}
	if r.Header.Get("X-Subject-Token") != "" {
		entry.Header["X-Subject-Token"] = "<secret>"
	}
	if r.Status == http.StatusNoContent {
		// Whether nothing has a type is the web server's affair.
		delete(entry.Header, "Content-Type")
	}
	if len(r.raw) == 0 {
		delete(entry.Header, "Content-Type")
	}
	return entry
}

// encode writes a transcript the way it lies in testdata.
func encode(transcript []Exchange) ([]byte, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(transcript); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	return []byte(out.String()), nil
}
