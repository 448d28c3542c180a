package fault

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// most is how many calls a function may make.
const most = 5000

// Each calls f again and again: with its first system call failing, then with its second alone,
// and so on until it makes no more, once for each of the errnos a call may say (EMFILE, ENOMEM,
// EPERM, EADDRINUSE, ENODEV). f opens something, and closes it again if that worked, which it may
// in spite of the failure. What it returns must be nil, or wrap the errno. It leaves no
// descriptor and no goroutine behind: Each looks.
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
		for n, k := 1, 0; n < most; k++ {
			fds, goroutines := descriptors(), runtime.NumGoroutine()
			x.arm(n, k)
			err := f()
			at, failed := x.disarm()
			switch {
			case err != nil && !failed:
				return fmt.Errorf("call %d: no fault, and %w", n, err)
			case !failed:
				return nil
			case err != nil && !errors.Is(err, at.Errno):
				t.Errorf("%v: the error is %v", at, err)
			}
			left(t, at, fds, goroutines)
			if after != nil {
				after(at, err)
			}
			if k+1 == len(errnos[at.Call]) {
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

// left fails if there is more than before.
func left(t testing.TB, at Fault, fds, goroutines int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		f, g := descriptors(), runtime.NumGoroutine()
		switch {
		case f <= fds && g <= goroutines:
			return
		case time.Now().After(end):
			t.Errorf("%v: %d descriptors before and %d after, %d goroutines before and %d after", at, fds, f, goroutines, g)
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
