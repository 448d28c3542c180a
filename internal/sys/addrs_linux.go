package sys

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"syscall"
)

// HostAddrs iterates over the addresses of the host, each with the index of its interface. The kernel is asked once, where package net
// asks for each interface. What cannot be had is left out.
func HostAddrs() iter.Seq2[int, netip.Addr] {
	return func(yield func(int, netip.Addr) bool) {
		b, _ := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
		list, _ := syscall.ParseNetlinkMessage(b)
		for _, m := range list {
			if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
				continue
			}
			attrs, _ := syscall.ParseNetlinkRouteAttr(&m)
			var at netip.Addr
			for _, a := range attrs { // IFA_ADDRESS of a point-to-point link is the other end's
				if t := a.Attr.Type; t == syscall.IFA_LOCAL || t == syscall.IFA_ADDRESS && !at.IsValid() {
					at, _ = netip.AddrFromSlice(a.Value)
				}
			}
			if at.IsValid() && !yield(int(binary.NativeEndian.Uint32(m.Data[4:])), at) {
				return
			}
		}
	}
}
