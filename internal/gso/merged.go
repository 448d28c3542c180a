package gso

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Merged makes a superframe of a TCP packet longer than mtu without metadata. Raw sockets deliver such packets when the
// kernel has joined or not cut them (Linux 6.18). Their segment size is not known: Merged uses the largest that mtu allows.
//
// Such packets have an unfinished checksum. Merged leaves packets with another wrong checksum, and all but TCP, unchanged:
// a host has sent them so, in fragments.
func Merged(f *frame.Frame, mtu int) {
	p := f.Bytes()
	h, ok := locate(p, f.Kind)
	size, data := mtu-h.data, f.Headroom()+h.data
	if !ok || h.proto != wire.ProtoTCP || size <= 0 || data > 0xffff ||
		!h.headerOK(p) {
		return
	}
	if !h.unfinished(p) {
		if !h.verify(p) {
			return
		}
		h.setChecksum(p, wire.Fold(h.pseudo(p, len(p)-h.l4)))
	}
	f.GSO = frame.GSO{
		Flags: frame.NeedsCsum | frame.AnySize, Type: h.gsoType(), Size: uint16(size),
		CsumStart: uint16(f.Headroom() + h.l4), CsumOffset: wire.TCPChecksum, DataStart: uint16(data),
	}
}
