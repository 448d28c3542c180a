package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// tick bounds every wait for a packet, so that a thread sees when its time is over.
const tick = 20 // milliseconds

// twoCPUs returns two CPUs that this process may use.
func twoCPUs() (cpus [2]int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return cpus, fmt.Errorf("sched_getaffinity: %w", err)
	}
	if set.Count() < 2 {
		return cpus, errors.New("two CPUs are needed")
	}
	n := 0
	for cpu := 0; n < 2; cpu++ {
		if set.IsSet(cpu) {
			cpus[n] = cpu
			n++
		}
	}
	return cpus, nil
}

// on runs f on a thread of its own, in a namespace and on one CPU. The thread ends
// with f, so that nothing else ever runs there.
func on(ns string, cpu int, f func() error) error {
	return sys.InNamespace(nsPath(ns), func() error {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("sched_setaffinity: %w", err)
		}
		return f()
	})
}

// beside runs f on another thread for as long as the caller wants: end makes over true
// and waits for it.
func beside(ns string, cpu int, f func(over *atomic.Bool) error) (end func() error) {
	var over atomic.Bool
	done := make(chan error, 1)
	go func() { done <- on(ns, cpu, func() error { return f(&over) }) }()
	return func() error {
		over.Store(true)
		return <-done
	}
}

// A span is a time that is measured on one thread. The flag is looked at instead of the
// clock, which costs as much as a good part of a packet.
type span struct {
	over  atomic.Bool
	begin time.Time
	cpu   time.Duration
	who   int
	stops [2]func() bool
}

// newSpan begins to measure: the thread that calls, or the process.
func newSpan(ctx context.Context, d time.Duration, who int) *span {
	s := &span{who: who}
	end := func() { s.over.Store(true) }
	s.stops = [2]func() bool{context.AfterFunc(ctx, end), time.AfterFunc(d, end).Stop}
	s.begin, s.cpu = time.Now(), cpuTime(who)
	return s
}

// end returns what has passed, on the clock and on the CPU.
func (s *span) end() (clock, cpu time.Duration) {
	clock, cpu = time.Since(s.begin), cpuTime(s.who)-s.cpu
	for _, stop := range s.stops {
		stop()
	}
	return clock, max(cpu, 1)
}

// cpuTime is what a thread or the process has used, in user and kernel mode. Softirqs
// that run on top of a thread count as its own, unless the kernel accounts for them apart
// (CONFIG_IRQ_TIME_ACCOUNTING).
func cpuTime(who int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wait polls until fd is readable, at most a tick.
func wait(fd int) error {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(p[:], tick); err != nil && err != unix.EINTR {
		return fmt.Errorf("poll: %w", err)
	}
	return nil
}

// refused turns an errno of setting something up into a refusal: there this kernel, or
// its configuration, does not have it or does not allow it.
func refused(what string, err error) error {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return refusal{unix.ErrnoName(e) + " (" + what + ")"}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// pages returns memory that starts at a page and does not move.
func pages(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return b, nil
}
