// Package extended stands in for step-runner's: no client can be made.
package extended

import (
	"context"
	"errors"
	"io"

	"gitlab.com/gitlab-org/step-runner/pkg/api/client"
)

var errNotBuiltIn = errors.New("jobs that are made of steps are not built in")

// FollowOutput is where a job's output would go.
type FollowOutput struct{ Logs io.Writer }

// Client is never made.
type Client struct{}

// New fails.
func New(any) (*Client, error) { return nil, errNotBuiltIn }

// CloseConn does nothing.
func (*Client) CloseConn() error { return nil }

// Cancel fails.
func (*Client) Cancel(context.Context, string) error { return errNotBuiltIn }

// RunAndFollow fails.
func (*Client) RunAndFollow(context.Context, *client.RunRequest, *FollowOutput) (client.Status, error) {
	return client.Status{}, errNotBuiltIn
}
