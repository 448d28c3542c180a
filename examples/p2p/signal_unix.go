//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyStats has SIGUSR1 sent to c.
func notifyStats(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
