//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package underlay

import "syscall"

// For systems whose socket options are not known, only what package net does.
const (
	dontWait = 0
	errInUse = syscall.EADDRINUSE

	ctlTTL4, ctlTOS4, ctlInfo4, ctlDst4, ctlIf4 = -1, -1, -1, -1, -1
	ctlTTL6, ctlTOS6, ctlInfo6                  = -1, -1, -1
)

var (
	tell4, tell6, shares         []boolOption
	dontFragment4, dontFragment6 dontFragment
	portableReasons              []portableReason
)

func setsockopt(uintptr, int, int, int) error { return syscall.ENOSYS }

func nextControl([]byte) (level, typ int, data, rest []byte) { return }
