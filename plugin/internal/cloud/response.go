package cloud

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// messageLimit bounds how much of an answer that is no JSON is quoted.
const messageLimit = 200

// failure turns what gophercloud returned into an [Error]. changes tells
// whether a failure without an answer leaves the outcome open.
func failure(op, service string, err error, changes bool) *Error {
	var reauth *gophercloud.ErrUnableToReauthenticate
	var answer gophercloud.ErrUnexpectedResponseCode
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &reauth):
		// The service refused the old token, so it did nothing.
		// Callers that waited for one authentication share its error.
		inner := *failure("authenticate", identity, reauth.ErrReauth, false)
		inner.Op = op + ": authenticate"
		return &inner
	case errors.As(err, &answer):
		return answered(op, service, answer, changes)
	default:
		return &Error{Op: op, Kind: ErrTransient, Err: err, Doubtful: changes && !unsent(err)}
	}
}

// unsent reports whether the request surely never left this machine.
func unsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" || errors.Is(err, errNotSent) || mistrusted(err)
}

// mistrusted reports whether this side refused the certificate of the other, or
// met one that speaks no TLS. Requests are sent only after that, and
// another try comes to the same.
func mistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch)
}

// errNotSent marks failures before the request was sent.
var errNotSent = errors.New("request was not sent")

// answered classifies an answer that is not a success.
func answered(op, service string, answer gophercloud.ErrUnexpectedResponseCode, changes bool) *Error {
	e := &Error{
		Op: op, Status: answer.Actual, RequestID: requestID(answer.ResponseHeader),
	}
	var wrapper string
	wrapper, e.Message = explain(answer.Body)
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.Kind = kindOf(service, e.Status, wrapper, e.Message)
	e.Doubtful = changes && (e.Status >= http.StatusInternalServerError || e.Status == http.StatusRequestTimeout)
	return e
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
	if json.Unmarshal(body, &wrapped) == nil {
		var text string
		if json.Unmarshal(wrapped["message"], &text) == nil && text != "" {
			return glanceError, strings.Join(strings.Fields(stripTags(text)), " ")
		}
		for name, raw := range wrapped {
			var detail struct {
				Message string `json:"message"`
			}
			if json.Unmarshal(raw, &detail) == nil && detail.Message != "" {
				return name, detail.Message
			}
		}
		return "", ""
	}
	return explainHTML(string(body))
}

func explainHTML(body string) (wrapper, message string) {
	text := strings.Join(strings.Fields(stripTags(body)), " ")
	if strings.Contains(text, "Failed to find image") || strings.Contains(text, "No image found") {
		wrapper = glanceError
	}
	if len(text) > messageLimit {
		text = text[:messageLimit] + "…"
	}
	return wrapper, text
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

func requestID(h http.Header) string {
	for _, name := range []string{"X-Openstack-Request-Id", "X-Compute-Request-Id"} {
		if id := h.Get(name); id != "" {
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
