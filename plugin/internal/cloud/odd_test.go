package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const stageServer = "a895998f-1194-4834-ad6f-dd67d8f0a204"

// calls are all that a client can be asked for, with the list or the object that
// the answer is about.
func calls() map[string]struct {
	key string
	do  func(context.Context, *Client) error
} {
	type call = struct {
		key string
		do  func(context.Context, *Client) error
	}
	return map[string]call{
		"ListServers": {"servers", func(ctx context.Context, c *Client) error { _, err := c.ListServers(ctx, "tag", time.Hour); return err }},
		"FindServers": {"servers", func(ctx context.Context, c *Client) error { _, err := c.FindServers(ctx, "tag", "n"); return err }},
		"GetServer":   {"server", func(ctx context.Context, c *Client) error { _, err := c.GetServer(ctx, stageServer); return err }},
		"CreateServer": {"server", func(ctx context.Context, c *Client) error {
			_, err := c.CreateServer(ctx, ServerSpec{
				Name: "n", UserData: []byte(stageUserData), Metadata: map[string]string{"k": stageMetadata},
			})
			return err
		}},
		"DeleteServer":         {"", func(ctx context.Context, c *Client) error { return c.DeleteServer(ctx, stageServer) }},
		"ForceDeleteServer":    {"", func(ctx context.Context, c *Client) error { return c.ForceDeleteServer(ctx, stageServer) }},
		"UnlockServer":         {"", func(ctx context.Context, c *Client) error { return c.UnlockServer(ctx, stageServer) }},
		"ResolveFlavor":        {"flavors", func(ctx context.Context, c *Client) error { _, err := c.ResolveFlavor(ctx, "n"); return err }},
		"ResolveImage":         {"images", func(ctx context.Context, c *Client) error { _, err := c.ResolveImage(ctx, "n"); return err }},
		"GetImage":             {"image", func(ctx context.Context, c *Client) error { _, err := c.GetImage(ctx, stageServer); return err }},
		"ResolveNetwork":       {"networks", func(ctx context.Context, c *Client) error { _, err := c.ResolveNetwork(ctx, "n"); return err }},
		"ResolveSecurityGroup": {"security_groups", func(ctx context.Context, c *Client) error { _, err := c.ResolveSecurityGroup(ctx, "n"); return err }},
		"ResolveServerGroup":   {"server_groups", func(ctx context.Context, c *Client) error { _, err := c.ResolveServerGroup(ctx, "n"); return err }},
		"CheckKeyPair":         {"keypairs", func(ctx context.Context, c *Client) error { return c.CheckKeyPair(ctx, "n") }},
		"ResolveZone":          {"availabilityZoneInfo", func(ctx context.Context, c *Client) error { _, err := c.ResolveZone(ctx, "n"); return err }},
		"ResolveVolumeType":    {"volume_types", func(ctx context.Context, c *Client) error { _, err := c.ResolveVolumeType(ctx, "n"); return err }},
		"Families":             {"subnets", func(ctx context.Context, c *Client) error { _, _, err := c.Families(ctx, Network{}); return err }},
		"PortsOf": {"ports", func(ctx context.Context, c *Client) error {
			_, err := c.PortsOf(ctx, "n", []string{stageServer})
			return err
		}},
		"Limits": {"limits", func(ctx context.Context, c *Client) error { _, err := c.Limits(ctx); return err }},
	}
}

// odd is an answer that no service should give.
type odd struct {
	answer func(r *http.Request, key string) (*http.Response, error)
	// kind is what the error is, nil for any but ErrNotFound and ErrUnknown.
	kind error
	// effect tells whether what changes something may have taken effect.
	effect bool
	// says is a part of each message.
	says string
	// fine lists calls for which there is nothing odd in it.
	fine string
}

func answer(status int, kind, body string) func(*http.Request, string) (*http.Response, error) {
	return func(_ *http.Request, key string) (*http.Response, error) {
		return respond(status, kind, strings.NewReader(strings.ReplaceAll(body, "KEY", key))), nil
	}
}

func endlessly(status int, text string) func(*http.Request, string) (*http.Response, error) {
	return func(*http.Request, string) (*http.Response, error) {
		return respond(status, "application/json", io.MultiReader(strings.NewReader(`{"a": "`), endless(text))), nil
	}
}

func redirect(status int, to string) func(*http.Request, string) (*http.Response, error) {
	return func(*http.Request, string) (*http.Response, error) {
		moved := respond(status, "text/html", strings.NewReader("moved"))
		moved.Header.Set("Location", to)
		return moved, nil
	}
}

// repeat answers with everything that came, as services do that explain what was
// wrong with it.
func repeat(status int, wrapper, format string) func(*http.Request, string) (*http.Response, error) {
	return func(r *http.Request, _ string) (*http.Response, error) {
		var sent []byte
		if r.Body != nil {
			sent, _ = io.ReadAll(r.Body)
		}
		everything := fmt.Sprintf("%s %s %q %s %s", sent, r.Header, stageUserData, stagePassword, stageMetadata)
		text := fmt.Sprintf(format, everything)
		if wrapper == "" {
			return respond(status, "text/html", strings.NewReader(text)), nil
		}
		return reply(status, fmt.Sprintf(`{%q: {"message": %s}}`, wrapper, quoteJSON(text))), nil
	}
}

func oddAnswers() map[string]odd {
	const html, jsonKind = "text/html; charset=utf-8", "application/json"
	const nothing = "DeleteServer ForceDeleteServer UnlockServer"
	portal := "<html><title>Sign in</title>\x1b[31mplease \u202esign in\u0085</html>"
	return map[string]odd{
		"a portal's page":         {answer: answer(200, html, portal), effect: true, says: "text/html"},
		"an empty success":        {answer: answer(200, jsonKind, ""), effect: true},
		"an empty object":         {answer: answer(200, jsonKind, "{}"), effect: true, fine: "Limits"},
		"a list":                  {answer: answer(200, jsonKind, "[]"), effect: true},
		"null":                    {answer: answer(200, jsonKind, "null"), effect: true, fine: "Limits"},
		"a number":                {answer: answer(200, jsonKind, "7"), effect: true},
		"text":                    {answer: answer(200, "text/plain", "OK"), effect: true, says: "text/plain"},
		"cut off":                 {answer: answer(200, jsonKind, `{"KEY": [{"id": "`), effect: true},
		"followed by more":        {answer: answer(200, jsonKind, `{"KEY": []} {}`), effect: true},
		"an object for a list":    {answer: answer(200, jsonKind, `{"KEY": {"id": []}}`), effect: true, fine: "Limits"},
		"a list for an object":    {answer: answer(200, jsonKind, `{"KEY": [7, "x", null, []]}`), effect: true, fine: ""},
		"IDs that are objects":    {answer: answer(200, jsonKind, `{"KEY": [{"id": {"a": 1}, "name": [], "zoneName": 1, "keypair": 1}]}`), effect: true},
		"an ID that is a path":    {answer: answer(200, jsonKind, `{"KEY": [{"id": "../../x", "name": "x"}]}`), kind: nil, effect: true, fine: "unknown"},
		"no content":              {answer: answer(204, jsonKind, ""), effect: true, fine: nothing},
		"partial content":         {answer: answer(206, jsonKind, `{"KEY": []}`), effect: true},
		"not modified":            {answer: answer(304, jsonKind, "")},
		"multiple choices":        {answer: answer(300, jsonKind, `{"versions": []}`)},
		"another host":            {answer: redirect(302, "https://evil.example/x"), says: "redirect not followed"},
		"another host, 307":       {answer: redirect(307, "https://evil.example/x"), says: "redirect not followed"},
		"no https any more":       {answer: redirect(308, "http://nova.example/x"), says: "redirect not followed"},
		"another port":            {answer: redirect(308, "https://nova.example:8443/x"), says: "redirect not followed"},
		"itself":                  {answer: redirect(301, "?again"), says: "redirect not followed"},
		"nowhere":                 {answer: redirect(302, "://"), effect: true},
		"a proxy's 400":           {answer: answer(400, html, portal), kind: ErrInvalid, says: "text/html"},
		"401":                     {answer: answer(401, jsonKind, `{"error": {"message": "no"}}`), kind: ErrUnauthorized},
		"a proxy's 403":           {answer: answer(403, html, portal), kind: ErrForbidden, says: "text/html"},
		"a proxy's 404":           {answer: answer(404, html, portal), kind: ErrTransient, says: "text/html"},
		"a gateway's 404":         {answer: answer(404, jsonKind, `{"detail": "no route"}`), kind: ErrTransient},
		"405":                     {answer: answer(405, html, portal), kind: ErrInvalid, says: "text/html"},
		"407":                     {answer: answer(407, html, portal), kind: ErrInvalid, says: "text/html"},
		"408":                     {answer: answer(408, html, portal), kind: ErrTransient, effect: true},
		"413":                     {answer: answer(413, html, portal), kind: ErrTransient},
		"429":                     {answer: answer(429, html, portal), kind: ErrTransient},
		"500":                     {answer: answer(500, jsonKind, `{"computeFault": {"message": "Unexpected API Error."}}`), kind: ErrTransient, effect: true},
		"502":                     {answer: answer(502, html, portal), kind: ErrTransient, effect: true, says: "text/html"},
		"504":                     {answer: answer(504, html, portal), kind: ErrTransient, effect: true},
		"an endless 200":          {answer: endlessly(200, "x"), effect: true, fine: ""},
		"an endless 400":          {answer: endlessly(400, "x")},
		"an endless 500":          {answer: endlessly(500, "x"), kind: ErrTransient, effect: true},
		"a dripping 200":          {answer: dripping(200), effect: true},
		"a dripping 503":          {answer: dripping(503), effect: true},
		"no answer":               {answer: hang, effect: true, kind: ErrTransient},
		"a broken connection":     {answer: breaks, effect: true, kind: ErrTransient},
		"Nova's check, repeating": {answer: repeat(400, "badRequest", "Invalid input for field/attribute server. Value: %s. x is not of type 'string'"), kind: ErrInvalid},
		"400, repeating":          {answer: repeat(400, "badRequest", "What is %s?"), kind: ErrInvalid, says: "What is"},
		"500, repeating":          {answer: repeat(500, "computeFault", "Unexpected: %s"), kind: ErrTransient, effect: true},
		"a page, repeating":       {answer: repeat(403, "", "<html>forbidden: %s</html>"), kind: ErrForbidden, says: "forbidden"},
	}
}

func dripping(status int) func(*http.Request, string) (*http.Response, error) {
	return func(r *http.Request, _ string) (*http.Response, error) {
		return respond(status, "application/json", drip{r.Context().Done()}), nil
	}
}

func hang(r *http.Request, _ string) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func breaks(*http.Request, string) (*http.Response, error) { return nil, errBroken }

// TestOddAnswers makes every call meet every odd answer: none is taken for a
// success or for the proof that something does not exist, none is read without
// end, and none gets a secret into a message.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	for what, call := range calls() {
		for name, row := range oddAnswers() {
			if strings.Contains(row.fine, what) {
				continue
			}
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					started := false
					s := newStage(t, nil)
					s.play = func(r *http.Request) (*http.Response, error) {
						switch {
						case r.URL.Host == "keystone.example" || !started && r.URL.Path == "/v2.1/":
							return nil, nil //nolint:nilnil // as usual
						case !started:
							return reply(http.StatusOK, `{"servers": []}`), nil
						default:
							return row.answer(r, call.key)
						}
					}
					client := s.connect(t)
					if _, err := client.ListServers(t.Context(), "tag", time.Hour); err != nil {
						t.Fatal(err)
					}
					started = true
					began, read := time.Now(), s.read
					err := call.do(t.Context(), client)
					row.check(t, what, err)
					if took := time.Since(began); took > callTimeout+time.Minute {
						t.Errorf("took %v", took)
					}
					if got := s.read - read; got > 5*answerLimit {
						t.Errorf("%d bytes were read", got)
					}
					assertSafe(t, s.logged())
				})
			})
		}
	}
}

func (o odd) check(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("taken for a success")
	}
	changes := what == "CreateServer"
	if got := Doubtful(err); got != (changes && o.effect) {
		t.Errorf("in doubt: %v: %v", got, err)
	}
	if o.kind != nil && !errors.Is(err, o.kind) {
		t.Errorf("got %v, want %v", err, o.kind)
	}
	if errors.Is(err, ErrNotFound) && o.fine != "unknown" {
		t.Errorf("taken for the proof that there is none: %v", err)
	}
	if !strings.Contains(err.Error(), o.says) {
		t.Errorf("got %v, want a word of %q", err, o.says)
	}
	if len(err.Error()) > 1200 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	assertSafe(t, err.Error())
}

// assertSafe looks for secrets, and for what a terminal obeys.
func assertSafe(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{
		stagePassword, "horse:batt", stageToken, "of-the-stage", "cloud-config", "pa55 of the", "I2Nsb3VkLWNvbmZpZ", stageMetadata, "is-private",
		url.QueryEscape(stagePassword),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown: %s", secret, text)
		}
	}
	if i := strings.IndexFunc(strings.ReplaceAll(text, "\n", ""), unprintable); i >= 0 {
		t.Errorf("not printable: %q", text)
	}
}

func quoteJSON(text string) string {
	var b bytes.Buffer
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
