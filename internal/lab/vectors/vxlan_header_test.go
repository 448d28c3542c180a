package vectors

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

var headerRows = slices.Concat(reservedRows(), reservedOrderRows(), gbpRows, gbpRoutedRows(), vniPeerRows)

// under is a row: what becomes of a datagram under settings. No reason: it is accepted.
func under(id, name string, cfg vtep.Config, payload []byte, reason string) row {
	if reason == "" {
		return accepted(id, name, payload, &cfg)
	}
	return refused(id, name, payload, reason, &cfg)
}

func reservedRows() (rows []row) {
	strict := vtep.Config{Reserved: vtep.ReservedStrict}
	gpe := vtep.Config{Type: encap.TypeGPE, Reserved: vtep.ReservedStrict}
	gbp := vtep.Config{Reserved: vtep.ReservedStrict, GBP: true}
	mask := vtep.Config{Reserved: 0x0400_0001_0000_0001}
	rows = append(rows,
		under("1.reserved-strict", "none", strict, vx(vni, in1), ""),
		under("1.reserved-strict", "GBP", gbp, header([8]byte{0x88, 0x08, 0x12, 0x34, 0, 0, vni, 0}, in1), ""),
		under("1.reserved-mask", "none", mask, vx(vni, in1), ""),
		under("1.reserved-mask", "all others", mask, header([8]byte{0xfb, 0xff, 0xff, 0xfe, 0, 0, vni, 0xfe}, in1), ""),
		under("3.reserved-strict", "none", gpe, header([8]byte{0x0c, 0, 0, 3, 0, 0, vni, 0}, in1), ""),
		under("3.reserved-strict", "B", gpe, header([8]byte{0x0e, 0, 0, 3, 0, 0, vni, 0}, in1), ""),
	)
	for octet := range 8 {
		for bit := range 8 {
			set := func(h [8]byte) []byte { h[octet] ^= 0x80 >> bit; return header(h, in1) }
			name := fmt.Sprintf("octet %d bit %#02x", octet, 0x80>>bit)
			reason := map[bool]string{true: "reserved-bits"}
			if octet != 0 && (octet < 4 || octet == 7) || octet == 0 && bit != 4 {
				rows = append(rows, under("1.reserved-strict", name, strict, set([8]byte{8, 0, 0, 0, 0, 0, vni, 0}), "reserved-bits"))
				ofGBP := octet == 0 && bit == 0 || octet == 1 && (bit == 1 || bit == 4) || octet == 2 || octet == 3
				rows = append(rows, under("1.reserved-strict", name+" with GBP", gbp, set([8]byte{8, 0, 0, 0, 0, 0, vni, 0}), reason[!ofGBP]))
				inMask := octet == 0 && bit == 5 || octet == 3 && bit == 7 || octet == 7 && bit == 7
				rows = append(rows, under("1.reserved-mask", name, mask, set([8]byte{8, 0, 0, 0, 0, 0, vni, 0}), reason[inMask]))
			}
			if octet == 0 && bit < 2 || octet == 1 || octet == 2 || octet == 7 {
				rows = append(rows, under("3.reserved-strict", name, gpe, set([8]byte{0x0c, 0, 0, 3, 0, 0, vni, 0}), "reserved-bits"))
			}
		}
	}
	for _, c := range []struct {
		name, bits string
		cfg        vtep.Config
	}{
		{"I", "0x0800000000000000", vtep.Config{Reserved: 0xff << 56}},
		{"VNI", "0x0000000080000100", vtep.Config{Reserved: 0x0100_0000_8000_0100}},
		{"G with GBP", "0x8000000000000000", vtep.Config{GBP: true, Reserved: 0xf0 << 56}},
		{"D with GBP", "0x0040000000000000", vtep.Config{GBP: true, Reserved: 0x0040 << 48}},
		{"policy id with GBP", "0x0000000100000000", vtep.Config{GBP: true, Reserved: 1 << 32}},
		{"P of GPE", "0x0400000000000000", vtep.Config{Type: encap.TypeGPE, Reserved: 0xc4 << 56}},
		{"next protocol of GPE", "0x000000ff00000000", vtep.Config{Type: encap.TypeGPE, Reserved: 0xffff_0000_0000}},
	} {
		rows = append(rows, row{id: "1.reserved-mask-conflict", name: c.name, only: "IPv4", wire: func(l *lab) {
			u := check.Must(l.Listen(l.addr(1), c.cfg.Type))(l.T)
			check.ErrorHas(l.T, check.Err(vtep.New(&c.cfg, u)), "vtep: Config.Reserved: ", "has bits "+c.bits)
		}})
	}
	return rows
}

func reservedOrderRows() (rows []row) {
	for _, c := range []struct {
		name    string
		payload []byte
		reason  string
	}{
		{"all of 7 octets", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, vni}, "short"},
		{"no I", header([8]byte{0xf7, 0xff, 0xff, 0xff, 0, 0, vni, 0xff}, in1), "no-vni-flag"},
		{"unknown VNI", header([8]byte{0x0c, 0, 0, 0, 0, 0, 77, 0}, in1), "unknown-vni"},
		{"short inner", header([8]byte{0x0c, 0, 0, 0, 0, 0, vni, 0}, in1[:13]), "reserved-bits"},
		{"nothing inside", header([8]byte{8, 0, 0, 0, 0, 0, vni, 1}, nil), "reserved-bits"},
		{"bad source", header([8]byte{8, 0x80, 0, 0, 0, 0, vni, 0}, eth(nobody, mcast, "")), "reserved-bits"},
	} {
		rows = append(rows, under("1.order-reserved", c.name, vtep.Config{Reserved: vtep.ReservedStrict}, c.payload, c.reason))
	}
	return append(rows, row{id: "1.order-reserved", name: "counted in their segment, of a known peer", wire: func(l *lab) {
		h, f := l.pair(&vtep.Config{Reserved: vtep.ReservedStrict})
		l.passes(f, in1, h)
		f.send(header([8]byte{0x88, 0, 0, 9, 0, 0, vni, 0}, eth(nobody, rmac(9), "no")))
		h.Want()
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		check.Equal(l.T, "the segment counts", l.Stats().VSIs[0].Drops[frame.ReservedBits], 1)
		l.drops(one("reserved-bits"))
	}})
}

// marked is a header with a mark.
func marked(octet1 byte, id uint16, inner []byte) []byte {
	return header([8]byte{0x88, octet1, byte(id >> 8), byte(id), 0, 0, vni, 0}, inner)
}

var withGBP = &vtep.Config{GBP: true}

var gbpRows = []row{
	{id: "1.gbp", name: "an attachment's group is sent, to one peer and to all", wire: func(l *lab) {
		l.start(withGBP, floods{2, 3})
		h, o := l.HostWith(vni, 0, vswitch.AttachConfig{GBP: 0x1234}), l.host()
		f, g := l.far(2), l.far(3)
		b := eth(frame.Broadcast, h.MAC, "all")
		h.Send(b)
		f.want(marked(0, 0x1234, b))
		g.want(marked(0, 0x1234, b))
		o.Want(b)
		f.send(vx(vni, in1))
		b = eth(rmac(1), h.MAC, "one")
		h.Send(b)
		f.want(marked(0, 0x1234, b))
		b = eth(rmac(1), o.MAC, "no group")
		l.passes(o, b, f)
		l.drops(nil)
	}},
	{id: "1.gbp", name: "changed under traffic", wire: func(l *lab) {
		h, f := l.pair(withGBP, floods{2})
		b := eth(frame.Broadcast, h.MAC, "")
		for _, id := range []uint16{0, 0xffff, 0} {
			l.must(h.At.Configure(vswitch.AttachConfig{GBP: id}))
			h.Send(b)
			if id == 0 {
				f.want(vx(vni, b))
			} else {
				f.want(marked(0, id, b))
			}
		}
	}},
	{id: "1.gbp", name: "not sent where it is off", wire: func(l *lab) {
		l.start(floods{2})
		h, f := l.HostWith(vni, 0, vswitch.AttachConfig{GBP: 5}), l.far(2)
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f)
	}},
	{id: "1.gbp", name: "received, seen by a stage", wire: func(l *lab) {
		h, f := l.pair(withGBP)
		var got []frame.GBP
		l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: stage(func(f *frame.Frame) frame.Verdict {
			got = append(got, f.GBP)
			return frame.Continue
		})}}))
		for _, p := range [][]byte{marked(0, 0x0102, in1), marked(0x48, 0xffff, in1), marked(0, 0, in1), vx(vni, in1),
			header([8]byte{0x08, 0x48, 0x12, 0x34, 0, 0, vni, 0}, in1)} { // without G: reserved bits
			f.send(p)
		}
		h.Want(in1, in1, in1, in1, in1)
		want := []frame.GBP{{ID: 0x0102}, {ID: 0xffff, DontLearn: true, Applied: true}, {}, {}, {}}
		l.check(slices.Equal(got, want), "%+v, want %+v", got, want)
	}},
	{id: "1.gbp", name: "set by a stage", wire: func(l *lab) {
		h, f := l.pair(withGBP, floods{2})
		l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: stage(func(f *frame.Frame) frame.Verdict {
			f.GBP = frame.GBP{ID: 9, Applied: true}
			return frame.Continue
		})}}))
		b := eth(frame.Broadcast, h.MAC, "")
		h.Send(b)
		f.want(marked(8, 9, b))
	}},
	{id: "1.gbp-carried", name: "from peer to peer of a hub, flags too", wire: func(l *lab) {
		l.start(withGBP, vswitch.AttachConfig{Hub: true, GBP: 3}) // 3 is for those without one
		l.flood(2, 3)
		f, g := l.far(2), l.far(3)
		b := eth(frame.Broadcast, rmac(1), "")
		f.send(marked(0x48, 0x0102, b))
		g.want(marked(0x48, 0x0102, b))
		f.send(vx(vni, b))
		g.want(marked(0, 3, b))
	}},
	{id: "1.gbp-carried", name: "from tunnel to tunnel, as far as both have it", wire: func(l *lab) {
		l.start(withGBP)
		old := l.fabric(encap.TypeVXLAN, 8472, false, vswitch.AttachConfig{Group: 9})
		f, g := l.far(2), l.farAt(netip.AddrPortFrom(l.addr(3), 8472), nil)
		l.must(old.SetFlood(vni, netip.AddrPortFrom(l.addr(3), 0)))
		b := eth(frame.Broadcast, rmac(1), "")
		f.send(marked(0, 7, b))
		g.want(vx(vni, b))
	}},
	{id: "1.gbp-carried", name: "a frame that is routed keeps it", wire: func(l *lab) {
		l.start(withGBP)
		l.join(200)
		l.must(l.VTEP.SetFlood(200, l.at(2)))
		l.set(gwMAC, 0, fdb.Static)
		l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
			copy(f.Bytes(), slices.Concat(nobody[:], gwMAC[:]))
			f.VNI = 200
			return frame.Reenter
		})}}))
		h, f := l.HostWith(vni, 0, vswitch.AttachConfig{GBP: 0x55}), l.far(2)
		h.Send(eth(gwMAC, h.MAC, "routed"))
		f.want(header([8]byte{0x88, 0, 0, 0x55, 0, 0, 200, 0}, eth(nobody, gwMAC, "routed")))
	}},
	{id: "1.gbp-own", name: "answers for neighbours have none", wire: func(l *lab) {
		l.vc = withGBP
		s := l.site(false, false)
		q := whoHas(ipOf(false, vni, gatewayHost), rmac(1), ipOf(false, vni, 1))
		s.f.send(marked(0, 7, q.bytes()))
		got := s.f.got()
		l.check(len(got) == 1 && got[0][0] == 8 && string(got[0][1:4]) == "\x00\x00\x00", "%x", got)
	}},
	{id: "1.gbp-own", name: "what the switch sends has none", wire: func(l *lab) {
		l.start(withGBP, vswitch.AttachConfig{GBP: 4}, floods{2})
		f := l.far(2)
		x := frame.Make(eth(frame.Broadcast, gwMAC, ""))
		l.Inject(l.seg, &x)
		f.want(vx(vni, x.Bytes()))
	}},
	{id: "1.gbp-dont-learn", name: "D", wire: func(l *lab) {
		h, f := l.pair(withGBP)
		f.send(marked(0x40, 0, in1))
		h.Want(in1)
		l.wantFDB(l.seg, table{})
		f.send(marked(0x08, 5, in1))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(nil)
	}},
	{id: "1.gbp-dont-learn", name: "no move", wire: func(l *lab) {
		h, f, g := l.trio(withGBP)
		f.send(vx(vni, in1))
		g.send(marked(0x40, 1, in1))
		h.Want(in1, in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "1.gbp-dont-learn", name: "a pinned MAC all the same", wire: func(l *lab) {
		h, f := l.pair(withGBP)
		l.set(rmac(1), h.At.Dest(0), fdb.Static)
		f.send(marked(0x40, 1, in1))
		l.dropped("mac-pinned")
	}},
	{id: "1.gbp-dont-learn", name: "a reserved bit where it is off", wire: func(l *lab) {
		h, f := l.pair()
		f.send(marked(0x40, 0, in1))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "1.gbp-gpe", name: "refused", only: "IPv4", wire: func(l *lab) {
		for _, t := range []encap.Type{encap.TypeGPE, encap.TypeIPIP} {
			u := check.Must(l.Listen(l.addr(1), t))(l.T)
			check.ErrorHas(l.T, check.Err(vtep.New(&vtep.Config{Type: t, GBP: true}, u)), "vtep: Config.GBP: ")
		}
	}},
	under("1.gbp-gpe", "G is a reserved bit to GPE", vtep.Config{Type: encap.TypeGPE, Reserved: 1 << 63}, header([8]byte{0x8c, 0, 0, 3, 0, 0, vni, 0}, in1), "reserved-bits"),
}

// gbpRoutedRows are of a gateway that routes between segments, to a host it has to ask for.
func gbpRoutedRows() []row {
	return inside("1.gbp-carried", "a frame that waits for its next hop keeps it, its question has none", func(l *lab, v6 bool) {
		l.vc = withGBP
		s := l.site(v6, false)
		l.must(s.a.At.Configure(vswitch.AttachConfig{GBP: 0x77}))
		s.fromA(s.ip(vni2, 9)).sentBy(s.a)
		q := whoHas(s.ip(vni2, 9), gwMAC, s.ip(vni2, gatewayHost))
		got := s.f.got()
		l.check(len(got) == 1 && got[0][0] == 8 && got[0][3] == 0, "%x", got)
		s.b.Got()
		if v6 {
			q.sender = arp.LinkLocal(gwMAC)
		}
		s.f.send(vx(vni2, isAt(q, rmac(9)).bytes()))
		got = s.f.got()
		l.check(len(got) == 1 && string(got[0][:8]) == string([]byte{0x88, 0, 0, 0x77, 0, 0, vni2, 0}), "%x", got)
	})
}

// vniPeerRows are about peers that are listed for each VNI.
var vniPeerRows = []row{
	{id: "1.peers-vni", name: "by the flood list of the VNI", wire: func(l *lab) {
		l.start(&vtep.Config{Peers: vtep.ListedPerVNI})
		other, a := l.join(200)
		h, o := l.host(), l.Host(200)
		f, g := l.far(2), l.far(3)
		l.flood(2)
		l.must(l.VTEP.SetFlood(200, l.at(2), l.at(3)))
		f.send(vx(vni, in1), vx(200, in1))
		g.send(vx(vni, in1)) // known, and of another VNI
		g.send(vx(200, eth(nobody, rmac(3), "")))
		h.Want(in1)
		o.Want(in1, eth(nobody, rmac(3), ""))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.wantFDB(other, table{rmac(1): a.Dest(l.peer(2)), rmac(3): a.Dest(l.peer(3))})
		l.drops(one("unknown-peer"))
	}},
	{id: "1.peers-vni", name: "allowed and disallowed, under traffic", wire: func(l *lab) {
		h, f := l.pair(&vtep.Config{Peers: vtep.ListedPerVNI})
		f.send(vx(vni, in1))
		h.Want()
		l.must(l.VTEP.Allow(vni, l.at(2)))
		l.passes(f, in1, h)
		b := eth(frame.Broadcast, h.MAC, "not flooded to it")
		h.Send(b)
		f.want()
		l.VTEP.Disallow(vni, l.at(2))
		f.send(vx(vni, in1))
		l.dropped("unknown-peer", "unknown-peer", "no-peer")
	}},
	{id: "1.peers-vni", name: "AddPeer lists it for none", wire: func(l *lab) {
		h, f := l.pair(&vtep.Config{Peers: vtep.ListedPerVNI})
		l.listed(2)
		f.send(vx(vni, in1))
		h.Want()
		l.wantFDB(l.seg, table{})
		l.drops(one("unknown-peer"))
	}},
	{id: "1.peers-vni", name: "in GPE", wire: func(l *lab) {
		l.start(&vtep.Config{Type: encap.TypeGPE, Peers: vtep.ListedPerVNI})
		l.join(200)
		h, _, f := l.host(), l.Host(200), l.far(2)
		l.flood(2)
		f.send(gpe(vni, 3, in1), gpe(200, 3, in1))
		h.Want(in1)
		l.dropped("unknown-peer")
	}},
	{id: "1.peers-vni", name: "order: unknown VNI, then the peer, then reserved bits", wire: func(l *lab) {
		l.start(&vtep.Config{Peers: vtep.ListedPerVNI, Reserved: vtep.ReservedStrict})
		l.join(200)
		l.must(l.VTEP.Allow(200, l.at(2)))
		f := l.far(2)
		f.send(vx(77, in1), header([8]byte{0xff, 0, 0, 0, 0, 0, vni, 0}, in1))
		f.send(header([8]byte{0xff, 0, 0, 0, 0, 0, 200, 0}, in1))
		l.drops(map[string]uint64{"unknown-vni": 1, "unknown-peer": 1, "reserved-bits": 1})
	}},
}
