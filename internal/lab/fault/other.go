//go:build !linux || (!amd64 && !arm64)

package fault

import "errors"

type thread struct{}

func (*thread) arm(n, k int)          {}
func (*thread) disarm() (Fault, bool) { return Fault{}, false }

func onThread(enter func() error, f func(x *thread) error) error { return errors.ErrUnsupported }
