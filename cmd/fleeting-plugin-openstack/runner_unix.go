//go:build !windows

package main

import "os"

// runnerGone returns a function that reports whether the process that started this
// one has ended: another process takes over its children.
func runnerGone() func() bool {
	runner := os.Getppid()
	return func() bool { return os.Getppid() != runner }
}
