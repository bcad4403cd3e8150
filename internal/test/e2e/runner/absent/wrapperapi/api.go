// Package api stands in for the runner's own, by which `gitlab-runner wrapper` is
// controlled over gRPC: it names what the wrapper uses.
package api

import (
	"context"
	"errors"
)

// ErrProcessNotInitialized says that there is no process yet.
var ErrProcessNotInitialized = errors.New("process not initialized")

// Status is what a wrapped process does.
type Status string

// The states of a wrapped process.
const (
	StatusUnknown    Status = "unknown"
	StatusRunning    Status = "running"
	StatusInShutdown Status = "in-shutdown"
	StatusStopped    Status = "stopped"
)

// String is the status as text.
func (s Status) String() string { return string(s) }

// ShutdownCallback is told that the process ended.
type ShutdownCallback interface{ Run(ctx context.Context) }

// ShutdownCallbackDef says whom to tell.
type ShutdownCallbackDef interface {
	URL() string
	Method() string
}

// InitGracefulShutdownRequest asks a wrapped process to end.
type InitGracefulShutdownRequest interface{ ShutdownCallbackDef() ShutdownCallbackDef }

// NewShutdownCallback returns a callback that tells nobody.
func NewShutdownCallback(any, ShutdownCallbackDef) ShutdownCallback { return nobody{} }

type nobody struct{}

func (nobody) Run(context.Context) {}
