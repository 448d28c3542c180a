package gso

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Merged makes a superframe of a TCP packet that is longer than mtu and came without
// metadata: through a raw socket, which hands over what the kernel has joined, or has not
// cut, without a word about it (Linux 6.18). How long its segments were is not known: they
// become as long as mtu allows.
//
// Such packets have an unfinished checksum. One whose checksum is neither that nor right is
// left alone, as is everything but TCP: a host sent it so, in fragments.
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
