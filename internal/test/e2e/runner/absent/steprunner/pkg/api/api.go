// Package api stands in for step-runner's: there is no socket.
package api

// DefaultSocketPath is empty.
func DefaultSocketPath() string { return "" }
