package ociregistry

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const challengeHeader = "Www-Authenticate"

// challengeTransport leaves of the challenges of a 401 the one that can be
// answered, in the form that oras-go reads: it looks at the first header only,
// and wants RFC 9110's quoting to the letter. Where a server asks for credentials
// without a challenge, it is taken to want the oldest one, Basic. If none can be
// answered, that is the error.
type challengeTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t challengeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	given := resp.Header.Values(challengeHeader)
	if len(given) == 0 {
		resp.Header.Set(challengeHeader, `Basic realm=""`)
		return resp, nil
	}
	chosen := chooseChallenge(r.URL, given)
	if chosen == "" {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: 401, and it asks for %s; only Basic, and Bearer with the address of a token endpoint, can be answered",
			ErrUnauthorized, line(strings.Join(given, ", ")))
	}
	resp.Header.Set(challengeHeader, chosen)
	return resp, nil
}

// challenge is a scheme with its parameters, whose names are in lower case.
type challenge struct {
	scheme string
	params map[string]string
}

// chooseChallenge prefers a token to a password, as docker does. The token endpoint
// is at an address that may be relative to what was asked for.
func chooseChallenge(asked *url.URL, headers []string) string {
	basic := ""
	for _, header := range headers {
		for _, c := range parseChallenges(header) {
			switch {
			case strings.EqualFold(c.scheme, "Bearer"):
				realm, err := asked.Parse(c.params["realm"])
				if c.params["realm"] == "" || err != nil || realm.Host == "" || realm.Scheme != "https" && realm.Scheme != "http" {
					continue
				}
				params := []string{"realm=" + strconv.Quote(realm.String())}
				for _, name := range []string{"service", "scope"} {
					if value := c.params[name]; value != "" {
						params = append(params, name+"="+strconv.Quote(value))
					}
				}
				return "Bearer " + strings.Join(params, ",")
			case strings.EqualFold(c.scheme, "Basic"):
				basic = `Basic realm=` + strconv.Quote(c.params["realm"])
			}
		}
	}
	return basic
}

// parseChallenges reads one or several challenges of a header, RFC 9110 section
// 11.6.1, and is lenient where servers are known to be: single quotes, values
// with a colon or slash that are not quoted, no comma between parameters.
func parseChallenges(header string) []challenge {
	var found []challenge
	rest := header
	for {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			return found
		}
		word, after := cutWord(rest)
		if word == "" { // nothing that could begin a challenge or a parameter
			rest = rest[1:]
			continue
		}
		if next := strings.TrimLeft(after, " \t"); strings.HasPrefix(next, "=") && len(found) > 0 {
			var value string
			value, rest = cutValue(strings.TrimLeft(next[1:], " \t"))
			last := found[len(found)-1]
			if name := strings.ToLower(word); last.params[name] == "" {
				last.params[name] = value
			}
			continue
		}
		found = append(found, challenge{scheme: word, params: map[string]string{}})
		rest = after
	}
}

// cutWord cuts a scheme or the name of a parameter off.
func cutWord(s string) (word, rest string) {
	end := strings.IndexAny(s, " \t,=\"'")
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// cutValue cuts the value of a parameter off.
func cutValue(s string) (value, rest string) {
	if s == "" {
		return "", ""
	}
	quote := s[0]
	if quote != '"' && quote != '\'' {
		end := strings.IndexAny(s, " \t,")
		if end < 0 {
			return s, ""
		}
		return s[:end], s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == quote:
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}
