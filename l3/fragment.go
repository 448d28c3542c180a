package l3

import (
	"encoding/binary"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const moreFragments = 0x2000

// A sendFunc sends a frame to a Dest, as VSI.Send does.
type sendFunc = func(to frame.Dest, f *frame.Frame) bool

// fragment4 sends a routed IPv4 packet without DF in fragments that fit the egress (RFC 791,
// section 3.2). Each repeats the header and the options marked as copied. A superframe is
// dropped: hosts that send such set DF or know the path's MTU.
func fragment4(f *frame.Frame, p wire.IPv4, ip, mtu int, from, to frame.Dest, send sendFunc) frame.Verdict {
	if f.GSO.Size != 0 {
		return frame.Drop(frame.TooBig)
	}
	finishChecksum(f)
	head, data := p[:p.HeaderLen()], p.Payload()
	if p.FragmentOffset()+len(data) > maxIP {
		return frame.Drop(frame.BadHeader) // longer than IPv4 allows: offsets would overflow into the flags
	}
	field := binary.BigEndian.Uint16(p[6:])
	return fragment(f, ip, mtu, head, data, from, to, send, func(q wire.IPv4, at int, more bool) {
		if at > 0 {
			dropOptions(q)
		}
		flags := field&^0x1fff | field&0x1fff + uint16(at/8)
		if more {
			flags |= moreFragments
		}
		binary.BigEndian.PutUint16(q[6:], flags)
		q.SetTotalLen(len(q))
		q.SetChecksum(0)
		q.SetChecksum(wire.Checksum(wire.Sum(q[:len(head)], 0)))
	})
}

// fragment6 sends a packet of the gateway's own in fragments (RFC 8200, section 4.5).
func fragment6(f *frame.Frame, p wire.IPv6, ip, mtu int, id uint32, from, to frame.Dest, send sendFunc) frame.Verdict {
	head := append(p[:wire.IPv6Len:wire.IPv6Len], p.NextHeader(), 0, 0, 0, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	head[6] = wire.ProtoFragment
	return fragment(f, ip, mtu, head, p[wire.IPv6Len:], from, to, send, func(q []byte, at int, more bool) {
		wire.IPv6(q).SetPayloadLen(len(q) - wire.IPv6Len)
		field := uint16(at)
		if more {
			field |= 1
		}
		binary.BigEndian.PutUint16(q[wire.IPv6Len+2:], field)
	})
}

// fragment sends the data of the IP packet at offset ip of f behind copies of head. finish completes
// the header of each fragment, whose data begins at an offset.
func fragment[P ~[]byte](f *frame.Frame, ip, mtu int, head, data []byte, from, to frame.Dest, send sendFunc, finish func(q P, at int, more bool)) frame.Verdict {
	step := (mtu - len(head)) &^ 7
	if step < 8 {
		return frame.Drop(frame.TooBig)
	}
	for at := 0; at < len(data); at += step {
		b := slices.Concat(f.Bytes()[:ip], head, data[at:min(at+step, len(data))])
		finish(P(b[ip:]), at, at+step < len(data))
		g := frame.Make(b)
		g.Kind, g.From, g.GBP, g.Horizon, g.Priority = f.Kind, from, f.GBP, f.Horizon, f.Priority
		if !send(to, &g) {
			return frame.Drop(frame.PortFull)
		}
	}
	return frame.Consume
}

// finishChecksum completes a transport checksum that a host left to its network card.
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

// dropOptions overwrites options that only the first fragment carries with "no operation".
func dropOptions(p wire.IPv4) {
	o := p[wire.IPv4Len:p.HeaderLen()]
	for n := optionLen(o); n > 0; n = optionLen(o) {
		if o[0]&0x80 == 0 {
			for k := range n {
				o[k] = 1
			}
		}
		o = o[n:]
	}
}
