package fault

import (
	"fmt"
	"syscall"
)

// A Fault is one system call that was made to fail.
type Fault struct {
	N     int           // it was the N-th call of the function, from 1
	Call  string        // its name, as in "setsockopt"
	Errno syscall.Errno // what it returned
}

// String returns what happened, for messages of tests.
func (f Fault) String() string { return fmt.Sprintf("call %d, %s: %v", f.N, f.Call, f.Errno) }

// Errnos is what calls fail with: a limit of descriptors or of memory, a privilege or a device
// that is missing, a port that is taken.
var Errnos = []syscall.Errno{syscall.EMFILE, syscall.ENOMEM, syscall.EPERM, syscall.EADDRINUSE, syscall.ENODEV}
