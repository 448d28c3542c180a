package vectors

import (
	"net/netip"
	"strings"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// in1 is the frame most datagrams of this file carry.
var in1 = eth(nobody, rmac(1), "in")

// header returns a datagram with a header of one's own and a frame behind it.
func header(h [8]byte, inner []byte) []byte { return append(h[:], inner...) }

// accepted is a row: the datagram's frame is delivered as it is, and learned.
func accepted(id, name string, payload []byte, with ...any) row {
	return row{id: id, name: name, wire: func(l *lab) {
		h, f := l.pair(with...)
		f.send(payload)
		h.Want(payload[8:])
		l.wantFDB(l.seg, table{frame.MAC(payload[14:20]): l.dest(2)})
		l.drops(nil)
	}}
}

// refused is a row: the datagram is dropped for that reason, no host sees it, no
// table of any segment has learned from it, and its sender has not become a peer.
func refused(id, name string, payload []byte, reason string, with ...any) row {
	return row{id: id, name: name, wire: func(l *lab) {
		l.start(with...)
		other, _ := l.join(200)
		_, _, f := l.host(), l.Host(200), l.far(2)
		f.send(payload)
		l.quiet()
		l.wantFDB(l.seg, table{})
		l.wantFDB(other, table{})
		if reason != "inner-vlan" && l.VTEP.Stats().Learned != 0 {
			l.T.Error("the sender became a peer")
		}
		l.drops(one(reason))
	}}
}

var receiveRows = []row{
	accepted("1.i-flag", "I alone", vx(vni, in1)),
	refused("1.i-flag", "no flag", header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, in1), "no-vni-flag"),
	refused("1.i-flag", "all flags but I", header([8]byte{0xf7, 0, 0, 0, 0, 0, vni, 0}, in1), "no-vni-flag"),
	{id: "1.i-flag", name: "of a known peer", wire: func(l *lab) {
		h, f := l.pair()
		f.send(vx(vni, in1), header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, eth(nobody, rmac(9), "no")))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(one("no-vni-flag"))
	}},

	vniRow("zero", 0), vniRow("one", 1), vniRow("golden", 4100), vniRow("each octet", 0x010203),
	vniRow("largest", 1<<24-1), vniRow("top bit", 1<<23),
	refused("1.vni-unknown", "one more", vx(vni+1, in1), "unknown-vni"),
	refused("1.vni-unknown", "zero", vx(0, in1), "unknown-vni"),
	refused("1.vni-unknown", "the known one, moved an octet up", vx(vni<<8, in1), "unknown-vni"),
	refused("1.vni-unknown", "the known one and a bit of the top octet", vx(1<<23|vni, in1), "unknown-vni"),
	{id: "1.vni-unknown", name: "of a known peer", wire: func(l *lab) {
		h, f := l.pair()
		f.send(vx(vni, in1), vx(77, eth(nobody, rmac(9), "no")))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(one("unknown-vni"))
	}},
	{id: "1.vni-unknown", name: "after the segment left", wire: func(l *lab) {
		l.start()
		_, a := l.join(200)
		f := l.far(2)
		l.must(a.Detach())
		f.send(vx(200, in1))
		l.drops(one("unknown-vni"))
	}},
	accepted("1.octet7", "all ones", header([8]byte{8, 0, 0, 0, 0, 0, vni, 0xff}, in1)),
	accepted("1.octet7", "one", header([8]byte{8, 0, 0, 0, 0, 0, vni, 1}, in1)),
	refused("1.octet7", "the VNI in the last octet", header([8]byte{8, 0, 0, 0, 0, 0, 0, vni}, in1), "unknown-vni"),

	accepted("1.reserved-ignored", "every flag", header([8]byte{0xff, 0, 0, 0, 0, 0, vni, 0}, in1)),
	accepted("1.reserved-ignored", "GBP bits and id", header([8]byte{0x88, 0x48, 0x12, 0x34, 0, 0, vni, 0}, in1)),
	accepted("1.reserved-ignored", "GPE P bit and protocol", header([8]byte{0x0c, 0, 0, 3, 0, 0, vni, 0}, in1)),
	accepted("1.reserved-ignored", "octets 1-3", header([8]byte{8, 0xff, 0xff, 0xff, 0, 0, vni, 0}, in1)),
	accepted("1.reserved-ignored", "all 39 bits", header([8]byte{0xff, 0xff, 0xff, 0xff, 0, 0, vni, 0xff}, in1)),

	{id: "1.dport", name: "4789", wire: func(l *lab) {
		h, f := l.pair()
		f.sendTo(netip.AddrPortFrom(l.addr(1), 4790), vx(vni, in1))
		h.Want()
		f.sendTo(l.at(1), vx(vni, in1))
		h.Want(in1)
	}},
	{id: "1.dport", name: "8472", wire: func(l *lab) {
		l.start()
		old, _ := l.oldVTEP()
		l.must(old.SetFlood(200, netip.AddrPortFrom(l.addr(2), 0)))
		h := l.Host(200)
		f := l.farAt(netip.AddrPortFrom(l.addr(2), 8472), nil)
		f.sendTo(netip.AddrPortFrom(l.addr(1), 8472), vx(200, in1))
		h.Want(in1)
		b := eth(frame.Broadcast, h.MAC, "out")
		h.Send(b)
		f.want(vx(200, b))
	}},
	{id: "1.dport", name: "of peers without one", wire: func(l *lab) {
		l.start(&vtep.Config{Port: 8472})
		l.must(l.VTEP.SetFlood(vni, netip.AddrPortFrom(l.addr(2), 0), l.at(3)))
		h, f, g := l.host(), l.farAt(netip.AddrPortFrom(l.addr(2), 8472), nil), l.far(3)
		l.passes(h, eth(frame.Broadcast, h.MAC, "out"), f, g)
	}},
	{id: "1.dport", name: "of learned peers", wire: func(l *lab) {
		l.start()
		h, f, g := l.host(), l.farAt(netip.AddrPortFrom(l.addr(2), 50000), nil), l.far(2)
		l.passes(f, in1, h)
		b := eth(rmac(1), h.MAC, "answer")
		h.Send(b)
		f.want()
		g.want(vx(vni, b))
	}},
	{id: "1.dport-several", name: "4789 and 8472 in one segment", wire: func(l *lab) {
		l.start()
		old, tun := l.oldVTEP()
		h, f := l.Host(200), l.far(2)
		_, a := l.join(200)
		f.sendTo(netip.AddrPortFrom(l.addr(1), 4789), vx(200, in1))
		in2 := eth(nobody, rmac(2), "old")
		f.sendTo(netip.AddrPortFrom(l.addr(1), 8472), vx(200, in2))
		h.Want(in1, in2)
		l.wantFDB(a.VSI(), table{rmac(1): a.Dest(l.peer(2)), rmac(2): tun.Dest(old.Stats().Peers[0].Peer)})
	}},

	sportRow("1", 1), sportRow("53", 53), sportRow("1024", 1024), sportRow("32768", 32768), sportRow("4789", 4789), sportRow("65535", 65535),
	{id: "1.sport-unchecked", name: "one peer, many ports", wire: func(l *lab) {
		h, f := l.pair()
		for i := range 32 { // as many flows, over all source ports of the far end
			e, _ := frame.EndpointFrom(l.Addr)
			l.must(f.u.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{vx(vni, in1)}, To: []frame.Endpoint{e}, Flow: uint16(i << 11)}}))
		}
		check.Equal(l.T, "of 32 frames", len(h.Got()), 32)
		st := l.VTEP.Stats()
		l.check(len(st.Peers) == 1 && st.Peers[0].Rx.Frames == 32, "peers %+v", st.Peers)
		check.Equal(l.T, "moves", l.seg.FDB().Stats().Moved, 0)
	}},

	refused("1.inner-short", "nothing", vx(vni, nil), "short"),
	refused("1.inner-short", "one byte", vx(vni, in1[:1]), "short"),
	refused("1.inner-short", "MACs only", vx(vni, in1[:12]), "short"),
	refused("1.inner-short", "13 bytes", vx(vni, in1[:13]), "short"),
	accepted("1.inner-short", "14 bytes", vx(vni, in1[:14])),

	refused("1.inner-source", "broadcast", vx(vni, eth(nobody, frame.Broadcast, "")), "bad-source-mac"),
	refused("1.inner-source", "multicast", vx(vni, eth(nobody, mcast, "")), "bad-source-mac"),
	refused("1.inner-source", "group bit alone", vx(vni, eth(nobody, frame.MAC{1}, "")), "bad-source-mac"),
	refused("1.inner-source", "zero", vx(vni, eth(nobody, frame.MAC{}, "")), "bad-source-mac"),
	refused("1.inner-source", "broadcast to broadcast", vx(vni, eth(frame.Broadcast, frame.Broadcast, "")), "bad-source-mac"),
	{id: "1.inner-source", name: "of a known peer", wire: func(l *lab) {
		h, f := l.pair()
		f.send(vx(vni, in1), vx(vni, eth(nobody, mcast, "")), vx(vni, eth(nobody, frame.MAC{}, "")))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(map[string]uint64{"bad-source-mac": 2})
	}},
	{id: "1.inner-source", name: "from a local port", local: func(l *lab) {
		h, o := l.bridged()
		h.Send(eth(nobody, frame.Broadcast, ""), eth(nobody, mcast, ""), eth(nobody, frame.MAC{}, ""))
		o.Want()
		l.wantFDB(l.seg, table{})
		l.drops(map[string]uint64{"bad-source-mac": 3})
	}},

	ownMACRow("1.own-mac", "from a tunnel", fdb.Static, false, false),
	ownMACRow("1.own-mac", "from a local port", fdb.Static, true, false),
	ownMACRow("1.own-mac", "with learning off", fdb.Static, false, true),
	ownMACRow("1.anycast-tunnel", "delivered, not learned", fdb.Anycast, false, false),
	ownMACRow("1.anycast-tunnel", "with learning off", fdb.Anycast, false, true),
	ownMACRow("1.anycast-local", "dropped", fdb.Anycast, true, false),
	{id: "1.own-mac", name: "in one segment only", wire: func(l *lab) {
		l.start()
		other, _ := l.join(200)
		h, f := l.host(), l.far(2)
		l.must(other.FDB().Set(rmac(1), 0, fdb.Static))
		l.passes(f, in1, h)
		l.clean()
	}},
	{id: "1.anycast-tunnel", name: "of a peer without a number", wire: func(l *lab) {
		h, f, g := l.trio(&vtep.Config{MaxPeers: 1})
		l.passes(f, eth(nobody, rmac(9), "first"), h)
		l.set(rmac(1), 0, fdb.Anycast)
		l.passes(g, in1, h)
		l.clean()
	}},

	refused("1.vlan-discard", "802.1Q", vx(vni, mem.Tagged(5, in1)), "inner-vlan"),
	refused("1.vlan-discard", "802.1Q, VLAN 0", vx(vni, mem.Tagged(0, in1)), "inner-vlan"),
	refused("1.vlan-discard", "two tags", vx(vni, mem.Tagged(7, mem.Tagged(5, in1))), "inner-vlan"),
	refused("1.vlan-discard", "802.1ad", vx(vni, qinq(in1)), "inner-vlan"),
	refused("1.vlan-discard", "EtherType and no tag behind it", vx(vni, mem.Tagged(5, in1)[:14]), "inner-vlan"),

	{id: "1.own-source", name: "another program on our address", wire: func(l *lab) {
		l.start()
		h := l.host()
		f := l.farAt(netip.AddrPortFrom(l.addr(1), 5000), nil)
		f.send(vx(vni, in1))
		h.Want()
		l.wantFDB(l.seg, table{})
		l.drops(one("own-address"))
	}},
}

// ownMACRow has a frame come in whose source the gateway has, alone or beside other VTEPs.
func ownMACRow(id, name string, flags fdb.Flags, fromPort, noLearn bool) row {
	return row{id: id, name: name, wire: func(l *lab) {
		h, f := l.pair(vswitch.AttachConfig{NoLearn: noLearn})
		l.set(rmac(1), 0, flags)
		if fromPort {
			l.host().Send(in1)
		} else {
			f.send(vx(vni, in1))
		}
		if flags == fdb.Anycast && !fromPort {
			h.Want(in1)
			l.clean()
		} else {
			l.dropped("own-mac")
		}
		l.wantFDB(l.seg, table{rmac(1): 0})
	}}
}

// vniRow goes both ways in a VNI: a datagram in, and the answer out.
func vniRow(name string, n frame.VNI) row {
	return row{id: "1.vni", name: name, wire: func(l *lab) {
		l.start()
		v, a := l.join(n)
		h, other, f := l.Host(n), l.host(), l.far(2)
		f.send(vx(n, in1))
		h.Want(in1)
		other.Want()
		l.wantFDB(v, table{rmac(1): a.Dest(l.peer(2))})
		out := eth(rmac(1), h.MAC, "out")
		h.Send(out)
		f.want(append([]byte{8, 0, 0, 0, byte(n >> 16), byte(n >> 8), byte(n), 0}, out...))
		l.drops(nil)
	}}
}

// sportRow sends from one source port.
func sportRow(name string, port uint16) row {
	return row{id: "1.sport-unchecked", name: name, wire: func(l *lab) {
		l.start()
		h := l.host()
		f := l.farAt(l.at(2), &memory.Config{SrcPorts: underlay.PortRange{Lo: port, Hi: port}})
		l.passes(f, in1, h)
		out := eth(rmac(1), h.MAC, "answer")
		h.Send(out)
		f.want(vx(vni, out)) // to 4789, not to that port
		l.drops(nil)
	}}
}

// oldVTEP gives the switch a second VTEP, on the port of old Linux, in VNI 200.
func (l *lab) oldVTEP() (*vtep.VTEP, *vswitch.Attachment) {
	l.T.Helper()
	u := check.Must(l.Net.Listen(netip.AddrPortFrom(l.addr(1), 8472), nil))(l.T)
	v := check.Must(vtep.New(&vtep.Config{Name: "old"}, u))(l.T)
	a := check.Must(l.vsi(200, nil).Attach(v, 200))(l.T)
	return v, a
}

func qinq(b []byte) []byte {
	t := mem.Tagged(5, b)
	t[12], t[13] = 0x88, 0xa8
	return t
}

// orderRows have several defects at once; the first in the order names the drop.
var orderRows = []row{
	refused("1.order", "no bytes at all", nil, "short"),
	refused("1.order", "short header, no I", make([]byte, 7), "short"),
	refused("1.order", "short header, I", []byte{8, 0, 0, 0, 0, 0, vni}, "short"),
	refused("1.order", "header only, no I, unknown VNI", make([]byte, 8), "no-vni-flag"),
	refused("1.order", "no I, unknown VNI", header([8]byte{0, 0, 0, 0, 0, 9, 9, 0}, in1), "no-vni-flag"),
	refused("1.order", "no I, short inner", header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, in1[:5]), "no-vni-flag"),
	refused("1.order", "no I, unknown VNI, bad source, tag", header([8]byte{0xf7, 1, 2, 3, 9, 9, 9, 9}, mem.Tagged(5, eth(nobody, mcast, ""))), "no-vni-flag"),
	refused("1.order", "unknown VNI, short inner", vx(77, in1[:13]), "unknown-vni"),
	refused("1.order", "unknown VNI, bad source", vx(77, eth(nobody, mcast, "")), "unknown-vni"),
	refused("1.order", "unknown VNI, reserved bits", header([8]byte{0xff, 1, 2, 3, 0, 0, 77, 4}, in1), "unknown-vni"),
	refused("1.order", "short inner, bad source", vx(vni, eth(nobody, frame.Broadcast, "")[:13]), "short"),
	refused("1.order", "short inner, bad source, reserved bits", header([8]byte{0xff, 1, 2, 3, 0, 0, vni, 4}, eth(nobody, mcast, "")[:13]), "short"),
	refused("1.order", "bad source, tag", vx(vni, mem.Tagged(5, eth(nobody, mcast, ""))), "bad-source-mac"),
	refused("1.order", "bad source, to a bridge group", vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, mcast, "")), "bad-source-mac"),
	{id: "1.order", name: "bad source, tag, of a known peer", wire: func(l *lab) {
		h, f := l.pair()
		f.send(vx(vni, in1), vx(vni, mem.Tagged(5, eth(nobody, mcast, ""))))
		h.Want(in1)
		l.drops(one("bad-source-mac"))
	}},
	{id: "1.order", name: "own address, everything else", wire: func(l *lab) {
		l.start()
		f := l.farAt(netip.AddrPortFrom(l.addr(1), 5000), nil)
		f.send(nil, make([]byte, 8))
		l.drops(map[string]uint64{"own-address": 2})
	}},
	{id: "1.order", name: "unknown peer, everything else", wire: func(l *lab) {
		l.start(&vtep.Config{Peers: vtep.ListedOnly})
		f := l.far(2)
		f.send(nil, make([]byte, 8), vx(77, in1))
		l.drops(map[string]uint64{"unknown-peer": 3})
	}},
	{id: "1.order", name: "own MAC, filtered destination", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		l.set(rmac(1), 0, fdb.Static)
		l.set(nobody, 0, fdb.Filter)
		f.send(vx(vni, in1))
		l.drops(one("own-mac"))
	}},
	{id: "1.order", name: "pinned source, to a bridge group", wire: func(l *lab) {
		h, f := l.pair()
		l.set(rmac(1), h.At.Dest(0), fdb.Static)
		f.send(vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, rmac(1), "")))
		l.drops(one("mac-pinned"))
	}},
	{id: "1.order", name: "learned, then dropped on the way out", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		f.send(vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, rmac(1), "")))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(one("reserved-mac"))
	}},
	{id: "1.order", name: "drops are counted in their segment", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		l.join(0)
		f.send(make([]byte, 8))  // no I: in no segment
		f.send(vx(77, in1))      // unknown
		f.send(vx(vni, in1[:5])) // short, in VNI 100
		want := map[frame.VNI]string{0: "", vni: "short 1"}
		for _, v := range l.Stats().VSIs {
			var s []string
			for r, n := range v.Drops.All() {
				s = append(s, r.String()+" "+string(rune('0'+n)))
			}
			got := strings.Join(s, ",")
			l.check(got == want[v.VNI], "VNI %d counts %q, want %q", v.VNI, got, want[v.VNI])
		}
	}},
}
