package fleet

import "errors"

// Errors of a [Cloud] that a group branches on.
var (
	// ErrGone is proof that a server does not exist.
	ErrGone = errors.New("server does not exist")
	// ErrDoubtful means that a creation may have happened or not.
	ErrDoubtful = errors.New("server may have been created")
	// ErrBusy means that a creation certainly did not happen, for a reason that
	// passes: the cloud was not reached, or turned the request away unread.
	ErrBusy = errors.New("cloud took no request")
	// ErrThrottled means that a creation certainly did not happen, because the cloud
	// refused the request for its rate. Whoever sends requests waits for that.
	ErrThrottled = errors.New("too many requests")
	// ErrQuota means that a limit of the project is reached.
	ErrQuota = errors.New("quota exceeded")
	// ErrNoRoom means that the cloud is full.
	ErrNoRoom = errors.New("no capacity")
	// ErrLocked means that a deletion was refused until the server is
	// unlocked or its state changes.
	ErrLocked = errors.New("server is locked")
	// ErrForbidden means that this user may not do it, now or later.
	ErrForbidden = errors.New("not allowed")
	// ErrUnfinished means that a listing was cut off and can be gone on with.
	ErrUnfinished = errors.New("listing cut off")
	// ErrPutOff means that a listing can wait, and other requests cannot.
	ErrPutOff = errors.New("listing put off")
	// ErrUnanswered means that the cloud could not be asked: it neither did
	// nor refused anything.
	ErrUnanswered = errors.New("cloud did not answer")
)

// Errors of a [Group].
var (
	// ErrNoServer means that the group has no server of that name.
	ErrNoServer = errors.New("no such server in the group")
	// ErrNotRunning means that the server exists but cannot take jobs.
	ErrNotRunning = errors.New("server is not running")
)
