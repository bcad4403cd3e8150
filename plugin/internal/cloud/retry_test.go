package cloud

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	header := func(value string) http.Header { return http.Header{"Retry-After": {value}} }
	s := time.Second
	for name, row := range map[string]struct {
		status  int
		header  http.Header
		changes bool
		attempt int
		least   time.Duration
		again   bool
	}{
		"503, safe":                         {status: 503, least: s, again: true},
		"503, second time":                  {status: 503, attempt: 1, least: 2 * s, again: true},
		"503, third time":                   {status: 503, attempt: 2, least: 4 * s, again: true},
		"503, fourth time":                  {status: 503, attempt: 3},
		"502, safe":                         {status: 502, least: s, again: true},
		"504, safe":                         {status: 504, least: s, again: true},
		"503 with Retry-After":              {status: 503, header: header("7"), least: 7 * s, again: true},
		"503 with Retry-After, not safe":    {status: 503, header: header("7"), changes: true},
		"502, not safe":                     {status: 502, changes: true},
		"no answer, safe":                   {status: 0, least: s, again: true},
		"no answer, not safe":               {status: 0, changes: true},
		"500":                               {status: 500},
		"429":                               {status: 429, least: s, again: true},
		"429, not safe, yet surely refused": {status: 429, changes: true, least: s, again: true},
		"429 in seconds":                    {status: 429, header: header("5"), least: 5 * s, again: true},
		"429 as a date":                     {status: 429, header: header(now.Add(9 * s).Format(http.TimeFormat)), least: 9 * s, again: true},
		"429 as a date, by another clock": {status: 429, least: 9 * s, again: true, header: http.Header{
			"Retry-After": {now.Add(-time.Hour).Format(http.TimeFormat)}, "Date": {now.Add(-time.Hour - 9*s).Format(http.TimeFormat)},
		}},
		"429 for too long":               {status: 429, header: header("3600"), least: 30 * s, again: true},
		"429 for longer than a duration": {status: 429, header: header("10000000000"), least: 30 * s, again: true},
		"429 in the past":                {status: 429, header: header(now.Add(-s).Format(http.TimeFormat)), again: true},
		"429 with nonsense":              {status: 429, header: header("soon"), least: s, again: true},
		"413 with Retry-After":           {status: 413, header: header("2"), changes: true, least: 2 * s, again: true},
		"413 without":                    {status: 413},
		"498":                            {status: 498, least: s, again: true},
		"400":                            {status: 400},
		"404":                            {status: 404},
	} {
		failed := &Error{Status: row.status, Kind: ErrTransient}
		pause, again := retryDelay(failed, row.header, row.changes, row.attempt, now)
		if again != row.again || again && (pause < row.least || pause > row.least+row.least/2) {
			t.Errorf("%s: got %v %v, want %v %v", name, pause, again, row.least, row.again)
		}
	}
}

// TestRecordedErrors classifies what real services answered.
func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kind error
		says string
	}{
		"nova-2.93-server-show-404":                         {ErrNotFound, "could not be found"},
		"nova-2.52-server-create-403-quota-instances":       {ErrQuota, "already used 2 of 2 instances"},
		"nova-2.93-server-delete-locked":                    {ErrConflict, "is locked"},
		"nova-2.93-server-create-refused-network-ambiguous": {ErrConflict, "network"},
		"nova-2.93-server-create-refused-flavor-unknown":    {ErrInvalid, "lavor"},
		"nova-2.999-microversion-406":                       {ErrUnsupported, "not supported"},
		"glance-image-404":                                  {ErrNotFound, "No image found"},
		"neutron-network-404":                               {ErrNotFound, "could not be found"},
		"neutron-floatingip-409-quota":                      {ErrQuota, "uota exceeded"},
		"keystone-token-appcred-401":                        {ErrUnauthorized, "requires authentication"},
	} {
		r := record(t, name)
		header := http.Header{}
		for key, value := range r.Response.Headers {
			header.Set(key, value)
		}
		service, _, _ := strings.Cut(name, "-")
		got := answered("op", map[string]string{"nova": compute, "glance": image, "neutron": network, "keystone": identity}[service], gophercloud.ErrUnexpectedResponseCode{
			Actual: r.Response.Status, Body: r.Response.Body, ResponseHeader: header,
		}, true, &redactor{})
		if got.Kind != want.kind || !strings.Contains(got.Error(), want.says) || !strings.Contains(got.Error(), "req-") || got.Doubtful { //nolint:errorlint // the field itself
			t.Errorf("%s: got %v (%v), want %v with %q and the request", name, got, got.Kind, want.kind, want.says)
		}
	}
}

func TestOnlyTheServiceItselfCanSayNotFound(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"<html>404</html>", "", "{}", `{"detail": "no such route"}`,
		// Gateways in front of Nova, in the words of other services.
		`{"message": "no Route matched with those values"}`,
		`{"error": {"code": 404, "message": "Not Found"}}`,
		`{"NeutronError": {"message": "Not Found"}}`,
	} {
		got := answered("show server a", compute, gophercloud.ErrUnexpectedResponseCode{Actual: 404, Body: []byte(body)}, false, &redactor{})
		if got.Kind != ErrTransient { //nolint:errorlint // the field itself
			t.Errorf("404 with body %q: got %v, want a temporary failure", body, got.Kind)
		}
	}
}

func TestFaultKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"No valid host was found. ":                                      ErrNoHost,
		"No valid host was found. There are not enough hosts available.": ErrNoHost,
		"Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance x.":               ErrNoHost,
		"Build of instance x aborted: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota.": ErrQuota,
		"Build of instance x aborted: VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'.":       ErrQuota,
		"Maximum number of ports exceeded":            ErrQuota,
		"Quota exceeded, too many servers in group":   ErrQuota,
		"No more IP addresses available on network x": ErrNoHost,
		"Build of instance x aborted: disk on fire":   nil,
	} {
		if got := FaultKind(text); got != want { //nolint:errorlint // sentinels
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestMicroversionsParse(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"2.93": 93, "2.1": 1, "": 0, "3.1": 0, "2": 0, "2.x": 0, "2.-1": 0} {
		got, ok := parseMinor(version)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q: got %d %v, want %d", version, got, ok, want)
		}
	}
}
