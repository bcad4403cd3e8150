// Package cloud speaks to OpenStack: it reads clouds.yaml, keeps a token
// fresh, and makes the calls that a group of servers needs, with time limits,
// retries and errors that say what to do about them. It is the only importer
// of gophercloud.
//
// It makes no decisions about servers; plugin/internal/fleet does.
package cloud
