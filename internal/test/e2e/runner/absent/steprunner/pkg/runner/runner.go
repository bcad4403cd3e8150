// Package runner stands in for step-runner's: it names what a builtin step is
// given.
package runner

import (
	"io"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// BuiltinContext is what a builtin step is given.
type BuiltinContext interface {
	GetJobVars() map[string]*structpb.Value
	GetEnvs() map[string]string
	Pipe() (stdout, stderr io.Writer)
	WorkDir() string
	GracefulExitDelay() time.Duration
}
