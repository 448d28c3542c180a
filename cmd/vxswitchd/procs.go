package main

import (
	"os"
	"runtime"
)

// leastProcs is the least GOMAXPROCS of the program on a host with fewer processors. There goroutines of control planes and of Go's garbage
// collector, which has threads of its own from four on, kept frames waiting for up to 20 ms: Go gives a goroutine that is ready a busy thread
// after 10 ms, Linux a thread that is ready a busy processor sooner.
const leastProcs = 4

// spareProcs sets GOMAXPROCS, unless its user has, or Go has lowered it for a limit of a control group.
func spareProcs() {
	if n := procs(os.Getenv("GOMAXPROCS"), runtime.GOMAXPROCS(0), runtime.NumCPU()); n > 0 {
		runtime.GOMAXPROCS(n)
	}
}

// procs returns what GOMAXPROCS becomes, or 0 for what it is: asked is that of the environment, now that of the runtime.
func procs(asked string, now, processors int) int {
	if asked != "" || now < processors || now >= leastProcs {
		return 0
	}
	return leastProcs
}
