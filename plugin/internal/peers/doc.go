// Package peers tells which processes of the plugin on this machine serve the
// same group of servers. Each holds a lock on a file of its own for as long as it
// lives; the kernel releases the lock when the process ends, however it ends. So a
// file whose lock is free belongs to a process that is dead, and a process that
// has no file here ran on another machine, in another container, or as another
// user: nothing is known about it.
//
// It knows nothing of servers and of clouds.
package peers
