package cloud

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestClocks: the difference is measured over several answers, and what no clock
// said is not believed.
func TestClocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	date := func(ahead time.Duration) http.Header {
		return http.Header{"Date": {now.Add(ahead).Format(http.TimeFormat)}}
	}
	for name, row := range map[string]struct {
		headers []http.Header
		took    time.Duration
		want    time.Duration
	}{
		"no answers":              {},
		"no difference":           {headers: []http.Header{date(0), date(time.Second), date(-time.Second)}},
		"20 min behind":           {headers: []http.Header{date(-20 * time.Minute)}, want: -20 * time.Minute},
		"an hour ahead":           {headers: []http.Header{date(time.Hour), date(time.Hour), date(time.Hour)}, want: time.Hour},
		"one wrong answer":        {headers: []http.Header{date(0), date(time.Hour), date(0)}},
		"a slow answer":           {headers: []http.Header{date(time.Hour)}, took: time.Minute},
		"on the way for a while":  {headers: []http.Header{date(4 * time.Second)}, took: 8 * time.Second},
		"from a cache":            {headers: []http.Header{{"Date": date(-time.Hour)["Date"], "Age": {"3600"}}}},
		"no date":                 {headers: []http.Header{{}, {"Date": {"yesterday"}}, {"Date": {""}}}},
		"a date beyond all bound": {headers: []http.Header{{"Date": {"Fri, 31 Dec 9999 23:59:59 GMT"}}, date(0), date(0)}},
	} {
		var c clock
		for _, header := range row.headers {
			c.observe(header, now, now.Add(row.took))
		}
		if got := c.offset(); (got - row.want).Abs() > time.Second {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
	var c clock
	var log strings.Builder
	for range 20 {
		c.observe(date(-20*time.Minute), now, now)
		c.report(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	}
	if strings.Count(log.String(), "differ") != 1 || !strings.Contains(log.String(), "20m0s") {
		t.Errorf("logged: %s", log.String())
	}
}

// TestCreatedIsCorrected: the age of a server is right by this machine's clock.
func TestCreatedIsCorrected(t *testing.T) {
	t.Parallel()
	made := time.Now().UTC().Truncate(time.Second)
	s := newStage(t, func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/servers/detail") {
			return nil, nil //nolint:nilnil // as usual
		}
		behind := made.Add(-20 * time.Minute)
		answer := reply(http.StatusOK, `{"servers": [{"id": "a", "tags": ["tag"], "created": "`+behind.Format(time.RFC3339)+`"}, {"id": "b", "tags": ["tag"]}]}`)
		answer.Header.Set("Date", time.Now().Add(-20*time.Minute).UTC().Format(http.TimeFormat))
		return answer, nil
	})
	client := s.connect(t)
	for range 2 {
		servers, err := client.ListServers(t.Context(), "tag", time.Hour)
		if err != nil || len(servers) != 2 {
			t.Fatal(servers, err)
		}
		if off := servers[0].Created.Sub(made); off.Abs() > 2*time.Second || !servers[1].Created.IsZero() {
			t.Errorf("made %v off: %v", off, servers)
		}
	}
}
