//go:build e2erunner

// Package taskscaler holds what the runner asks of a later taskscaler than there
// is. The end-to-end tests add it to a copy of the one that there is (build tag
// e2erunner); it does not compile alone.
package taskscaler

import (
	"cmp"
	"context"
	"errors"

	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

// later is what the runner asks of later versions.
type later interface {
	HasCapability(capability provider.Capability) bool
	Suspend(key string) error
	Resume(ctx context.Context, key string) (Acquisition, error)
}

var errNotBuiltIn = errors.New("suspending servers is not built in")

// HasCapability is false.
func (*taskscaler) HasCapability(provider.Capability) bool { return false }

// Suspend fails.
func (*taskscaler) Suspend(string) error { return errNotBuiltIn }

// Resume fails.
func (*taskscaler) Resume(context.Context, string) (Acquisition, error) { return nil, errNotBuiltIn }

// WithReservationThrottling is an option without effect.
func WithReservationThrottling() Option { return func(*options) error { return nil } }

// complete has zero mean what the runner's documentation calls the default.
func (o *options) complete() {
	o.updateInterval = cmp.Or(o.updateInterval, fleeting.DefaultUpdateInterval)
	o.updateIntervalWhenExpecting = cmp.Or(o.updateIntervalWhenExpecting, fleeting.DefaultUpdateIntervalWhenExpecting)
	o.deletionRetryInterval = cmp.Or(o.deletionRetryInterval, fleeting.DefaultDeletionRetryInterval)
	o.shutdownDeletionRetries = cmp.Or(o.shutdownDeletionRetries, fleeting.DefaultShutdownDeletionRetries)
	o.shutdownDeletionInterval = cmp.Or(o.shutdownDeletionInterval, fleeting.DefaultShutdownDeletionInterval)
}
