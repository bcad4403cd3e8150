// Package lifecycle holds the life of a plugin on the system that it runs on, with
// the real commands as processes of their own: from the package to the removal of
// what ran meanwhile.
//
// It is for tests only. make windows runs it under Wine, without a go command; see
// TestPrepare.
package lifecycle
