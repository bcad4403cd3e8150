//go:build unix

package plugin

// modesMatter: permissions are what other users are let in by.
const modesMatter = true
