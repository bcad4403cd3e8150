package main

import (
	"os"
	"os/signal"
	"syscall"
)

// endWithRunner leaves it to the runner when the plugin ends. Who stops or reloads
// a runner signals the plugin as well: dumb-init, in the runner's image, its
// process group, systemd its control group. But the runner, told to quit, goes on
// until its jobs have ended, needs the plugin for it, and ends it itself.
// For a plugin whose runner is gone, a signal calls orphaned.
func endWithRunner(orphaned func()) {
	runner := os.Getppid()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM)
	go func() {
		for range signals {
			if os.Getppid() != runner {
				orphaned()
			}
		}
	}()
}
