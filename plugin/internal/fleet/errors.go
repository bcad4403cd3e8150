package fleet

import "errors"

// Errors of a [Cloud] that a group branches on.
var (
	// ErrGone is proof that a server does not exist.
	ErrGone = errors.New("server does not exist")
	// ErrDoubtful means that a creation may have happened or not.
	ErrDoubtful = errors.New("server may have been created")
	// ErrLocked means that a deletion was refused until the server is
	// unlocked or its state changes.
	ErrLocked = errors.New("server is locked")
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
