package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

const (
	// messageLimit bounds how many characters of a service's message are quoted,
	// and pageLimit how many of an answer that is not a service's.
	messageLimit = 500
	pageLimit    = 200
	// searchLimit bounds how much of a message is searched for what it repeats.
	searchLimit = 4 * messageLimit
)

// failure turns what gophercloud returned into an [Error]. changes tells
// whether a failure without an answer leaves the outcome open.
func failure(op, service string, err error, changes bool, secrets *redactor) *Error {
	var reauth *gophercloud.ErrUnableToReauthenticate
	var answer gophercloud.ErrUnexpectedResponseCode
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &reauth):
		// The service refused the old token, so it did nothing.
		// Callers that waited for one authentication share its error.
		inner := *failure("authenticate", identity, reauth.ErrReauth, false, secrets)
		inner.Op = op + ": authenticate"
		return &inner
	case errors.As(err, &answer):
		return answered(op, service, answer, changes, secrets)
	default:
		return &Error{
			Op: op, Kind: ErrTransient, Err: err, Doubtful: changes && !unsent(err),
			Message: quote(withoutQueries(err), messageLimit, secrets),
		}
	}
}

// withoutQueries is the text of an error of net/http, whose address would otherwise
// take the place of the reason behind it.
func withoutQueries(err error) string {
	text := err.Error()
	if at, ok := errors.AsType[*url.Error](err); ok {
		text = strings.ReplaceAll(text, at.URL, withoutQuery(at.URL))
	}
	return text
}

// unsent reports whether the request surely never left this machine.
func unsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	neverConnected := errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
	return errors.As(err, &dns) || neverConnected || errors.Is(err, errNotSent) || mistrusted(err)
}

// mistrusted reports whether this side refused the certificate of the other, met
// one that speaks no TLS, or was sent elsewhere. Nothing was done then, and
// another try comes to the same.
func mistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, errRedirected)
}

// errNotSent marks failures before the request was sent.
var errNotSent = errors.New("request was not sent")

// notService begins the message about an answer that is not in a service's form.
const notService = "answered by something else than the service"

// answered classifies an answer that is not a success.
func answered(op, service string, answer gophercloud.ErrUnexpectedResponseCode, changes bool, secrets *redactor) *Error {
	e := &Error{
		Op: op, Status: answer.Actual, RequestID: requestID(answer.ResponseHeader),
	}
	wrapper, text := explain(answer.Body)
	e.Kind = kindOf(service, e.Status, wrapper, text)
	if wrapper == "" {
		e.Message = notService + ": " + pageOf(answer.Method, answer.URL, answer.ResponseHeader, answer.Body, secrets)
	} else {
		e.Message = quote(text, messageLimit, secrets)
	}
	if e.Status == http.StatusUnauthorized && service != identity {
		e.Message = fmt.Sprintf("%s does not accept a token that Keystone has just issued; perhaps the access rules of the application credential lack %s %s: %s",
			service, answer.Method, withoutQuery(answer.URL), e.Message)
	}
	unclear := e.Status >= http.StatusInternalServerError || e.Status == http.StatusRequestTimeout || e.Status < http.StatusMultipleChoices
	e.Doubtful = changes && unclear && !turnedAway(e.Status, wrapper, oneLine(text, searchLimit))
	return e
}

// quote returns as much of a service's text as a message may hold.
func quote(text string, most int, secrets *redactor) string {
	return oneLine(secrets.hide(oneLine(text, searchLimit)), most)
}

// pageOf describes an answer that is not in a service's form, such as the page
// of a proxy: where it came from, and what it is. JSON is not quoted, for it may
// hold what only the service and its caller know.
func pageOf(method, address string, header http.Header, body []byte, secrets *redactor) string {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	what := method + " " + withoutQuery(address) + " returned " + cmp.Or(kind, "no content type")
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return what + " and an empty body"
	case text[0] == '{' || text[0] == '[':
		return what
	}
	return fmt.Sprintf("%s, %q", what, quote(stripTags(string(text)), pageLimit, secrets))
}

// withoutQuery is an address for people, without a password in it.
func withoutQuery(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "an invalid address"
	}
	parsed.RawQuery, parsed.Fragment = "", ""
	return parsed.Redacted()
}

// kindOf maps a service's status, the name of the JSON wrapper and the text to
// a kind.
func kindOf(service string, status int, wrapper, message string) error {
	switch status {
	case http.StatusUnauthorized:
		return ErrUnauthorized
	case http.StatusForbidden:
		if isQuota(message) {
			return ErrQuota
		}
		return ErrForbidden
	case http.StatusNotFound:
		return notFoundKind(service, wrapper, message)
	case http.StatusConflict:
		if isQuota(message) {
			return ErrQuota
		}
		return ErrConflict
	case http.StatusNotAcceptable:
		return ErrUnsupported
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusRequestTimeout, statusTokenRate:
		return ErrTransient
	}
	if status >= http.StatusInternalServerError {
		return ErrTransient
	}
	return ErrInvalid
}

// notFoundKind believes only the service's own "not found", in its own form. A
// proxy or a gateway answers 404 for everything while it is misconfigured, in
// HTML or in JSON, and that must not be taken for the deletion of every server.
func notFoundKind(service, wrapper, message string) error {
	if service == identity && strings.Contains(message, "Application Credential") {
		return ErrUnauthorized // Keystone, for one that was deleted
	}
	own := map[string]string{compute: "itemNotFound", network: "NeutronError", image: glanceError, identity: "error"}
	if form, ok := own[service]; ok && wrapper == form {
		return ErrNotFound
	}
	return ErrTransient
}

// glanceError stands for the errors of Glance, which have no wrapper: JSON
// with a message at the top or, in old releases, HTML.
const glanceError = "glance"

// explain finds the wrapper and the text in an error body: Nova and Cinder
// {"badRequest": {"message": …}}, Keystone {"error": {…}}, Neutron
// {"NeutronError": {…}}, Glance {"message": …} or HTML, proxies anything.
func explain(body []byte) (wrapper, message string) {
	var wrapped map[string]json.RawMessage
	if json.Unmarshal(body, &wrapped) != nil {
		text := stripTags(string(body))
		if strings.Contains(text, "Failed to find image") || strings.Contains(text, "No image found") {
			return glanceError, text
		}
		return "", text
	}
	var text string
	if json.Unmarshal(wrapped["message"], &text) == nil && text != "" {
		return glanceError, stripTags(text)
	}
	for _, name := range slices.Sorted(maps.Keys(wrapped)) {
		var detail struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(wrapped[name], &detail) == nil && detail.Message != "" {
			return name, detail.Message
		}
	}
	return "", ""
}

func stripTags(s string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		switch {
		case r == '<':
			inside = true
			b.WriteByte(' ')
		case r == '>':
			inside = false
		case !inside:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// requestName is what a service calls a request.
var requestName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func requestID(h http.Header) string {
	for _, name := range []string{"X-Openstack-Request-Id", "X-Compute-Request-Id"} {
		if id := h.Get(name); requestName.MatchString(id) {
			return id
		}
	}
	return ""
}

// timedOut reports whether the attempt, rather than the caller, ran out of
// time.
func timedOut(ctx context.Context, err error) bool {
	return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}
