package l3

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// pingOf is an echo request of host 1 in VNI 10 to an address.
func pingOf(src, dst netip.Addr, payload int) shape {
	s := shape{src: src, dst: dst, from: host(1), to: gate(10), ttl: 64, payload: payload, proto: layers.IPProtocolICMPv4, icmp: 8}
	if src.Is6() {
		s.proto, s.icmp = layers.IPProtocolICMPv6, 128
	}
	return s
}

// answerTo is the echo reply to such a request.
func answerTo(s shape) shape {
	s.src, s.dst, s.from, s.to = s.dst, s.src, s.to, s.from
	if s.icmp = 0; s.src.Is6() {
		s.icmp = 129
	}
	return s
}

// The gateway is asked by its link-local addresses, and by hosts that have no other.
func TestLinkLocalPing(t *testing.T) {
	l := newLab(t, nil)
	table := check.Must(arp.NewTable(nil))(t)
	r := check.Must(arp.NewResponder(&arp.Config{Table: table}))(t)
	i, err := l.vrf.NewInterface(&InterfaceConfig{
		VNI: 30, MAC: gate(10), VTEPMAC: own, Neighbours: r, Send: l.send(30), Addresses: []netip.Prefix{
			netip.MustParsePrefix("169.254.1.1/32"), netip.MustParsePrefix("10.0.30.254/24"),
			netip.MustParsePrefix("fe80::fe/64"), netip.MustParsePrefix("fd00:30::fe/64"),
		},
	})
	check.OK(t, err)
	for _, c := range []struct {
		src, dst string
		answered bool
	}{
		{"fe80::1", "fe80::fe", true},
		{"fd00:30::1", "fe80::fe", true},
		{"fe80::1", "fd00:30::fe", true},
		{"fe80::1", arp.LinkLocal(gate(10)).String(), true},
		{"fe80::1", arp.LinkLocal(own).String(), true},
		{"169.254.7.7", "169.254.1.1", true},
		{"10.0.30.1", "169.254.1.1", true},
		{"169.254.7.7", "10.0.30.254", true},

		{"fe80::1", "fe80::2", false},                 // a neighbour's
		{"fe80::1", "fd00:0:0:14::fe", false},         // another segment's
		{"fe80::1", at6(20, 254).String(), false},     // likewise
		{"fe80::fe", "fd00:30::fe", false},            // from ourselves
		{"fd00:30::fe", "fe80::fe", false},            // likewise
		{"fe80::fe", "fe80::fe", false},               // likewise
		{"ff02::1", "fe80::fe", false},                // a group
		{"::", "fe80::fe", false},                     // nobody
		{"::1", "fe80::fe", false},                    // loopback
		{"fe80::1", "fd00:30::9", false},              // not routed
		{"169.254.7.7", "10.0.30.9", false},           // likewise
		{"169.254.7.7", "169.254.7.8", false},         // a neighbour's
		{"169.254.1.1", "10.0.30.254", false},         // from ourselves
		{"127.0.0.1", "169.254.1.1", false},           // loopback
		{"224.0.0.1", "169.254.1.1", false},           // a group
		{"169.254.7.7", "169.254.255.255", false},     // a broadcast
		{"10.0.30.254", "169.254.1.1", false},         // from ourselves
		{"169.254.7.7", at4(20, 254).String(), false}, // another segment's
	} {
		s := pingOf(netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst), 56)
		in := s.bytes(t)
		v, f := l.in(i, in)
		switch {
		case !c.answered:
			if v != frame.Drop(frame.Martian) || !bytes.Equal(f.Bytes(), in) {
				t.Errorf("%s to %s: %v", c.src, c.dst, v)
			}
		case v != frame.Reply || !bytes.Equal(f.Bytes(), answerTo(s).bytes(t)):
			t.Errorf("%s to %s: %v\n% x", c.src, c.dst, v, f.Bytes())
		}
	}
	// A service that there is none of is refused there, too.
	s := pingOf(netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::fe"), 56)
	s.proto = 0
	in := s.bytes(t)
	v, f := l.in(i, in)
	check.Need(t, v == frame.Reply, "%v", v)
	checkError(t, f.Bytes(), in, true, 0, 1<<8|4, netip.Addr{}, netip.MustParseAddr("fd00:30::fe"))
}

// with puts extension headers into a packet.
func with(b []byte, headers ...[]byte) []byte {
	next := b[14+6]
	for k := len(headers) - 1; k >= 0; k-- {
		headers[k][1], next = next, headers[k][0]
		headers[k][0], headers[k][1] = headers[k][1], byte(len(headers[k])/8-1)
	}
	b = slices.Concat(b[:14+40], slices.Concat(headers...), b[14+40:])
	b[14+6] = next
	n := len(b) - 14 - 40
	b[14+4], b[14+5] = byte(n>>8), byte(n)
	return b
}

// ext is an extension header: its own number, which with moves to the one in front.
func ext(kind byte, segmentsLeft byte, n int) []byte {
	h := make([]byte, n)
	h[0] = kind
	if kind == 43 {
		h[2], h[3] = 253, segmentsLeft
	} else {
		h[2], h[3] = 1, byte(n-4) // PadN
	}
	return h
}

// Behind extension headers a ping is a ping, and its answer has none; another service is none.
func TestPingBehindExtensionHeaders(t *testing.T) {
	for name, headers := range map[string]func() [][]byte{
		"hop-by-hop":      func() [][]byte { return [][]byte{ext(0, 0, 8)} },
		"destination":     func() [][]byte { return [][]byte{ext(60, 0, 16)} },
		"all":             func() [][]byte { return [][]byte{ext(0, 0, 8), ext(60, 0, 8), ext(43, 0, 8), ext(60, 0, 24)} },
		"no segment more": func() [][]byte { return [][]byte{ext(43, 0, 8)} },
	} {
		l := newLab(t, nil)
		s := pingOf(at6(10, 1), at6(10, 254), 57)
		v, f := l.in(l.i10, with(s.bytes(t), headers()...))
		if v != frame.Reply || !bytes.Equal(f.Bytes(), answerTo(s).bytes(t)) {
			t.Errorf("%s: %v\n% x", name, v, f.Bytes())
		}
		s.proto = 0
		in := with(s.bytes(t), headers()...)
		if v, f = l.in(l.i10, in); v != frame.Reply {
			t.Fatalf("%s: %v", name, v)
		}
		checkError(t, f.Bytes(), in, true, 0, 1<<8|4, netip.Addr{}, at6(10, 254))
	}
	l := newLab(t, nil)
	s := pingOf(at6(10, 1), at6(10, 254), 57)
	for name, in := range map[string][]byte{
		"to be sent on":          with(s.bytes(t), ext(43, 1, 24)),
		"to be sent on, further": with(s.bytes(t), ext(60, 0, 16), ext(43, 2, 8)),
		"cut short":              with(s.bytes(t), func() []byte { h := ext(60, 0, 8); return h }())[:14+40+4],
	} {
		if name == "cut short" {
			in[14+5] = 4
		}
		if v, f := l.in(l.i10, in); v != frame.Drop(frame.BadHeader) || !bytes.Equal(f.Bytes(), in) {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// cut returns a packet in fragments of at most mtu bytes.
func cut(t testing.TB, b []byte, mtu int, id uint32) (list [][]byte) {
	f := frame.Make(b)
	from := frame.NewDest(7, 1) // whose share of what waits to be sent they take
	keep := func(_ frame.Dest, g *frame.Frame) bool {
		check.Equal(t, "a piece is from", g.From, from)
		list = append(list, bytes.Clone(g.Bytes()))
		return true
	}
	if p, ok := wire.ParseIPv4(b[14:]); ok {
		p.SetID(uint16(id))
		fragment4(&f, wire.IPv4(f.Bytes()[14:]), 14, mtu, from, 0, keep)
		for _, x := range list {
			q := wire.IPv4(x[14:])
			q.SetID(uint16(id))
			q.SetChecksum(0)
			q.SetChecksum(wire.Checksum(wire.Sum(q[:q.HeaderLen()], 0)))
		}
		return list
	}
	fragment6(&f, wire.IPv6(f.Bytes()[14:]), 14, mtu, id, from, 0, keep)
	return list
}

// A ping in fragments, in whatever order and more than once, has one answer, in fragments that
// are no longer.
func TestPingInFragments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v6 := range []bool{false, true} {
		for _, size := range []int{1, 700, 1480, 4000, 60_000} {
			for _, mtu := range []int{1280, 1500} {
				t.Run(fmt.Sprintf("IPv6 %v, %d bytes, MTU %d", v6, size, mtu), func(t *testing.T) {
					l := newLab(t, nil)
					s := pingOf(addrOf(v6, 10, 1), addrOf(v6, 10, 254), size)
					list := cut(t, s.bytes(t), mtu, 77)
					whole := len(list) == 1 && !v6
					list = append(list, list[rng.IntN(len(list)):]...) // some come twice
					rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
					done := 0
					for _, x := range list {
						v, f := l.in(l.i10, x)
						if whole {
							l.send(10)(0, &f)
							done++
						} else if v != frame.Consume {
							t.Fatal(v)
						}
						if len(l.injected) > 0 {
							break
						}
					}
					// The answer, put together, is what it would have been in one piece.
					var pieces fragments = newFragments()
					want := answerTo(s).bytes(t)
					for _, x := range l.injected {
						b := x.f.Bytes()
						if x.vni != 10 || x.to != 0 || len(b)-14 > mtu {
							t.Errorf("%d bytes to %v", len(b), x.to)
						}
						if len(l.injected) == 1 {
							if !bytes.Equal(b[:18], want[:18]) && v6 || !bytes.Equal(b[len(b)-size:], want[len(want)-size:]) {
								t.Errorf("% x", b)
							}
							return
						}
						var d *datagram
						if v6 {
							field := uint16(b[14+42])<<8 | uint16(b[14+43])
							d, _ = pieces.add(fragmentKey{}, piece{int(field &^ 7), field&1 != 0, b[14+48:]}, b[:14+40], b[14+40], len(b), 1<<20, 0)
						} else {
							p, _ := wire.ParseIPv4(b[14:])
							check.True(t, p.ChecksumOK() && p.ID() == 77, "% x", b[:34])
							d, _ = pieces.add(fragmentKey{}, piece{p.FragmentOffset(), p[6]&0x20 != 0, p.Payload()}, b[:34], 0, len(b), 1<<20, 0)
						}
						if d == nil {
							continue
						}
						var all []byte
						for _, p := range d.pieces {
							all = append(all, p.data...)
						}
						if !bytes.Equal(all, want[len(d.head):]) || !bytes.Equal(d.head[:12], want[:12]) {
							t.Error("another answer")
						}
						return
					}
					t.Errorf("no answer in %d frames", len(l.injected))
				})
			}
		}
	}
}

// Fragments that overlap are refused, and with them all of the packet (RFC 5722); nor is one
// answered whose end is not sure.
func TestFragmentsRefused(t *testing.T) {
	const k = 1 << 10
	part := func(offset, n int, more bool) piece { return piece{offset, more, make([]byte, n)} }
	other := func(p piece) piece { p.data[0] = 1; return p }
	for name, list := range map[string][]piece{
		"overlap":                {part(0, k, true), part(k-8, k, true), part(2*k-8, k, false)},
		"overlap in front":       {part(k, k, false), part(0, k+8, true)},
		"within":                 {part(0, k, true), part(8, 16, true), part(k, k, false)},
		"around":                 {part(8, 16, true), part(0, k, true), part(k, k, false)},
		"same place, other data": {part(0, k, true), other(part(0, k, true)), part(k, k, false)},
		"same place, shorter":    {part(0, k, true), part(0, 8, true), part(k, k, false)},
		"two ends":               {part(k, k, false), part(2*k, k, false), part(0, k, true)},
		"behind the end":         {part(k, k, false), part(2*k, k, true), part(0, k, true)},
		"the end before others":  {part(2*k, k, true), part(k, k, false), part(0, k, true)},
		"not of eight bytes":     {part(0, k-1, true), part(k-1, k, false)},
		"empty":                  {part(0, 0, true), part(0, k, true), part(k, k, false)},
		"too long":               {part(0, k, true), part(65528, k, false)},
	} {
		s, refused := newFragments(), 0
		for _, p := range list {
			d, ok := s.add(fragmentKey{}, p, make([]byte, 20), 0, 1500, 1<<20, 0)
			check.True(t, d == nil, "%s: complete", name)
			if !ok {
				refused++
			}
		}
		if refused == 0 || s.shares.Size() > datagramBytes {
			t.Errorf("%s: %d refused, %d bytes kept", name, refused, s.shares.Size())
		}
		// In time it is forgotten.
		s.expire(fragmentTime)
		if len(s.of) != 0 || s.shares.Size() != 0 || s.shares.Places() != 0 {
			t.Errorf("%s: %d bytes kept", name, s.shares.Size())
		}
	}
	s := newFragments()
	for n := range maxPieces + 1 {
		if _, ok := s.add(fragmentKey{}, part(8*n, 8, true), nil, 0, 28, 1<<20, 0); ok != (n < maxPieces) {
			t.Fatalf("piece %d: %v", n, ok)
		}
	}
	s = newFragments()
	s.add(fragmentKey{}, part(0, k, true), nil, 0, 28, 1<<20, 0)
	if d, _ := s.add(fragmentKey{}, part(k, k, false), nil, 0, 28, 1<<20, fragmentTime); d != nil {
		t.Error("complete, after half a minute")
	}
}

// One port sends fragments of ever other packets: pings in fragments from elsewhere are answered.
func TestWorstFragments(t *testing.T) {
	const limit = DefaultFragments / 8
	for _, c := range []struct {
		name     string
		from     frame.Dest
		size     int
		together int // its pieces that are sent between two of the ping
	}{
		{"from another port", frame.NewDest(2, 0), 1400, 25},
		{"in small pieces", frame.NewDest(2, 0), 8, 120},
		{"from the same port", frame.NewDest(1, 0), 1400, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(attack bool) (served int) {
				l := newLab(t, &GatewayConfig{Fragments: limit})
				bad := pingOf(at6(10, 66), at6(10, 254), 2*c.size)
				first := cut(t, bad.bytes(t), c.size+48, 1)[0]
				ping := pingOf(at6(10, 1), at6(10, 254), 4000).bytes(t)
				n := 0
				for l.now = 0; l.now < tenMinutes; l.now++ {
					for _, x := range cut(t, ping, 1500, uint32(l.now)) {
						for k := 0; attack && k < c.together; k++ {
							n++
							first[14+44], first[14+45], first[14+46], first[14+47] = 9, byte(n>>16), byte(n>>8), byte(n)
							l.arrives(l.i10, frame.NewDest(1, 0), first)
						}
						l.arrives(l.i10, c.from, x)
					}
					if len(l.injected) == 3 {
						served++
					}
					l.injected = l.injected[:0]
					l.i10.Housekeep(l.now)
					if b := l.g.fragments.shares.Size(); b > limit {
						t.Fatalf("%d bytes", b)
					}
				}
				return served
			}
			worst.Kept(t, "fragments for the gateway", run(false), run(true))
		})
	}
}

// The header that counts is that of the first fragment, which may be longer than those of the
// others: what is too long with it is no packet.
func TestFragmentsTooLongByFirstHeader(t *testing.T) {
	const step, end = 1 << 10, 65_515 // with 20 bytes 65,535, and with 60 too many
	for _, firstLast := range []bool{false, true} {
		for _, proto := range []byte{wire.ProtoICMP, wire.ProtoUDP} {
			l := newLab(t, nil)
			s := pingOf(addrOf(false, 10, 1), addrOf(false, 10, 254), 8)
			var list [][]byte
			for at := 0; at < end; at += step {
				n, head := min(step, end-at), wire.IPv4Len
				if at == 0 {
					head = 60
				}
				b := make([]byte, 14+head+n)
				copy(b, s.bytes(t)[:34])
				p := wire.IPv4(b[14:])
				p[0] = 4<<4 | byte(head/4)
				for i := wire.IPv4Len; i < head; i++ {
					p[i] = 1 // no operation
				}
				p[9] = proto
				p.SetTotalLen(head + n)
				p.SetID(5)
				field := uint16(at / 8)
				if at+n < end {
					field |= moreFragments
				}
				p[6], p[7] = byte(field>>8), byte(field)
				p.SetChecksum(0)
				p.SetChecksum(wire.Checksum(wire.Sum(p[:head], 0)))
				list = append(list, b)
			}
			if firstLast {
				list = append(list[1:], list[0])
			}
			refused := false
			for _, b := range list {
				v, _ := l.in(l.i10, b)
				refused = refused || v == frame.Drop(frame.Fragment)
			}
			if !refused || len(l.injected) != 0 {
				t.Errorf("protocol %d, first last %v: refused %v, %d answers", proto, firstLast, refused, len(l.injected))
			}
		}
	}
}
