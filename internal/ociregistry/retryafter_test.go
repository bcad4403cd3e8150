package ociregistry

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAskedToWait reads what registries say about their limits, in their ways.
func TestAskedToWait(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0).UTC()
	for name, c := range map[string]struct {
		status int
		header string
		want   time.Duration
		asked  bool
	}{
		"seconds":                      {429, "Retry-After: 90", 90 * time.Second, true},
		"a date":                       {503, "Retry-After: " + now.Add(time.Minute).Format(http.TimeFormat), time.Minute, true},
		"a date that is over":          {503, "Retry-After: " + now.Add(-time.Minute).Format(http.TimeFormat), 0, true},
		"seconds since 1970":           {429, "Retry-After: 1800000030", 30 * time.Second, true},
		"nothing":                      {429, "", 0, false},
		"a word":                       {429, "Retry-After: soon", 0, false},
		"below zero":                   {429, "Retry-After: -5", 0, false},
		"beyond all bounds":            {429, "Retry-After: 99999999999999999999", 0, false},
		"reset from now":               {429, "RateLimit-Reset: 45", 45 * time.Second, true},
		"reset since 1970 (GitLab)":    {429, "RateLimit-Reset: 1800000060", time.Minute, true},
		"reset that is over":           {429, "RateLimit-Reset: 1799999999", 0, true},
		"reset by its older name":      {429, "X-RateLimit-Reset: 1800000060", time.Minute, true},
		"reset with parameters":        {429, "RateLimit-Reset: 45;w=60", 45 * time.Second, true},
		"reset in a week":              {429, "RateLimit-Reset: 604800", 0, false},
		"Retry-After comes first":      {429, "Retry-After: 5|RateLimit-Reset: 45", 5 * time.Second, true},
		"reset, and no refusal":        {200, "RateLimit-Remaining: 0;w=21600|RateLimit-Reset: 45", 0, false},
		"reset, and another failure":   {503, "RateLimit-Reset: 45", 0, false},
		"remaining without a reset":    {429, "RateLimit-Remaining: 0;w=21600", 0, false},
		"reset that is not a number":   {429, "RateLimit-Reset: never", 0, false},
		"reset of the far future, too": {429, "RateLimit-Reset: 1900000000", 0, false},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}}
		for line := range strings.SplitSeq(c.header, "|") {
			if key, value, ok := strings.Cut(line, ": "); ok {
				resp.Header.Set(key, value)
			}
		}
		if got, asked := askedToWait(resp, now); got != c.want || asked != c.asked {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, asked, c.want, c.asked)
		}
	}
}

// TestAllowance reads Docker Hub's header.
func TestAllowance(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"100;w=21600":  "it allows 100 in 6h0m0s",
		"100; w=21600": "it allows 100 in 6h0m0s",
		"100":          "",
		"":             "",
		"many;w=1":     "",
		"1;w=-1":       "",
	} {
		if got := allowance(http.Header{"Ratelimit-Limit": {value}}); got != want {
			t.Errorf("%q: %q; want %q", value, got, want)
		}
	}
}
