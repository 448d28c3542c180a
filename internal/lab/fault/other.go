//go:build !linux || (!amd64 && !arm64)

package fault

import (
	"errors"
	"syscall"
)

type thread struct{}

func (*thread) arm(n int, errno syscall.Errno) {}
func (*thread) disarm() (Fault, bool)          { return Fault{}, false }

func onThread(enter func() error, f func(x *thread) error) error { return errors.ErrUnsupported }
