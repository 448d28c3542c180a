package afpacket

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Filters of packet sockets keep frames for others from being copied and from waking goroutines. What they
// pass is still parsed.

// A program is a BPF filter under construction. A check that fails jumps to the refusal at the end, or to the
// next or.
type program struct {
	ins   []bpf.Instruction
	fails []int // jumps to the end
	takes []int // jumps to the acceptance
}

// load puts size bytes of the frame into the accumulator.
func (p *program) load(off, size int) {
	p.ins = append(p.ins, bpf.LoadAbsolute{Off: uint32(off), Size: size})
}

// need goes on when the accumulator is v.
func (p *program) need(v uint32) {
	p.fails = append(p.fails, len(p.ins))
	p.ins = append(p.ins, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v})
}

// take accepts when cond holds for the accumulator and v.
func (p *program) take(cond bpf.JumpTest, v uint32) {
	p.takes = append(p.takes, len(p.ins))
	p.ins = append(p.ins, bpf.JumpIf{Cond: cond, Val: v})
}

// needBytes goes on when the frame has want at off.
func (p *program) needBytes(off int, want []byte) {
	for len(want) > 0 {
		if len(want) >= 4 {
			p.load(off, 4)
			p.need(binary.BigEndian.Uint32(want))
			off, want = off+4, want[4:]
		} else {
			p.load(off, 2)
			p.need(uint32(binary.BigEndian.Uint16(want)))
			off, want = off+2, want[2:]
		}
	}
}

// or continues here with frames that failed a check.
func (p *program) or() {
	for _, i := range p.fails {
		j := p.ins[i].(bpf.JumpIf)
		j.SkipFalse = uint8(len(p.ins) - i - 1)
		p.ins[i] = j
	}
	p.fails = p.fails[:0]
}

// end refuses what was not accepted.
func (p *program) end() ([]unix.SockFilter, error) {
	p.or()
	refuse := len(p.ins)
	p.ins = append(p.ins, bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: 1<<32 - 1})
	for _, i := range p.takes {
		j := p.ins[i].(bpf.JumpIf)
		j.SkipTrue = uint8(refuse - i)
		p.ins[i] = j
	}
	return datagrams.Assemble(p.ins)
}

// untagged goes on when the frame has no VLAN tag, which the kernel has stripped. VLAN 0 is only a priority
// (IEEE 802.1Q).
func (p *program) untagged() {
	p.ins = append(p.ins, bpf.LoadExtension{Num: bpf.ExtVLANTag}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff})
	p.need(0)
}

// Offsets in a frame.
const (
	typeAt    = 12
	ipAt      = wire.EthernetLen
	proto4    = ipAt + 9
	dst4      = ipAt + 16
	frag4     = ipAt + 6
	proto6    = ipAt + 6
	dst6      = ipAt + 24
	upper6    = ipAt + wire.IPv6Len
	arpTarget = ipAt + 24
	arpSender = ipAt + 14
	portAt    = 2 // the destination port, in the UDP header
	anyFrag   = 0x3fff
)

// filter passes datagrams to the local address and port, and all fragments of UDP, since only the first has a
// port. If a group is joined, it passes datagrams to the port and any group.
func (r *rules) filter() ([]unix.SockFilter, error) {
	var p program
	p.untagged()
	to, dst := r.ip[12:], dst4
	if !r.is4 {
		to, dst = r.ip[:], dst6
	}
	p.needBytes(dst, to)
	p.needBytes(0, r.mac[:])
	r.datagrams(&p)
	if len(r.groups) > 0 {
		p.or()
		p.untagged()
		p.load(dst, 1)
		if r.is4 {
			p.ins = append(p.ins, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0})
			p.need(0xe0)
		} else {
			p.need(0xff)
		}
		r.datagrams(&p)
	}
	return p.end()
}

// datagrams accepts UDP to the port.
func (r *rules) datagrams(p *program) {
	if !r.is4 {
		p.needBytes(typeAt, []byte{wire.TypeIPv6 >> 8, wire.TypeIPv6 & 0xff})
		p.load(proto6, 1)
		for _, refused := range []uint32{wire.ProtoFragment, wire.ProtoHopByHop, wire.ProtoRouting, wire.ProtoDstOpts} {
			p.take(bpf.JumpEqual, refused)
		}
		p.need(wire.ProtoUDP)
		p.load(upper6+portAt, 2)
		p.take(bpf.JumpEqual, uint32(r.port))
		return
	}
	p.needBytes(typeAt, []byte{wire.TypeIPv4 >> 8, wire.TypeIPv4 & 0xff})
	p.load(proto4, 1)
	p.need(wire.ProtoUDP)
	p.load(ipAt, 1) // an invalid header length would misplace the port
	p.take(bpf.JumpLessThan, 0x45)
	p.take(bpf.JumpGreaterThan, 0x4f)
	p.load(frag4, 2)
	p.take(bpf.JumpBitsSet, anyFrag)
	p.ins = append(p.ins, bpf.LoadMemShift{Off: ipAt}, bpf.LoadIndirect{Off: ipAt + portAt, Size: 2})
	p.take(bpf.JumpEqual, uint32(r.port))
}

// controlFilter passes ARP to the local address and announcements, ICMP to the local address, neighbour discovery
// and ICMPv6 errors.
func (r *rules) controlFilter() ([]unix.SockFilter, error) {
	var p program
	p.untagged()
	if !r.is4 {
		p.needBytes(typeAt, []byte{wire.TypeIPv6 >> 8, wire.TypeIPv6 & 0xff})
		p.load(proto6, 1)
		p.need(wire.ProtoICMPv6)
		p.load(upper6, 1)
		for _, t := range []uint32{wire.ICMPv6Unreachable, wire.ICMPv6PacketTooBig, wire.ICMPv6TimeExceeded, wire.NeighbourSolicitation, wire.NeighbourAdvert} {
			p.take(bpf.JumpEqual, t)
		}
		return p.end() // addresses are checked later, since these are few
	}
	p.load(typeAt, 2)
	arp := len(p.ins)
	p.ins = append(p.ins, bpf.JumpIf{Cond: bpf.JumpEqual, Val: wire.TypeIPv4})
	p.need(wire.TypeARP)
	p.load(arpTarget, 4)
	p.take(bpf.JumpEqual, binary.BigEndian.Uint32(r.ip[12:]))
	p.ins = append(p.ins, bpf.TAX{}, bpf.LoadAbsolute{Off: arpSender, Size: 4}) // announcements: sender and target are one
	same := len(p.ins)
	p.ins = append(p.ins, bpf.JumpIfX{Cond: bpf.JumpEqual}, bpf.RetConstant{Val: 0})
	p.ins[arp] = bpf.JumpIf{Cond: bpf.JumpEqual, Val: wire.TypeIPv4, SkipTrue: uint8(len(p.ins) - arp - 1)}
	p.needBytes(dst4, r.ip[12:])
	p.load(proto4, 1)
	p.need(wire.ProtoICMP)
	p.load(frag4, 2)
	p.take(bpf.JumpBitsNotSet, anyFrag)
	p.ins[same] = bpf.JumpIfX{Cond: bpf.JumpEqual, SkipTrue: uint8(len(p.ins) - same)}
	return p.end()
}
