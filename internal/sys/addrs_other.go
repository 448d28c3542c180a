//go:build !linux

package sys

import (
	"iter"
	"net/netip"
)

// HostAddrs iterates over nothing.
func HostAddrs() iter.Seq2[int, netip.Addr] { return func(func(int, netip.Addr) bool) {} }
