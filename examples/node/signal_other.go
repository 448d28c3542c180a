//go:build !unix

package main

import "os"

// notify does nothing: this system has neither SIGHUP nor SIGUSR1.
func notify(reload, ask chan<- os.Signal) {}
