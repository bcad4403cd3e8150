// Package metrics stands in for LabKit's: options without effect.
package metrics

// CollectorOption is an option of a collector that is never made.
type CollectorOption struct{}

// WithCollectorNamespace is an option without effect.
func WithCollectorNamespace(string) CollectorOption { return CollectorOption{} }

// WithCollectorBatchDeliveryDurationBuckets is an option without effect.
func WithCollectorBatchDeliveryDurationBuckets([]float64) CollectorOption { return CollectorOption{} }
