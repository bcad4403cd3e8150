package ociregistry

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChooseChallenge reads the challenges that servers write.
func TestChooseChallenge(t *testing.T) {
	t.Parallel()
	asked := &url.URL{Scheme: "https", Host: "registry.test", Path: "/v2/a/b/tags/list"}
	const bearer = `Bearer realm="https://auth.test/token",service="registry.test",scope="repository:a/b:pull,push"`
	for name, c := range map[string]struct {
		headers []string
		want    string
	}{
		"as specified":           {[]string{bearer}, bearer},
		"Basic":                  {[]string{`Basic realm="x"`}, `Basic realm="x"`},
		"Basic alone":            {[]string{"basic"}, `Basic realm=""`},
		"Bearer behind Basic":    {[]string{`Basic realm="x"`, bearer}, bearer},
		"all in one":             {[]string{`Negotiate, Basic realm="x, y", ` + bearer}, bearer},
		"Negotiate with a token": {[]string{`Negotiate YIIJ+/=`, `Basic realm="x"`}, `Basic realm="x"`},
		"without quotes":         {[]string{`Bearer realm=https://auth.test/token,service=registry.test`}, `Bearer realm="https://auth.test/token",service="registry.test"`},
		"single quotes":          {[]string{`BEARER Realm='https://auth.test/token' service='registry.test'`}, `Bearer realm="https://auth.test/token",service="registry.test"`},
		"escapes":                {[]string{`Bearer realm="https://auth.test/\"token\"",error="x"`}, `Bearer realm="https://auth.test/%22token%22"`},
		"space around":           {[]string{`  Bearer   realm = "https://auth.test/token" , service = "s" `}, `Bearer realm="https://auth.test/token",service="s"`},
		"an open quote":          {[]string{`Bearer realm="https://auth.test/token`}, `Bearer realm="https://auth.test/token"`},
		"Bearer without a realm": {[]string{`Bearer service="s"`, "Basic"}, `Basic realm=""`},
		"a relative realm":       {[]string{`Bearer realm="/token",service="s"`}, `Bearer realm="https://registry.test/token",service="s"`},
		"a realm without a host": {[]string{`Bearer realm="mailto:a@b"`, `Bearer realm="https://%zz"`}, ""},
		"another scheme":         {[]string{`Bearer realm="ftp://auth.test/token"`}, ""},
		"what nobody knows":      {[]string{"Digest qop=auth", "=, ,\""}, ""},
		"nothing":                {nil, ""},
	} {
		if got := chooseChallenge(asked, c.headers); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

func FuzzParseChallenges(f *testing.F) {
	f.Add(`Negotiate, Bearer realm="https://a/b",service='c' scope=d, Basic realm=`)
	f.Fuzz(func(t *testing.T, header string) {
		for _, c := range parseChallenges(header) {
			if c.scheme == "" {
				t.Errorf("a challenge without a scheme in %q", header)
			}
		}
	})
}

// TestNextPage follows links in the forms that registries write, and none to
// another host.
func TestNextPage(t *testing.T) {
	t.Parallel()
	const here = "https://registry.test/v2/a/tags/list"
	for name, c := range map[string]struct {
		links []string
		want  string
		fails bool
	}{
		"none":                      {nil, "", false},
		"as specified":              {[]string{`</v2/a/tags/list?last=b&n=2>; rel="next"`}, here + "?last=b&n=2", false},
		"absolute":                  {[]string{`<https://registry.test/v2/a/tags/list?last=b>; rel="next"`}, here + "?last=b", false},
		"another scheme":            {[]string{`<http://registry.test/v2/a/tags/list?last=b>;rel=next`}, here + "?last=b", false},
		"the usual port":            {[]string{`<https://registry.test:443/v2/a/tags/list?last=b>; rel="next"`}, here + "?last=b", false},
		"no scheme":                 {[]string{`<registry.test/v2/a/tags/list?last=b>; rel="next"`}, here + "?last=b", false},
		"a query":                   {[]string{`<?last=b>; rel="next"`}, here + "?last=b", false},
		"another port":              {[]string{`<https://registry.test:5000/v2/a/tags/list?last=b>; rel="next"`}, "", true},
		"another host":              {[]string{`<https://other.test/v2/a/tags/list?last=b>; rel="next"`}, "", true},
		"a user":                    {[]string{`<https://me:pw@registry.test/v2/a/tags/list?last=b>; rel="next"`}, here + "?last=b", false},
		"among others":              {[]string{`<x>; rel="first", </v2/a/tags/list?last=b>; rel="up next"`}, here + "?last=b", false},
		"in another header":         {[]string{`<x>; rel="prev"`, `</v2/a/tags/list?last=b>; rel=NEXT; type="a,b"`}, here + "?last=b", false},
		"only others":               {[]string{`<x>; rel="prev"`}, "", false},
		"no parameters":             {[]string{`</v2/a/tags/list?last=b>`}, here + "?last=b", false},
		"no end":                    {[]string{`</v2/a`}, "", true},
		"no address":                {[]string{`<:>; rel="next"`}, "", true},
		"a comma within the quotes": {[]string{`</v2/a/tags/list?last=b>; title="a, b"; rel="next"`}, here + "?last=b", false},
	} {
		asked, err := url.Parse(here)
		if err != nil {
			t.Fatal(err)
		}
		got, err := nextPage(&http.Response{Header: http.Header{"Link": c.links}, Request: &http.Request{URL: asked}})
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
			t.Errorf("%s: %v, want an error = %v\n%s", name, err, c.fails, diff)
		}
	}
}
