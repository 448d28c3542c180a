//go:build !unix

package main

import "os"

const nonblock = 0

// notify does nothing: this system has neither SIGHUP nor SIGUSR1.
func notify(reload, ask chan<- os.Signal) {}
