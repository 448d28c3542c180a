//go:build !unix

package main

import "os"

// notifyStats does nothing: this system has no SIGUSR1.
func notifyStats(c chan<- os.Signal) {}
