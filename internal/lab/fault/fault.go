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

// errnos is what each call is failed with, in turn, of what it can say: a limit of descriptors
// or of memory, a privilege or a device that is missing, an address that is taken.
var errnos = map[string][]syscall.Errno{
	"bpf":           {syscall.EPERM, syscall.ENOMEM},
	"bind":          {syscall.EADDRINUSE, syscall.ENODEV, syscall.EPERM},
	"connect":       {syscall.EADDRINUSE},
	"epoll_create1": {syscall.EMFILE},
	"epoll_ctl":     {syscall.ENOMEM},
	"eventfd2":      {syscall.EMFILE},
	"fcntl":         {syscall.EMFILE},
	"getsockname":   {syscall.ENOMEM},
	"getsockopt":    {syscall.ENOMEM},
	"ioctl":         {syscall.ENODEV, syscall.EPERM},
	"listen":        {syscall.EADDRINUSE},
	"membarrier":    {syscall.EPERM},
	"openat":        {syscall.EMFILE, syscall.EPERM},
	"pipe2":         {syscall.EMFILE},
	"recvfrom":      {syscall.ENOMEM},
	"sendto":        {syscall.ENOMEM},
	"setns":         {syscall.EPERM},
	"setsockopt":    {syscall.ENODEV, syscall.ENOMEM, syscall.EPERM},
	"socket":        {syscall.EMFILE, syscall.ENOMEM, syscall.EPERM},
}
