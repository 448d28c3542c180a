package l3

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const moreFragments = 0x2000

// fragment4 sends a routed IPv4 packet without DF in pieces that fit the egress (RFC 791,
// section 3.2). Its own header is repeated; of its options, those that are to be
// copied. A superframe is not cut: the packets in it are too long one by one, and hosts that
// make them set DF or know the path's MTU.
func fragment4(f *frame.Frame, p wire.IPv4, ip, mtu int, from, to frame.Dest, send func(frame.Dest, *frame.Frame) bool) frame.Verdict {
	if f.GSO.Size != 0 {
		return frame.Drop(frame.TooBig)
	}
	finishChecksum(f)
	head, data := p[:p.HeaderLen()], p.Payload()
	step := (mtu - len(head)) &^ 7
	if step < 8 {
		return frame.Drop(frame.TooBig)
	}
	if p.FragmentOffset()+len(data) > 1<<16-1 {
		return frame.Drop(frame.BadHeader) // the end of no packet: the offsets of its pieces would run into the flags
	}
	field := binary.BigEndian.Uint16(p[6:])
	for at := 0; at < len(data); at += step {
		piece := data[at:min(at+step, len(data))]
		b := make([]byte, ip+len(head)+len(piece))
		copy(b, f.Bytes()[:ip])
		q := wire.IPv4(b[ip:])
		copy(q, head)
		copy(q[len(head):], piece)
		if at > 0 {
			dropOptions(q)
		}
		flags := field&^0x1fff | field&0x1fff + uint16(at/8)
		if at+step < len(data) {
			flags |= moreFragments
		}
		binary.BigEndian.PutUint16(q[6:], flags)
		q.SetTotalLen(len(q))
		q.SetChecksum(0)
		q.SetChecksum(wire.Checksum(wire.Sum(q[:len(head)], 0)))
		g := frame.Make(b)
		g.Kind, g.From, g.GBP, g.Horizon = f.Kind, from, f.GBP, f.Horizon
		if !send(to, &g) {
			return frame.Drop(frame.PortFull)
		}
	}
	return frame.Consume
}

// finishChecksum completes a transport checksum that a host has left to its network card.
func finishChecksum(f *frame.Frame) {
	if f.GSO.Flags&frame.NeedsCsum == 0 {
		return
	}
	start := int(f.GSO.CsumStart) - f.Headroom()
	at := start + int(f.GSO.CsumOffset)
	if b := f.Bytes(); start >= 0 && at+2 <= len(b) {
		sum := wire.Checksum(wire.Sum(b[start:], 0))
		if sum == 0 {
			sum = 0xffff
		}
		binary.BigEndian.PutUint16(b[at:], sum)
	}
	f.GSO = frame.GSO{}
}

// dropOptions overwrites options that only the first fragment has with "no operation".
func dropOptions(p wire.IPv4) {
	for o := p[wire.IPv4Len:p.HeaderLen()]; len(o) > 0; {
		n := 1
		switch {
		case o[0] == 0:
			return
		case o[0] != 1:
			if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
				return
			}
			if n = int(o[1]); o[0]&0x80 == 0 {
				for k := range n {
					o[k] = 1
				}
			}
		}
		o = o[n:]
	}
}
