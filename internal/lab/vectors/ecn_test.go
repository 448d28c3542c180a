package vectors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/vtep"
)

// ECN fields as bits.
const (
	notECT = 0b00
	ect1   = 0b01
	ect0   = 0b10
	ce     = 0b11
)

// withTOS returns a frame of an IP version with a TOS or traffic class and a hop limit,
// its header checksum right.
func withTOS(v6 bool, src frame.MAC, tos, ttl byte) []byte {
	if v6 {
		p := ipv6(17, 1000, 2000)
		p[0], p[1], p[7] = 0x60|tos>>4, tos<<4, ttl
		return mem.Ethernet(frame.Broadcast, src, 0x86dd, p)
	}
	p := ipv4(17, 0, 1000, 2000)
	p[1], p[8] = tos, ttl
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum+sum>>16))
	return mem.Ethernet(frame.Broadcast, src, 0x0800, p)
}

// ecnFrames are the ways to carry a TOS.
var ecnFrames = []func(src frame.MAC, tos byte) []byte{
	func(src frame.MAC, tos byte) []byte { return withTOS(false, src, tos, 9) },
	func(src frame.MAC, tos byte) []byte { return withTOS(true, src, tos, 9) },
}

func ecnRows() (rows []row) {
	for mode, want := range map[string]struct {
		ecn   vtep.ECN
		outer [4]byte // by inner field
	}{
		"2.send-normal":  {vtep.ECNNormal, [4]byte{notECT, ect1, ect0, ce}},
		"2.send-compat":  {vtep.ECNCompat, [4]byte{}},
		"2.send-rfc3168": {vtep.ECNRFC3168, [4]byte{notECT, ect1, ect0, ect0}},
	} {
		rows = append(rows, row{id: mode, name: "all fields", wire: func(l *lab) {
			h, f := l.pair(&vtep.Config{Header: vtep.Header{ECN: want.ecn, TOS: 0xb8}}, floods{2})
			for _, make := range ecnFrames {
				for in := range byte(4) {
					b := make(h.MAC, 0x20|in)
					h.Send(b)
					f.wantOuter(64, 0xb8|want.outer[in], vx(vni, b))
				}
			}
		}})
	}
	rows = append(rows, row{id: "2.send-peer", name: "one peer of two", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 3})
		l.must(l.VTEP.SetPeers([]vtep.PeerConfig{{Address: l.addr(3), Header: vtep.Header{ECN: vtep.ECNCompat}}}))
		b := withTOS(false, h.MAC, ce, 9)
		h.Send(b)
		f.wantOuter(64, ce, vx(vni, b))
		g.wantOuter(64, 0, vx(vni, b))
	}})
	for _, c := range []struct {
		inner, outer, want byte
		odd                bool
	}{
		{notECT, notECT, notECT, false}, {notECT, ect0, notECT, true}, {notECT, ect1, notECT, true},
		{ect0, notECT, ect0, false}, {ect0, ect0, ect0, false}, {ect0, ect1, ect1, false}, {ect0, ce, ce, false},
		{ect1, notECT, ect1, false}, {ect1, ect0, ect1, true}, {ect1, ect1, ect1, false}, {ect1, ce, ce, false},
		{ce, notECT, ce, false}, {ce, ect0, ce, false}, {ce, ect1, ce, true}, {ce, ce, ce, false},
	} {
		name := fmt.Sprintf("inner %02b outer %02b", c.inner, c.outer)
		rows = append(rows, row{id: "2.receive", name: name, wire: func(l *lab) {
			h, f := l.pair()
			odd := uint64(0)
			for _, make := range ecnFrames {
				f.sendTOS(0x40|c.outer, vx(vni, make(rmac(1), 0xb8|c.inner)))
				h.Want(make(rmac(1), 0xb8|c.want)) // the header checksum included
				if c.odd {
					odd++
				}
			}
			l.drops(nil)
			n := l.VTEP.Stats().ECN
			l.check(n == odd, "%d anomalies, want %d", n, odd)
		}})
	}
	return append(rows,
		row{id: "2.receive-drop", name: "inner 00 outer 11", wire: func(l *lab) {
			h, f := l.pair()
			n := uint64(0)
			for _, make := range ecnFrames {
				f.sendTOS(ce, vx(vni, make(rmac(1), 0xb8)))
				n++
				l.drops(map[string]uint64{"ecn": n})
			}
			h.Want()
			st := l.VTEP.Stats()
			l.check(st.ECN == n && len(st.Peers) == 0, "%+v", st)
			l.wantFDB(l.seg, table{}) // it teaches nothing
		}},
		row{id: "2.receive-tags", name: "looked for behind a tag", wire: func(l *lab) {
			l.start()
			f := l.far(2)
			// The tag is refused by the access attachment, after ECN.
			f.sendTOS(ce, vx(vni, mem.Tagged(5, withTOS(false, rmac(1), 0, 9))))
			l.drops(one("ecn"))
			f.sendTOS(ce, vx(vni, mem.Tagged(5, withTOS(false, rmac(1), ect0, 9))))
			l.drops(map[string]uint64{"ecn": 1, "inner-vlan": 1})
		}},
		row{id: "2.receive-other", name: "frames that are not IP", wire: func(l *lab) {
			h, f := l.pair()
			b := eth(frame.Broadcast, rmac(1), "not IP")
			f.sendTOS(ce, vx(vni, b))
			h.Want(b)
			l.drops(nil)
		}},
		row{id: "1.order-ecn", name: "unknown VNI", wire: func(l *lab) {
			l.start()
			l.far(2).sendTOS(ce, vx(77, withTOS(false, rmac(1), 0, 9)))
			l.drops(one("unknown-vni"))
		}},
		row{id: "1.order-ecn", name: "bad source MAC", wire: func(l *lab) {
			h, f := l.pair()
			f.sendTOS(ce, vx(vni, withTOS(false, mcast, 0, 9)))
			f.send(vx(vni, in1)) // now the peer is known
			h.Want(in1)
			f.sendTOS(ce, vx(vni, withTOS(false, mcast, 0, 9)))
			l.drops(map[string]uint64{"bad-source-mac": 2})
		}},
		row{id: "1.order-ecn", name: "before learning", wire: func(l *lab) {
			h, f, g := l.trio()
			l.passes(f, in1, h)
			g.sendTOS(ce, vx(vni, withTOS(false, rmac(1), 0, 9))) // would be a move
			l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
			l.drops(one("ecn"))
		}},
	)
}

// sendTOS is send with a TOS of the outer header.
func (f *far) sendTOS(tos byte, payload []byte) {
	f.l.T.Helper()
	e, err := frame.EndpointFrom(f.to)
	f.l.must(err)
	ds := []frame.Datagram{{Parts: [][]byte{bytes.Clone(payload)}, To: []frame.Endpoint{e}, TOS: tos}}
	f.l.must(f.u.Sender(0).Send(ds))
	f.l.Settle()
}

// inheritRow sends frames of both IP versions, tagged ones, and others, and looks at the
// outer header.
func inheritRow(id, name string, h vtep.Header, ttl, tos byte, make func(src frame.MAC) []byte) row {
	return row{id: id, name: name, wire: func(l *lab) {
		l.start(&vtep.Config{Header: h})
		f := l.far(2)
		n := check.Must(l.VTEP.AddPeer(f.u.LocalAddr()))(l.T)
		b := make(rmac(1))
		l.writes(l.VTEP, n, b)
		f.wantOuter(ttl, tos, vx(vni, b))
	}}
}

var inheritRows = []row{
	inheritRow("1.ttl-inherit", "IPv4", vtep.Header{TTL: vtep.Inherit}, 9, 0, func(m frame.MAC) []byte { return withTOS(false, m, 0, 9) }),
	inheritRow("1.ttl-inherit", "IPv6", vtep.Header{TTL: vtep.Inherit}, 9, 0, func(m frame.MAC) []byte { return withTOS(true, m, 0, 9) }),
	inheritRow("1.ttl-inherit", "behind a tag", vtep.Header{TTL: vtep.Inherit}, 9, 0, func(m frame.MAC) []byte { return mem.Tagged(5, withTOS(true, m, 0, 9)) }),
	inheritRow("1.ttl-inherit", "behind two", vtep.Header{TTL: vtep.Inherit}, 9, 0, func(m frame.MAC) []byte { return qinq(mem.Tagged(5, withTOS(false, m, 0, 9))) }),
	inheritRow("1.ttl-inherit", "not IP: 64", vtep.Header{TTL: vtep.Inherit}, 64, 0, func(m frame.MAC) []byte { return eth(nobody, m, "") }),
	inheritRow("1.ttl-inherit", "ARP: 64", vtep.Header{TTL: vtep.Inherit}, 64, 0, func(m frame.MAC) []byte { return mem.Ethernet(nobody, m, 0x0806, make([]byte, 46)) }),
	inheritRow("1.tos-inherit", "IPv4", vtep.Header{TOS: vtep.Inherit}, 64, 0xb8, func(m frame.MAC) []byte { return withTOS(false, m, 0xb8, 9) }),
	inheritRow("1.tos-inherit", "IPv6", vtep.Header{TOS: vtep.Inherit}, 64, 0xb8, func(m frame.MAC) []byte { return withTOS(true, m, 0xb8, 9) }),
	inheritRow("1.tos-inherit", "behind a tag", vtep.Header{TOS: vtep.Inherit}, 64, 0xb8, func(m frame.MAC) []byte { return mem.Tagged(5, withTOS(false, m, 0xb8, 9)) }),
	inheritRow("1.tos-inherit", "behind two", vtep.Header{TOS: vtep.Inherit}, 64, 0xb8, func(m frame.MAC) []byte { return qinq(mem.Tagged(5, withTOS(true, m, 0xb8, 9))) }),
	inheritRow("1.tos-inherit", "not IP: 0", vtep.Header{TOS: vtep.Inherit}, 64, 0, func(m frame.MAC) []byte { return eth(nobody, m, "") }),
	inheritRow("1.tos-inherit", "ECN is not of the TOS", vtep.Header{TOS: vtep.Inherit, ECN: vtep.ECNCompat}, 64, 0xb8, func(m frame.MAC) []byte { return withTOS(true, m, 0xb8|ect0, 9) }),
}

// figure4 is that of RFC 6040: what is inside afterwards, by inner and outer field.
var figure4 = [4][4]struct {
	inner     byte
	odd, drop bool
}{
	notECT: {notECT: {inner: notECT}, ect0: {notECT, true, false}, ect1: {notECT, true, false}, ce: {notECT, true, true}},
	ect0:   {notECT: {inner: ect0}, ect0: {inner: ect0}, ect1: {inner: ect1}, ce: {inner: ce}},
	ect1:   {notECT: {inner: ect1}, ect0: {ect1, true, false}, ect1: {inner: ect1}, ce: {inner: ce}},
	ce:     {notECT: {inner: ce}, ect0: {inner: ce}, ect1: {ce, true, false}, ce: {inner: ce}},
}

// ecnOf sends all sixteen combinations, packet makes one, and wants what figure 4 says.
func (l *lab) ecnOf(f *far, packet func(tos byte) (sent, want []byte), want func(...[]byte)) {
	l.T.Helper()
	odd, drops := uint64(0), uint64(0)
	for inner := range byte(4) {
		for outer := range byte(4) {
			c := figure4[inner][outer]
			sent, _ := packet(0xb8 | inner)
			_, arrives := packet(0xb8 | c.inner)
			f.sendTOS(0x40|outer, sent)
			if c.odd {
				odd++
			}
			if c.drop {
				drops++
				want()
			} else {
				want(arrives) // the header checksum included
			}
		}
	}
	l.drops(map[string]uint64{"ecn": drops})
	n := l.VTEP.Stats().ECN
	l.check(n == odd && drops == 1, "%d anomalies, want %d, %d drops", n, odd, drops)
}

// tunnelECNRows are ecnRows for other tunnels.
func tunnelECNRows() (rows []row) {
	for _, c := range []struct {
		id    string
		mode  vtep.ECN
		outer [4]byte // by inner field
	}{
		{"2.send-normal", vtep.ECNNormal, [4]byte{notECT, ect1, ect0, ce}},
		{"2.send-compat", vtep.ECNCompat, [4]byte{}},
		{"2.send-rfc3168", vtep.ECNRFC3168, [4]byte{notECT, ect1, ect0, ect0}},
	} {
		sends := func(l *lab, t encap.Type, v6 bool) {
			j := l.joined(vtep.Config{Type: t, Header: vtep.Header{ECN: c.mode, TOS: 0x28}})
			for inner := range byte(4) {
				p := j.packet(v6)
				p.tos = 0xb8 | inner
				j.send(p.bytes())
				j.f.wantOuter(64, 0x28|c.outer[inner], j.wrap(p.bytes()))
			}
		}
		rows = append(rows, forIP(c.id, "packets", sends)...)
		if c.mode == vtep.ECNNormal {
			rows = append(rows, inside("8.ecn", "sent, all fields", func(l *lab, v6 bool) { sends(l, encap.TypeIPIP, v6) })...)
		}
		rows = append(rows, row{id: c.id, name: "frames, gpe", wire: func(l *lab) {
			h, f := l.pair(&vtep.Config{Type: encap.TypeGPE, Header: vtep.Header{ECN: c.mode}}, floods{2})
			for _, make := range ecnFrames {
				for in := range byte(4) {
					b := make(h.MAC, 0x20|in)
					h.Send(b)
					f.wantOuter(64, c.outer[in], bum(vni, 3, b))
				}
			}
		}})
	}
	receives := func(l *lab, t encap.Type, v6 bool) {
		j := l.joined(vtep.Config{Type: t})
		l.ecnOf(j.f, func(tos byte) (sent, want []byte) {
			p := j.back(v6)
			p.tos = tos
			return j.wrap(p.bytes()), p.bytes()
		}, j.want)
	}
	return slices.Concat(rows,
		forIP("2.receive", "all fields of packets", receives),
		inside("8.ecn", "received, all fields", func(l *lab, v6 bool) { receives(l, encap.TypeIPIP, v6) }),
		inside("2.receive", "all fields of frames, gpe", func(l *lab, v6 bool) {
			h, f := l.pair(gpeVTEP)
			l.ecnOf(f, func(tos byte) (sent, want []byte) {
				b := withTOS(v6, rmac(1), tos, 9)
				return gpe(vni, 3, b), b
			}, h.Want)
		}),
		inside("2.receive-drop", "a packet teaches no peer, gpe", func(l *lab, v6 bool) {
			l.start(gpeVTEP)
			took := l.takesIP()
			p := packetOf(frame.MAC{}, ipOf(v6, vni, 1), frame.MAC{}, ipOf(v6, vni2, 2)).naked().bytes()
			l.far(2).sendTOS(ce, wrapped(encap.TypeGPE, vni, p))
			st := l.VTEP.Stats()
			l.check(len(st.Peers) == 0 && len(*took) == 0, "%+v, %d packets", st, len(*took))
			l.drops(one("ecn"))
		}),
	)
}
