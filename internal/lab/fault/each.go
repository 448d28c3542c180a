package fault

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// most is how many calls a function may make.
const most = 5000

// Each calls f again and again: with its first system call failing, then with its second alone,
// and so on until it makes no more, once for each of the errnos a call may say (EMFILE, ENOMEM,
// EPERM, EADDRINUSE, ENODEV). f opens something, and closes it again if that worked, which it may
// in spite of the failure. What it returns must be nil, or wrap the errno. It leaves no
// descriptor, no goroutine and no mapping of a file or socket behind, and on the heap, in all, no
// more than [slack] and [perFailure]: Each looks.
//
// All calls of f are on one thread, which runs enter first; nil is nothing. With after, each
// call of f is followed by one of it, for further checks, in which nothing fails.
func Each(t testing.TB, enter func() error, f func() error, after func(x Fault, err error)) {
	t.Helper()
	// While the thread waits for its answer inside a call that the scheduler does not know of,
	// the world cannot be stopped, and there must be a processor for who answers.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 4)))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	err := onThread(enter, func(x *thread) error {
		if err := f(); err != nil { // the first is to make what stays: the poller, caches
			return fmt.Errorf("without a fault: %w", err)
		}
		heap, failures := onHeap(), 0
		for n, k := 1, 0; n < most; k++ {
			before := inUse()
			x.arm(n, k)
			err := f()
			at, failed := x.disarm()
			switch {
			case err != nil && !failed:
				return fmt.Errorf("call %d: no fault, and %w", n, err)
			case !failed:
				more := onHeap() - heap
				for end := time.Now().Add(patience); more > slack+failures*perFailure && time.Now().Before(end); more = onHeap() - heap {
					time.Sleep(time.Millisecond) // finalizers
				}
				if more > slack+failures*perFailure {
					t.Errorf("%d bytes more on the heap after %d failures", more, failures)
				}
				return nil
			case err != nil && !errors.Is(err, at.Errno):
				t.Errorf("%v: the error is %v", at, err)
			}
			failures++
			left(t, at, before)
			if after != nil {
				after(at, err)
			}
			if k+1 >= len(errnos[at.Call]) {
				n, k = n+1, -1
			}
			if n%64 == 0 {
				runtime.GC()
			}
		}
		return fmt.Errorf("more than %d system calls", most)
	})
	switch {
	case errors.Is(err, errors.ErrUnsupported) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// patience is how long a goroutine may take to end.
var patience = 2 * time.Second

// A usage is what is open.
type usage struct{ descriptors, goroutines, mappings int }

func inUse() usage { return usage{descriptors(), runtime.NumGoroutine(), mappings()} }

// left fails if there is more than before.
func left(t testing.TB, at Fault, before usage) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		now := inUse()
		switch {
		case now.descriptors <= before.descriptors && now.goroutines <= before.goroutines && now.mappings <= before.mappings:
			return
		case time.Now().After(end):
			t.Errorf("%v: %d descriptors before and %d after, %d goroutines before and %d after, %d mappings before and %d after", at,
				before.descriptors, now.descriptors, before.goroutines, now.goroutines, before.mappings, now.mappings)
			return
		}
	}
}

func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

// mappings counts those of files and sockets; the heap's have no inode.
func mappings() (n int) {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] != "0" {
			n++
		}
	}
	return n
}

// What the runtime and the test itself may keep, bytes: in all, and of each failure.
const slack, perFailure = 64 << 10, 256

// onHeap returns how many bytes are in use.
func onHeap() int {
	var m runtime.MemStats
	for range 2 { // finalizers, and what these let go
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
