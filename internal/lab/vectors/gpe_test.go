package vectors

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// gpeRows are about VXLAN-GPE.
var gpeRows = slices.Concat(gpeSendRows, gpeReceiveRows(), gpePacketRows(), gpePortRows)

// gpeVTEP is a VTEP that speaks VXLAN-GPE.
var gpeVTEP = &vtep.Config{Type: encap.TypeGPE}

var gpeSendRows = []row{
	{id: "3.header", name: "VNI 0x123456", wire: func(l *lab) {
		l.start(gpeVTEP)
		l.join(0x123456)
		h, f := l.Host(0x123456), l.far(2)
		f.send(append([]byte{0x0c, 0, 0, 3, 0x12, 0x34, 0x56, 0}, in1...))
		h.Want(in1)
		b := eth(rmac(1), h.MAC, "answer")
		h.Send(b)
		f.want(append([]byte{0x0c, 0, 0, 3, 0x12, 0x34, 0x56, 0}, b...))
		l.drops(nil)
	}},
	{id: "3.p-sent", name: "to one peer and to all", wire: func(l *lab) {
		h, f := l.pair(gpeVTEP, floods{2})
		f.send(gpe(vni, 3, in1))
		h.Send(eth(rmac(1), h.MAC, "known"), eth(frame.Broadcast, h.MAC, "all"))
		got := f.got()
		for _, d := range got {
			l.check(d[0]&0x04 != 0 && d[3] == 3, "header % x", d[:8])
		}
		l.check(len(got) == 2, "%d datagrams", len(got))
	}},
	{id: "3.b-sent", name: "broadcast, multicast and unknown unicast, to one peer of one", wire: func(l *lab) {
		h, f := l.pair(gpeVTEP, floods{2})
		for _, to := range []frame.MAC{frame.Broadcast, mcast, nobody} {
			b := eth(to, h.MAC, "")
			h.Send(b)
			f.want(bum(vni, 3, b))
		}
	}},
	{id: "3.b-sent", name: "to each of two peers", wire: func(l *lab) {
		h, f, g := l.trio(gpeVTEP, floods{2, 3})
		b := eth(frame.Broadcast, h.MAC, "")
		h.Send(b)
		f.want(bum(vni, 3, b))
		g.want(bum(vni, 3, b))
	}},
	{id: "3.b-sent", name: "not on what is for one peer", wire: func(l *lab) {
		h, f, g := l.trio(gpeVTEP, floods{2, 3})
		f.send(bum(vni, 3, in1))
		h.Want(in1)
		b := eth(rmac(1), h.MAC, "answer")
		l.passes(h, b, f)
		// Nor is a group B when a table names the one peer that has it.
		l.set(mcast, l.dest(3), 0)
		b = eth(mcast, h.MAC, "")
		l.passes(h, b, g)
		f.want()
	}},
	{id: "3.reserved", name: "sent as zero", wire: func(l *lab) {
		h, f := l.pair(gpeVTEP)
		f.send(header([8]byte{0xce, 0xff, 0xff, 3, 0, 0, vni, 0xff}, in1))
		h.Want(in1)
		l.passes(h, eth(rmac(1), h.MAC, "answer"), f)
	}},
}

// gpeRefused is a row: the datagram is dropped for that reason, by a switch that takes both
// frames and packets. Nobody sees it, nothing is learned, and its sender is no peer.
func gpeRefused(id, name string, payload []byte, reason string) row {
	return row{id: id, name: name, wire: func(l *lab) {
		l.start(gpeVTEP, vswitch.AttachConfig{Hub: true})
		took := l.takesIP()
		l.flood(3)
		_, f, _ := l.host(), l.far(2), l.far(3)
		f.send(payload)
		l.quiet()
		l.wantFDB(l.seg, table{})
		n := l.VTEP.Stats().Learned
		l.check(n == 0 && len(*took) == 0, "%d learned peers, %d packets", n, len(*took))
		l.drops(one(reason))
	}}
}

// takesIP has VNI 100 take IP packets, as one with a gateway does, and returns them.
func (l *lab) takesIP() *[][]byte {
	l.T.Helper()
	var took [][]byte
	l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
		took = append(took, bytes.Clone(f.Bytes()))
		return frame.Consume
	})}}))
	return &took
}

func gpeReceiveRows() []row {
	p4, p6 := bareIP(false), bareIP(true)
	lax := &vtep.Config{Type: encap.TypeGPE, EthernetWithoutP: true}
	rows := []row{
		accepted("3.header", "I, P and Ethernet", gpe(vni, 3, in1), gpeVTEP),
		gpeRefused("3.header", "cut short", gpe(vni, 3, nil)[:7], "short"),
		gpeRefused("3.header", "an unknown VNI", gpe(77, 3, in1), "unknown-vni"),
		gpeRefused("3.i-flag", "without I", header([8]byte{0x04, 0, 0, 3, 0, 0, vni, 0}, in1), "no-vni-flag"),
		accepted("3.reserved", "ignored on receipt", header([8]byte{0xcc, 0xff, 0xff, 3, 0, 0, vni, 0xff}, in1), gpeVTEP),

		gpeRefused("3.version", "1", header([8]byte{0x1c, 0, 0, 3, 0, 0, vni, 0}, in1), "gpe-version"),
		gpeRefused("3.version", "2", header([8]byte{0x2c, 0, 0, 3, 0, 0, vni, 0}, in1), "gpe-version"),
		gpeRefused("3.version", "3, of a packet", header([8]byte{0x3c, 0, 0, 1, 0, 0, vni, 0}, p4), "gpe-version"),

		gpeRefused("3.p-clear", "Ethernet", header([8]byte{0x08, 0, 0, 3, 0, 0, vni, 0}, in1), "gpe-protocol"),
		gpeRefused("3.p-clear", "as VXLAN", vx(vni, in1), "gpe-protocol"),
		gpeRefused("3.p-clear", "a packet", header([8]byte{0x08, 0, 0, 1, 0, 0, vni, 0}, p4), "gpe-protocol"),
		accepted("3.p-ethernet", "as VXLAN", vx(vni, in1), lax),
		accepted("3.p-ethernet", "whatever the next protocol says", header([8]byte{0x08, 0, 0, 1, 0, 0, vni, 0}, in1), lax),
		accepted("3.p-ethernet", "and with P as ever", gpe(vni, 3, in1), lax),

		accepted("3.b-accepted", "a flooded frame", bum(vni, 3, eth(frame.Broadcast, rmac(1), "all")), gpeVTEP),
		accepted("3.b-accepted", "a frame that this end knows where to send", bum(vni, 3, in1), gpeVTEP),

		gpeRefused("3.oam", "Ethernet", header([8]byte{0x0d, 0, 0, 3, 0, 0, vni, 0}, in1), "gpe-oam"),
		gpeRefused("3.oam", "to all", header([8]byte{0x0f, 0, 0, 3, 0, 0, vni, 0}, eth(frame.Broadcast, rmac(1), "all")), "gpe-oam"),
		gpeRefused("3.oam", "a packet", header([8]byte{0x0d, 0, 0, 1, 0, 0, vni, 0}, p4), "gpe-oam"),
		gpeRefused("3.oam", "another protocol", header([8]byte{0x0d, 0, 0, 0x80, 0, 0, vni, 0}, []byte("oam")), "gpe-oam"),

		gpeRefused("3.nsh", "without a handler", gpe(vni, 4, append([]byte{0x0f, 0xc6, 1, 3, 0, 0, 0, 0xff}, in1...)), "gpe-protocol"),
		gpeRefused("3.next", "an Ethernet frame that is none", gpe(vni, 3, in1[:13]), "short"),
		gpeRefused("3.nibble", "IPv6 under 1", gpe(vni, 1, p6), "bad-header"),
		gpeRefused("3.nibble", "IPv4 under 2", gpe(vni, 2, p4), "bad-header"),
		gpeRefused("3.nibble", "neither under 1", gpe(vni, 1, append([]byte{0x55}, p4[1:]...)), "bad-header"),
		gpeRefused("3.nibble", "neither under 2", gpe(vni, 2, append([]byte{0x00}, p6[1:]...)), "bad-header"),
		gpeRefused("3.nibble", "nothing under 1", gpe(vni, 1, nil), "short"),
	}
	for name, next := range map[string]byte{"0": 0, "5": 5, "6": 6, "7": 7, "a shim, 128": 0x80, "255": 0xff} {
		rows = append(rows, gpeRefused("3.next-other", name, gpe(vni, next, in1), "gpe-protocol"))
	}
	return append(rows,
		row{id: "3.b-horizon", name: "a hub", wire: func(l *lab) {
			h, f, g := l.trio(gpeVTEP, vswitch.AttachConfig{Hub: true}, floods{2, 3})
			b := eth(frame.Broadcast, rmac(1), "all")
			f.send(bum(vni, 3, b))
			h.Want(b)
			g.want()
			f.send(gpe(vni, 3, b)) // one copy, and nobody has made the others
			h.Want(b)
			g.want(bum(vni, 3, b))
			l.clean()
		}},
		row{id: "3.b-horizon", name: "another tunnel of another group", wire: func(l *lab) {
			l.start(gpeVTEP)
			u := check.Must(l.Listen(l.addr(1), encap.TypeVXLAN))(l.T)
			v := check.Must(vtep.New(&vtep.Config{Name: "old"}, u))(l.T)
			check.Must(l.seg.AttachWith(v, vni, &vswitch.AttachConfig{Group: 9}))(l.T)
			l.must(v.SetFlood(vni, l.atOf(encap.TypeVXLAN, 3)))
			h, f, g := l.host(), l.far(2), l.farOf(encap.TypeVXLAN, 3)
			for _, to := range []frame.MAC{frame.Broadcast, mcast, nobody} {
				b := eth(to, rmac(1), "")
				f.send(bum(vni, 3, b))
				h.Want(b)
				g.want(vx(vni, b)) // whom its sender knows nothing of
				l.passes(f, b, h)
				g.want(vx(vni, b))
			}
			l.drops(nil)
		}},
		row{id: "3.b-horizon", name: "a hub forwards what it knows", wire: func(l *lab) {
			l.start(gpeVTEP, vswitch.AttachConfig{Hub: true})
			f, g := l.far(2), l.far(3)
			g.send(gpe(vni, 3, eth(frame.Broadcast, rmac(3), "here")))
			b := eth(rmac(3), rmac(2), "unknown to the sender")
			f.send(bum(vni, 3, b))
			g.want(gpe(vni, 3, b))
		}},
		row{id: "3.b-horizon", name: "what a gateway makes of it is its own", wire: func(l *lab) {
			l.start(gpeVTEP)
			l.join(200)
			l.must(l.VTEP.SetFlood(200, l.at(2), l.at(3)))
			l.set(gwMAC, 0, fdb.Static)
			l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
				copy(f.Bytes(), slices.Concat(nobody[:], gwMAC[:]))
				f.VNI = 200
				return frame.Reenter
			})}}))
			o, f, g := l.Host(200), l.far(2), l.far(3)
			f.send(bum(vni, 3, eth(gwMAC, rmac(1), "routed"))) // its sender did not know where the gateway is
			b := eth(nobody, gwMAC, "routed")
			o.Want(b)
			f.want(bum(200, 3, b))
			g.want(bum(200, 3, b))
			l.drops(nil)
		}},
		row{id: "3.learning", name: "of frames and not of packets", wire: func(l *lab) {
			l.start(gpeVTEP)
			took := l.takesIP()
			f := l.far(2)
			for _, p := range [][]byte{p4, p6} {
				f.send(wrapped(encap.TypeGPE, vni, p))
			}
			l.wantFDB(l.seg, table{})
			l.check(slices.EqualFunc(*took, [][]byte{p4, p6}, bytes.Equal), "took % x", *took)
			f.send(gpe(vni, 3, in1))
			l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		}},
		row{id: "3.batch", name: "seven packets of one batch", wire: func(l *lab) {
			v, _, two, _ := l.spied(vtep.Config{Type: encap.TypeGPE})
			f := l.far(2)
			for _, b := range [][]byte{gpe(vni, 1, p4), gpe(vni, 3, in1), gpe(vni, 2, p6), gpe(vni, 4, in1), bum(vni, 3, in1), gpe(77, 1, p4), gpe(vni, 1, p4)} {
				f.send(b)
			}
			b := frame.NewBatch(nil)
			l.must(v.Readers()[0].Read(b))
			type seen struct {
				kind       frame.Kind
				data       string
				drop       frame.Reason
				replicated bool
			}
			var got []seen
			for i := range b.Frames {
				x := &b.Frames[i]
				s := seen{drop: x.Drop}
				if s.drop == 0 {
					s = seen{x.Kind, string(x.Bytes()), 0, x.Replicated}
					l.check(x.From.Peer() == two && x.VNI == vni, "from peer %d, VNI %d", x.From.Peer(), x.VNI)
				}
				got = append(got, s)
			}
			want := []seen{
				{kind: frame.IPv4, data: string(p4)}, {data: string(in1)}, {kind: frame.IPv6, data: string(p6)},
				{drop: frame.GPEProtocol}, {data: string(in1), replicated: true}, {drop: frame.UnknownVNI}, {kind: frame.IPv4, data: string(p4)},
			}
			check.Need(l.T, len(got) == len(want), "%d packets, want %d", len(got), len(want))
			for i, g := range got {
				l.check(g == want[i],
					"packet %d: kind %d, %v, replicated %v, % x", i, g.kind, g.drop, g.replicated, g.data)
			}
		}},
		accepted("3.plain", "P at a VXLAN VTEP", gpe(vni, 3, in1)),
		accepted("3.plain", "and the octet of the next protocol", gpe(vni, 1, in1)),
	)
}

// gpePacketRows are packets without an Ethernet header.
func gpePacketRows() []row {
	plain := vtep.Config{Type: encap.TypeGPE}
	return slices.Concat(
		inside("3.next", "a packet, there and back", func(l *lab, v6 bool) {
			j := l.joined(plain)
			next := pick(v6, byte(1), 2)
			out, in := j.packet(v6).bytes(), j.back(v6).bytes()
			j.send(out)
			j.f.want(gpe(vni, next, out))
			j.f.send(gpe(vni, next, in))
			j.want(in)
			l.drops(nil)
		}),
		inside("3.b-accepted", "a packet", func(l *lab, v6 bool) {
			j := l.joined(plain)
			in := j.back(v6).bytes()
			b := j.wrap(in)
			b[0] |= 2
			j.f.send(b)
			j.want(in)
			l.drops(nil)
		}),
		[]row{
			{id: "3.next", name: "a frame, there and back", wire: func(l *lab) {
				h, f := l.pair(gpeVTEP)
				l.passes(f, in1, h)
				b := mem.Ethernet(rmac(1), h.MAC, 0x0800, bareIP(false)) // IP inside makes no difference
				l.passes(h, b, f)
			}},
			{id: "3.kernel", name: "what Linux sends, and is sent", wire: func(l *lab) {
				j := l.lonely(plain, 77)
				j.f = l.far(2)
				out, in := j.packet(false).bytes(), j.back(false).bytes()
				j.send(out)
				j.f.want(append([]byte{0x0c, 0, 0, 1, 0, 0, 0x4d, 0}, out...))
				j.f.send(append([]byte{0x0c, 0, 0, 1, 0, 0, 0x4d, 0}, in...))
				j.want(in)
				l.drops(nil)
			}},
		},
	)
}

// bareIP is an IP packet from gopacket.
func bareIP(v6 bool) []byte {
	return packetOf(frame.MAC{}, ipOf(v6, vni, 1), frame.MAC{}, ipOf(v6, vni2, 2)).naked().bytes()
}

var gpePortRows = []row{
	{id: "1.dport-gpe", name: "4790, and nothing on 4789", wire: func(l *lab) {
		l.start(gpeVTEP)
		l.must(l.VTEP.SetFlood(vni, netip.AddrPortFrom(l.addr(2), 0)))
		h, f := l.host(), l.farAt(netip.AddrPortFrom(l.addr(2), 4790), nil)
		f.sendTo(netip.AddrPortFrom(l.addr(1), 4789), gpe(vni, 3, in1))
		h.Want()
		f.sendTo(netip.AddrPortFrom(l.addr(1), 4790), gpe(vni, 3, in1))
		h.Want(in1)
		b := eth(frame.Broadcast, h.MAC, "out")
		h.Send(b)
		f.want(bum(vni, 3, b))
	}},
	{id: "1.dport-gpe", name: "beside VXLAN on 4789", wire: func(l *lab) {
		l.start()
		u := check.Must(l.Listen(l.addr(1), encap.TypeGPE))(l.T)
		v := check.Must(vtep.New(&vtep.Config{Name: "gpe", Type: encap.TypeGPE}, u))(l.T)
		a := check.Must(l.vsi(200, nil).Attach(v, vni))(l.T) // the same VNI, another network
		h, o, f := l.host(), l.Host(200), l.farOf(encap.TypeGPE, 2)
		f.sendTo(netip.AddrPortFrom(l.addr(1), 4790), gpe(vni, 3, in1))
		h.Want()
		o.Want(in1)
		l.wantFDB(l.seg, table{})
		l.wantFDB(a.VSI(), table{rmac(1): a.Dest(v.Stats().Peers[0].Peer)})
		l.far(2).send(vx(vni, in1))
		h.Want(in1)
		o.Want()
	}},
}
