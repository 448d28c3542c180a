package sys

import "golang.org/x/sys/unix"

// yield lets other threads run, of any process. [runtime.Gosched] would wake one up to take
// this goroutine over.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
