package snoop

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	port1, port2, port3 = frame.NewDest(1, 0), frame.NewDest(2, 0), frame.NewDest(3, 0)
	peer7, peer8        = frame.NewDest(4, 7), frame.NewDest(4, 8)

	groupA = netip.MustParseAddr("239.1.2.3")
	groupB = netip.MustParseAddr("239.1.2.4")
	group6 = netip.MustParseAddr("ff05::1:3")
	host4  = netip.MustParseAddr("192.0.2.9")
	host6  = netip.MustParseAddr("fe80::9")
	zero   = netip.IPv4Unspecified()
)

func mac(n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, n} }

// packet4 is an IPv4 packet in a frame.
func packet4(src, dst netip.Addr, protocol uint8, payload []byte) []byte {
	b := make([]byte, 34, 34+len(payload))
	to := dst.As4()
	copy(b, []byte{1, 0, 0x5e, to[1] & 0x7f, to[2], to[3], 2, 0, 0, 0, 0, 9, 8, 0})
	h := wire.IPv4Header{TTL: 1, Protocol: protocol, TotalLen: uint16(20 + len(payload)), Src: src.As4(), Dst: to}
	h.Put(b[14:])
	return append(b, payload...)
}

// igmp is a message in a frame, with its checksum.
func igmp(src, dst netip.Addr, m ...byte) []byte {
	m[2], m[3] = 0, 0
	binary.BigEndian.PutUint16(m[2:], wire.Checksum(wire.Sum(m, 0)))
	return packet4(src, dst, protoIGMP, m)
}

// mld is likewise one of ICMPv6, behind a router alert.
func mld(src, dst netip.Addr, m ...byte) []byte {
	b := packet6(src, dst, wire.ProtoHopByHop, append([]byte{wire.ProtoICMPv6, 0, 5, 2, 0, 0, 1, 0}, m...))
	m = b[62:]
	m[2], m[3] = 0, 0
	binary.BigEndian.PutUint16(m[2:], wire.Checksum(wire.Sum(m, wire.Pseudo6(b[14:], wire.ProtoICMPv6, len(m)))))
	return b
}

func packet6(src, dst netip.Addr, next uint8, payload []byte) []byte {
	b := make([]byte, 54, 54+len(payload))
	to := dst.As16()
	copy(b, []byte{0x33, 0x33, to[12], to[13], to[14], to[15], 2, 0, 0, 0, 0, 9, 0x86, 0xdd})
	h := wire.IPv6Header{NextHeader: next, HopLimit: 1, PayloadLen: uint16(len(payload)), Src: src.As16(), Dst: to}
	h.Put(b[14:])
	return append(b, payload...)
}

func raw(a netip.Addr) []byte { return a.AsSlice() }

// record is one of IGMPv3 or MLDv2.
func record(typ byte, g netip.Addr, sources ...netip.Addr) []byte {
	b := append([]byte{typ, 0, 0, byte(len(sources))}, raw(g)...)
	for _, s := range sources {
		b = append(b, raw(s)...)
	}
	return b
}

// report3 is a report of the new version.
func report3(records ...[]byte) []byte {
	v6 := len(records[0]) >= 20 && records[0][4] == 0xff
	m := []byte{igmpReport3, 0, 0, 0, 0, 0, 0, byte(len(records))}
	for _, r := range records {
		m = append(m, r...)
	}
	if v6 {
		m[0] = mldReport2
		return mld(host6, netip.MustParseAddr("ff02::16"), m...)
	}
	return igmp(host4, netip.MustParseAddr("224.0.0.22"), m...)
}

// old is a message of IGMPv1 or v2, or MLDv1.
func old(typ byte, g netip.Addr) []byte {
	if g.Is4() {
		return igmp(host4, g, append([]byte{typ, 0, 0, 0}, raw(g)...)...)
	}
	return mld(host6, g, append([]byte{typ, 0, 0, 0, 0, 0, 0, 0}, raw(g)...)...)
}

// asks is a general query of version 3, with a robustness of 2.
func asks(src netip.Addr, interval byte) []byte {
	if src.Is6() {
		m := append([]byte{mldQuery, 0, 0, 0, 0x27, 0x10, 0, 0}, make([]byte, 20)...)
		m[24], m[25] = 2, interval
		return mld(src, netip.MustParseAddr("ff02::1"), m...)
	}
	return igmp(src, netip.MustParseAddr("224.0.0.1"), igmpQuery, 100, 0, 0, 0, 0, 0, 0, 2, interval, 0, 0)
}

// lab is a Snooper with a clock.
type lab struct {
	t *testing.T
	*Snooper
	tick frame.Tick
	sent []said
}

type said struct {
	to frame.Dest
	b  []byte
}

func newLab(t *testing.T, cfg Config) *lab {
	t.Helper()
	l := &lab{t: t}
	cfg.Send = func(to frame.Dest, f *frame.Frame) bool {
		l.sent = append(l.sent, said{to, bytes.Clone(f.Bytes())})
		return true
	}
	l.Snooper = check.Must(New(&cfg))(t)
	return l
}

// from has a frame come from a place, and returns what becomes of it.
func (l *lab) from(place frame.Dest, b []byte) frame.Verdict {
	return l.through(l.Snooper, place, b)
}

func (l *lab) through(s *Snooper, place frame.Dest, b []byte) frame.Verdict {
	f := frame.Make(b)
	f.From, f.Tunnel = place, place.Port() == 4
	return s.Process(&f, frame.At{Tick: l.tick})
}

// pass lets time pass.
func (l *lab) pass(seconds int) {
	for range seconds {
		l.tick++
		l.Housekeep(l.tick)
	}
}

// to returns where a frame goes; all is true for everywhere.
func (l *lab) to(b []byte) (places []frame.Dest, all bool) {
	f := frame.Make(b)
	to, some := l.Select(&f)
	if !some {
		return nil, true
	}
	for d, ok := to.Next(); ok; d, ok = to.Next() {
		places = append(places, d)
	}
	return places, false
}

// heard returns where a packet to a group goes.
func (l *lab) heard(g netip.Addr) (places []frame.Dest, all bool) {
	if g.Is4() {
		return l.to(packet4(host4, g, 17, make([]byte, 8)))
	}
	return l.to(packet6(host6, g, 17, make([]byte, 8)))
}
