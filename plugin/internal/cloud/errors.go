package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Kinds of failure that callers branch on.
var (
	// ErrNotFound means that the service itself said that the thing does not
	// exist.
	ErrNotFound = errors.New("not found")
	// ErrUnknown means that a name is not among those that the service listed.
	// It is an ErrNotFound, too.
	ErrUnknown = errors.New("unknown name")
	// ErrAmbiguous means that several things have the name.
	ErrAmbiguous = errors.New("several match")
	// ErrQuota means that a quota or a limit of the project is reached.
	ErrQuota = errors.New("quota exceeded")
	// ErrNoHost means that the cloud has no room.
	ErrNoHost = errors.New("no capacity")
	// ErrConflict means that the state of the thing forbids the call.
	ErrConflict = errors.New("conflict")
	// ErrInvalid means that the request is wrong and stays wrong.
	ErrInvalid = errors.New("invalid request")
	// ErrUnauthorized means that the credentials were refused.
	ErrUnauthorized = errors.New("not authorized")
	// ErrForbidden means that the credentials may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrTransient means that the same call may succeed later.
	ErrTransient = errors.New("temporary failure")
	// ErrUnfinished means that a listing was cut off and can be gone on with.
	ErrUnfinished = errors.New("listing cut off")
	// ErrPutOff means that a listing made way for other calls.
	ErrPutOff = errors.New("listing put off")
	// ErrUnsupported means that the cloud is too old.
	ErrUnsupported = errors.New("not supported by the cloud")
)

// Error is a failed call.
type Error struct {
	// Op is what was being done, for example "create server runner-a1b2c3d4".
	Op string
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Message is the service's own text, or what went wrong on the way.
	Message string
	// RequestID is what the cloud's operator finds the call by.
	RequestID string
	// Kind is one of the sentinel errors of this package.
	Kind error
	// Doubtful is true when the call may have taken effect nevertheless.
	Doubtful bool
	// Err is the cause, if there is one beyond the message.
	Err error
}

// Error implements error: what was being done, the cloud's text, the status
// and the request ID.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	b.WriteString(": ")
	switch {
	case e.Message != "":
		b.WriteString(strings.TrimSpace(e.Message))
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString(e.Kind.Error())
	}
	switch {
	case e.Status != 0 && e.RequestID != "":
		fmt.Fprintf(&b, " (HTTP %d, %s)", e.Status, e.RequestID)
	case e.Status != 0:
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	return Printable(b.String())
}

// Unwrap makes the kind and the cause visible to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Doubtful reports whether the call that err belongs to may have taken effect.
func Doubtful(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Doubtful
}

// Throttled reports whether the cloud refused a call for its rate.
func Throttled(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusTooManyRequests || e.Status == statusTokenRate || e.Status == http.StatusRequestEntityTooLarge)
}

// Unanswered reports whether err says nothing about what was asked for: no
// answer came, something in front of the service gave it, or the call was not
// let through for its rate or its credentials.
func Unanswered(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return errors.Is(err, ErrUnauthorized)
	}
	switch e.Status {
	case 0:
		return errors.Is(e.Kind, ErrTransient) || errors.Is(e.Kind, ErrUnauthorized)
	case http.StatusUnauthorized, http.StatusTooManyRequests, statusTokenRate, http.StatusRequestEntityTooLarge,
		http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}
