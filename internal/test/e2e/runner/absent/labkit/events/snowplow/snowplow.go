// Package snowplow stands in for LabKit's, which reports billing events to a
// collector: no emitter or tracker can be made.
package snowplow

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"gitlab.com/gitlab-org/labkit/v2/events/snowplow/metrics"
	"gitlab.com/gitlab-org/labkit/v2/events/snowplow/oidc"
)

var errNotBuiltIn = errors.New("billing events are not built in")

// What the runner hands over and gets back.
type (
	// SendResult is what became of a batch.
	SendResult struct {
		EventCount, StatusCode int
		Err                    error
	}
	// SendCallback is told what was sent.
	SendCallback func(successes, failures []SendResult)
	// EmitterOption is an option of NewEmitter.
	EmitterOption struct{}
	// Emitter sends events.
	Emitter struct{}
	// Tracker makes events.
	Tracker struct{}
	// BillingEventRequiredInput is what each event says.
	BillingEventRequiredInput struct {
		Category, EventType, Realm, UnitOfMeasure string
		Quantity                                  float64
	}
	// BillingEventOptionalInput is what an event may say.
	BillingEventOptionalInput struct {
		Subject, DeploymentType, InstanceID, UniqueInstanceID   string
		Metadata                                                map[string]any
		ProjectID, NamespaceID, RootNamespaceID, OrganizationID int64
	}
)

// WithCallback is an option without effect.
func WithCallback(SendCallback) EmitterOption { return EmitterOption{} }

// WithTokenSource is an option without effect.
func WithTokenSource(*oidc.Source) EmitterOption { return EmitterOption{} }

// WithMetricsCollectorOptions is an option without effect.
func WithMetricsCollectorOptions(...metrics.CollectorOption) EmitterOption { return EmitterOption{} }

// NewEmitter fails.
func NewEmitter(string, ...EmitterOption) (*Emitter, error) { return nil, errNotBuiltIn }

// NewTracker fails.
func NewTracker(string, *Emitter) (*Tracker, error) { return nil, errNotBuiltIn }

// Collector has no metrics.
func (*Emitter) Collector() prometheus.Collector { return prometheus.NewRegistry() }

// Stop does nothing.
func (*Tracker) Stop() {}

// TrackBillingEventWithOptionalInput fails.
func (*Tracker) TrackBillingEventWithOptionalInput(BillingEventRequiredInput, BillingEventOptionalInput) error {
	return errNotBuiltIn
}
