package arp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = check.OK

func mac(n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, n} }

func ip4(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

func ip6(n byte) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n}) }

// addr is host n's address of a family.
func addr(v6 bool, n byte) netip.Addr {
	if v6 {
		return ip6(n)
	}
	return ip4(n)
}

func nobody(v6 bool) netip.Addr {
	if v6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

var (
	toAll    = netip.MustParseAddr("ff02::1")
	toAllMAC = frame.MAC{0x33, 0x33, 0, 0, 0, 1}
)

// kinds of messages.
const (
	whoHas = iota
	isAt
	routerSol
	routerAdv
)

// A said is one message in the words of both families, written and read by gopacket.
type said struct {
	kind      int
	src, dst  frame.MAC
	sender    netip.Addr
	senderMAC frame.MAC // zero in ND: no option
	target    netip.Addr
	targetMAC frame.MAC  // ARP
	to        netip.Addr // ND: the destination
	flags     uint8      // of an advertisement
}

// question is host from's, who has to?, as hosts send it.
func question(v6 bool, from, to byte) said {
	q := said{kind: whoHas, src: mac(from), dst: frame.Broadcast, sender: addr(v6, from), senderMAC: mac(from), target: addr(v6, to)}
	if v6 {
		q.to, q.dst = solicited(q.target)
	}
	return q
}

// answer is host from's to host to.
func answer(v6 bool, from, to byte) said {
	a := said{kind: isAt, src: mac(from), dst: mac(to), sender: addr(v6, from), senderMAC: mac(from), target: addr(v6, to), targetMAC: mac(to)}
	if v6 {
		a.target, a.to, a.targetMAC, a.flags = a.sender, addr(v6, to), frame.MAC{}, 0x60
	}
	return a
}

// announcement is host n's, of itself.
func announcement(v6 bool, n byte) said {
	if v6 {
		return said{kind: isAt, src: mac(n), dst: toAllMAC, sender: ip6(n), senderMAC: mac(n), target: ip6(n), to: toAll, flags: 0x20}
	}
	q := question(false, n, n)
	return q
}

// probe asks whether host n's address is free.
func probe(v6 bool, from, n byte) said {
	q := question(v6, from, n)
	q.sender = nobody(v6)
	if v6 {
		q.senderMAC = frame.MAC{}
	}
	return q
}

func solicited(target netip.Addr) (netip.Addr, frame.MAC) {
	b := target.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]}),
		frame.MAC{0x33, 0x33, 0xff, b[13], b[14], b[15]}
}

func (s said) v6() bool { return s.to.IsValid() }

// layers returns what gopacket makes of it.
func (s said) layers() []gopacket.SerializableLayer {
	eth := &layers.Ethernet{SrcMAC: s.src.HardwareAddr(), DstMAC: s.dst.HardwareAddr(), EthernetType: layers.EthernetTypeARP}
	if !s.v6() {
		return []gopacket.SerializableLayer{eth, &layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: uint16(s.kind + 1), SourceHwAddress: s.senderMAC[:], SourceProtAddress: s.sender.AsSlice(),
			DstHwAddress: s.targetMAC[:], DstProtAddress: s.target.AsSlice(),
		}}
	}
	eth.EthernetType = layers.EthernetTypeIPv6
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: s.sender.AsSlice(), DstIP: s.to.AsSlice()}
	typ := [...]uint8{whoHas: 135, isAt: 136, routerSol: 133, routerAdv: 134}[s.kind]
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
	icmp.SetNetworkLayerForChecksum(ip)
	option := layers.ICMPv6OptSourceAddress
	if s.kind == isAt {
		option = layers.ICMPv6OptTargetAddress
	}
	var opts layers.ICMPv6Options
	if !s.senderMAC.IsZero() {
		opts = layers.ICMPv6Options{{Type: option, Data: s.senderMAC[:]}}
	}
	var body gopacket.SerializableLayer
	switch s.kind {
	case whoHas:
		body = &layers.ICMPv6NeighborSolicitation{TargetAddress: s.target.AsSlice(), Options: opts}
	case isAt:
		body = &layers.ICMPv6NeighborAdvertisement{Flags: s.flags, TargetAddress: s.target.AsSlice(), Options: opts}
	case routerSol:
		body = &layers.ICMPv6RouterSolicitation{Options: opts}
	case routerAdv:
		body = &layers.ICMPv6RouterAdvertisement{HopLimit: 64, RouterLifetime: 1800, Options: opts}
	}
	return []gopacket.SerializableLayer{eth, ip, icmp, body}
}

func (s said) bytes(t testing.TB) []byte {
	t.Helper()
	return packets.Of(s.layers()...)
}

// hear reads a frame, and checks every length and checksum by writing it anew.
func hear(t testing.TB, b []byte) said {
	t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v\n% x", e.Error(), b)
	}
	eth := p.LinkLayer().(*layers.Ethernet)
	s := said{src: frame.MAC(eth.SrcMAC), dst: frame.MAC(eth.DstMAC)}
	addrOf := func(ip net.IP) netip.Addr {
		a, _ := netip.AddrFromSlice(ip)
		return a
	}
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
		s.kind = int(a.Operation) - 1
		s.senderMAC, s.sender = frame.MAC(a.SourceHwAddress), addrOf(a.SourceProtAddress)
		s.targetMAC, s.target = frame.MAC(a.DstHwAddress), addrOf(a.DstProtAddress)
	} else {
		ip := p.NetworkLayer().(*layers.IPv6)
		if ip.HopLimit != 255 {
			t.Errorf("hop limit %d", ip.HopLimit)
		}
		s.sender, s.to = addrOf(ip.SrcIP), addrOf(ip.DstIP)
		var opts layers.ICMPv6Options
		switch n := p.Layers()[3].(type) {
		case *layers.ICMPv6NeighborAdvertisement:
			s.kind, s.flags, s.target, opts = isAt, n.Flags, addrOf(n.TargetAddress), n.Options
		case *layers.ICMPv6NeighborSolicitation:
			s.kind, s.target, opts = whoHas, addrOf(n.TargetAddress), n.Options
		default:
			t.Fatalf("%v", p)
		}
		if len(opts) > 0 {
			s.senderMAC = frame.MAC(opts[0].Data)
		}
	}
	if again := s.bytes(t); len(again) < len(b) || !bytes.Equal(again[:len(b)], b) || len(bytes.Trim(again[len(b):], "\x00")) > 0 { // padded to 60
		t.Errorf("lengths or checksums:\n% x, gopacket writes\n% x", b, again)
	}
	return s
}

// patch returns b with a byte changed and, in ND, the checksum made right again.
func patch(b []byte, at int, x byte) []byte {
	b = bytes.Clone(b)
	b[at] = x
	if binary.BigEndian.Uint16(b[12:]) != 0x86dd {
		return b
	}
	b[56], b[57] = 0, 0
	sum := uint32(58 + len(b) - 54)
	for i := 22; i < 54; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for i := 54; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[56:], ^uint16(sum))
	return b
}

// A lab is a responder between local ports 1 and 2 and a tunnel, port 9 with peers.
type lab struct {
	t      testing.TB
	table  *Table
	r      *Responder
	fdb    map[frame.MAC]frame.Dest
	events []frame.Event
	now    frame.Tick
}

var (
	port1 = frame.NewDest(1, 0)
	port2 = frame.NewDest(2, 0)
	peer3 = frame.NewDest(9, 3)
	peer4 = frame.NewDest(9, 4)
)

func newLab(t testing.TB, tc *TableConfig, cfg Config) *lab {
	t.Helper()
	l := &lab{t: t, fdb: map[frame.MAC]frame.Dest{}}
	c := TableConfig{VNI: 100}
	if tc != nil {
		c = *tc
	}
	note := func(e frame.Event) { l.events = append(l.events, e) }
	c.Notify = note
	var err error
	l.table, err = NewTable(&c)
	must(t, err)
	cfg.Table, cfg.Notify = l.table, note
	cfg.Locate = func(m frame.MAC) (frame.Dest, bool) {
		d, ok := l.fdb[m]
		return d, ok
	}
	l.r, err = NewResponder(&cfg)
	must(t, err)
	return l
}

// at makes a frame that has come in at a place.
func at(from frame.Dest, b []byte) frame.Frame {
	f := frame.Make(b)
	f.From, f.VNI, f.Tunnel, f.Hash = from, 100, from.Port() == 9, 1
	return f
}

// give hands a frame to the stage and says what became of it.
func (l *lab) give(from frame.Dest, b []byte) (frame.Verdict, Outcome, frame.Frame) {
	l.t.Helper()
	was := l.r.Stats()
	f := at(from, b)
	v := l.r.Process(&f, frame.At{Tick: l.now})
	is := l.r.Stats()
	found := NumOutcomes
	for b := range NumOutcomes {
		switch n := is.ARP[b] + is.ND[b] - was.ARP[b] - was.ND[b]; {
		case n == 1 && found == NumOutcomes:
			found = b
		case n != 0:
			l.t.Fatalf("%v counted %d times", b, n)
		}
	}
	return v, found, f
}

// say is give for a message.
func (l *lab) say(from frame.Dest, s said) (frame.Verdict, Outcome, frame.Frame) {
	l.t.Helper()
	return l.give(from, s.bytes(l.t))
}

// set makes an entry, and says where its MAC is.
func (l *lab) set(ip netip.Addr, m frame.MAC, flags Flags, d frame.Dest) {
	l.t.Helper()
	must(l.t, l.table.Set(ip, m, Control, flags))
	l.fdb[m] = d
}
