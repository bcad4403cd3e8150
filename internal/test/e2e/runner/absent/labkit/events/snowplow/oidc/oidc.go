// Package oidc stands in for LabKit's: a source of no tokens.
package oidc

// Option is an option of NewSource.
type Option struct{}

// Source has no tokens.
type Source struct{}

// WithSkipIfUnsupportedCloud is an option without effect.
func WithSkipIfUnsupportedCloud(bool) Option { return Option{} }

// NewSource returns a source of no tokens.
func NewSource(...Option) *Source { return &Source{} }
