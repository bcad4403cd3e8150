package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// lookInterval is how often a plugin looks whether its runner is still there.
const lookInterval = 2 * time.Second

// endWithRunner leaves it to the runner when the plugin ends. Who stops or reloads
// a runner signals the plugin as well: dumb-init, in the runner's image, its
// process group, systemd its control group. But the runner, told to quit, goes on
// until its jobs have ended, needs the plugin for it, and ends it itself.
//
// A plugin whose runner is gone has orphaned called. A runner that was killed ends
// no plugins, and starts new ones when it is back; the old ones would stay, and go
// on with what they had begun.
func endWithRunner(orphaned func()) {
	gone := runnerGone()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM)
	look := time.NewTicker(lookInterval)
	go func() {
		for {
			select {
			case <-signals:
			case <-look.C:
			}
			if gone() {
				orphaned()
				return
			}
		}
	}()
}
