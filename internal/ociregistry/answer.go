package ociregistry

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

const (
	// refusalLimit bounds how much of the text of a refusal is read, in bytes.
	refusalLimit = 16 << 10
	// reasonLimit bounds how much of it is shown where it is not the
	// specification's JSON, in characters.
	reasonLimit = 120
)

// refusal is an answer whose status is no success.
type refusal struct {
	method, url string
	status      int
	// reason is what the registry says, in one line.
	reason string
	// kind is one of the package's sentinels.
	kind error
	// redirected says that another server answered than the one that was asked.
	redirected bool
}

// Error names the URL without its query, which may hold a signature.
func (r *refusal) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", r.method, r.url, r.status, http.StatusText(r.status))
	if r.reason != "" {
		text += ": " + r.reason
	}
	return text
}

// Unwrap returns the kind.
func (r *refusal) Unwrap() error { return r.kind }

// refused reads a refusal and closes the answer.
func refused(resp *http.Response) *refusal {
	defer resp.Body.Close()
	content, _ := io.ReadAll(io.LimitReader(resp.Body, refusalLimit))
	if plain, err := unzip(resp.Header, content, refusalLimit); err == nil {
		content = plain
	}
	return &refusal{
		method: resp.Request.Method, url: shown(resp.Request.URL), status: resp.StatusCode,
		reason: reasonOf(content), kind: kindOfStatus(resp.StatusCode),
		redirected: left(resp),
	}
}

// statusOf is the status of the refusal behind an error, 0 if there is none.
func statusOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	return 0
}

// shown is a URL for messages: without query, fragment and user, which may be
// secrets.
func shown(u *url.URL) string {
	if u == nil {
		return ""
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return bare.String()
}

// reasonOf reads why a registry refuses: the specification's list of errors, or
// what others write in its place.
func reasonOf(content []byte) string {
	var body struct {
		Errors  errcode.Errors `json:"errors"`
		Error   any            `json:"error"`
		Message any            `json:"message"`
		Detail  any            `json:"detail"`
	}
	err := json.Unmarshal(content, &body)
	switch {
	case err == nil && len(body.Errors) > 0:
		spellOut(body.Errors)
		return strings.TrimPrefix(body.Errors.Error(), ": ")
	case err == nil:
		for _, text := range []any{body.Message, body.Error, body.Detail} {
			if text, ok := text.(string); ok && text != "" {
				return line(text)
			}
		}
		return ""
	case isPage(content):
		return page(content)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	return line(text)
}

// spellOut keeps a registry's words in the line of their error, and writes as
// JSON, as the registry did, what errcode would print in Go's notation for maps
// and lists.
func spellOut(list errcode.Errors) {
	for i, one := range list {
		list[i].Code, list[i].Message = plaintext.Line(one.Code), plaintext.Line(one.Message)
		switch detail := one.Detail.(type) {
		case nil:
		case string:
			list[i].Detail = plaintext.Line(detail)
		default:
			if text, err := json.Marshal(detail); err == nil {
				list[i].Detail = plaintext.Line(string(text))
			}
		}
	}
}

// line makes one short line of a text.
func line(text string) string {
	runes := []rune(plaintext.Line(strings.Join(strings.Fields(text), " ")))
	if len(runes) > reasonLimit {
		runes = append(runes[:reasonLimit], '…')
	}
	return string(runes)
}

// isPage reports whether content is a web page, by what it is and not by what it
// is called: servers that know no better call JSON text/html, too.
func isPage(content []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n\ufeff"), []byte("<"))
}

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// page describes a web page.
func page(content []byte) string {
	if title := pageTitle.FindSubmatch(content); title != nil {
		if text := line(html.UnescapeString(string(title[1]))); text != "" {
			return fmt.Sprintf("a web page titled %q", text)
		}
	}
	return "a web page"
}

// document reads the body of an answer that should be a JSON object of at most
// limit bytes, and closes it. What is something else is [ErrPage] or [ErrAnswer],
// and is returned as well.
func document(resp *http.Response, limit int64) ([]byte, error) {
	defer resp.Body.Close()
	at := resp.Request.Method + " " + shown(resp.Request.URL)
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, limit %d", at, ErrTooLarge, resp.ContentLength, limit)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s: %w: over the limit of %d bytes", at, ErrTooLarge, limit)
	}
	if content, err = unzip(resp.Header, content, limit); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	start := bytes.TrimLeft(content, " \t\r\n")
	switch {
	case isPage(content):
		return content, fmt.Errorf("%s: %w, %s", at, ErrPage, page(content))
	case !bytes.HasPrefix(start, []byte("{")):
		contentType := resp.Header.Get("Content-Type")
		return content, fmt.Errorf("%s: %w: %d bytes of %q, want JSON", at, ErrAnswer, len(content), line(contentType))
	}
	// Some proxies put an error behind a status of success.
	var failed struct {
		Errors json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(content, &failed) == nil && len(failed.Errors) > 0 {
		return content, fmt.Errorf("%s: %w: status %d with an error: %s", at, ErrAnswer, resp.StatusCode, reasonOf(content))
	}
	return content, nil
}

// unzip undoes a compression that was not asked for.
func unzip(h http.Header, content []byte, limit int64) ([]byte, error) {
	if !isZipped(h) {
		return content, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: Content-Encoding gzip: %w", ErrAnswer, err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: Content-Encoding gzip: %w", ErrAnswer, err)
	case int64(len(plain)) > limit:
		return nil, fmt.Errorf("%w: over the limit of %d bytes", ErrTooLarge, limit)
	}
	return plain, nil
}

func isZipped(h http.Header) bool {
	encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	return encoding == "gzip" || encoding == "x-gzip"
}

// mediaType is the Content-Type of an answer without its parameters, "" if there
// is none.
func mediaType(h http.Header) string {
	parsed, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return parsed
}

// ofTokenEndpoint turns what auth.Client says about the token endpoint into a
// kind. A 404 of that endpoint says nothing about what was asked for.
func ofTokenEndpoint(req *http.Request, resp *errcode.ErrorResponse) error {
	kind := kindOfStatus(resp.StatusCode)
	if kind == ErrNotFound || kind == ErrUnsupported || kind == ErrAnswer { //nolint:errorlint // a kind is the bare sentinel
		kind = ErrUnavailable
	}
	spellOut(resp.Errors)
	reason := ""
	if len(resp.Errors) > 0 {
		reason = resp.Errors.Error()
	}
	return fmt.Errorf("%s %s: the registry's token endpoint: %w", req.Method, shown(req.URL), &refusal{
		method: resp.Method, url: shown(resp.URL), status: resp.StatusCode, reason: reason, kind: kind,
	})
}

// isNotFound covers what oras-go finds missing in a layout.
func isNotFound(err error) bool { return errors.Is(err, errdef.ErrNotFound) }
