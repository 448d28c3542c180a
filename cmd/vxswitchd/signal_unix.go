//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// nonblock has a pipe opened without waiting for who writes to it.
const nonblock = syscall.O_NONBLOCK

// notify has SIGHUP sent to reload, and SIGUSR1 to ask.
func notify(reload, ask chan<- os.Signal) {
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(ask, syscall.SIGUSR1)
}
