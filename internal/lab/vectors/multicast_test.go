package vectors

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// groupAddr returns a multicast group of the lab's family.
func (l *lab) groupAddr(i byte) netip.Addr {
	return pick(l.ip6, netip.AddrFrom4([4]byte{239, 1, 1, i}), netip.AddrFrom16([16]byte{0: 0xff, 1: 0x05, 15: i}))
}

func (l *lab) groupAt(i byte) netip.AddrPort { return netip.AddrPortFrom(l.groupAddr(i), 0) }

// floodGroup has the flood list of a VNI be groups, and peers behind them.
func (l *lab) floodGroup(n frame.VNI, groups []byte, peers ...byte) {
	l.T.Helper()
	var to []netip.AddrPort
	for _, i := range groups {
		to = append(to, l.groupAt(i))
	}
	for _, i := range peers {
		to = append(to, l.at(i))
	}
	l.must(l.VTEP.SetFlood(n, to...))
}

// member makes a far end that is in groups.
func (l *lab) member(i byte, groups ...byte) *far {
	l.T.Helper()
	f := l.far(i)
	for _, g := range groups {
		l.must(f.u.Join(l.groupAddr(g)))
	}
	return f
}

// sendGroup sends one datagram to a group.
func (f *far) sendGroup(i byte, payload []byte) {
	f.l.T.Helper()
	f.sendTo(netip.AddrPortFrom(f.l.groupAddr(i), f.to.Port()), payload)
}

var multicastRows = []row{
	{id: "5.multicast-underlay", name: "one copy, of each class", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9})
		h, f, g, _ := l.host(), l.member(2, 9), l.member(3, 9), l.member(4, 8)
		var want [][]byte
		for _, to := range []frame.MAC{frame.Broadcast, mcast, nobody} {
			x := eth(to, h.MAC, "")
			h.Send(x)
			want = append(want, vx(vni, x))
		}
		for _, m := range []*far{f, g} {
			var got [][]byte
			for _, d := range m.outer() {
				got = append(got, d.payload)
				check.Equal(l.T, "from", d.Src.Host(), l.endpoint(1).Host())
				check.Equal(l.T, "to", d.Dst.AddrPort(), netip.AddrPortFrom(l.groupAddr(9), encap.VXLANPort))
			}
			l.same("member of the group", got, want)
		}
		l.quiet()
		for _, p := range l.VTEP.Stats().Peers {
			l.check(p.Addr.Addr() == l.groupAddr(9) && p.Tx.Frames == 3 && p.Rx.Frames == 0 && p.Listed, "%+v", p)
		}
		st := l.VTEP.Stats()
		l.check(st.Tx.Frames == 3 && st.Learned == 0 && len(st.Peers) == 1, "%+v", st)
		l.drops(nil)
	}},
	{id: "5.multicast-underlay", name: "groups beside peers", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9, 8, 9}, 4, 5)
		if got, want := l.VTEP.Flood(vni), []netip.AddrPort{l.at(4), l.at(5),
			netip.AddrPortFrom(l.groupAddr(9), encap.VXLANPort), netip.AddrPortFrom(l.groupAddr(8), encap.VXLANPort)}; !slices.Equal(got, want) {
			l.T.Errorf("flood list %v, want %v", got, want)
		}
		h := l.host()
		x := eth(frame.Broadcast, h.MAC, "")
		fs := []*far{l.member(2, 9), l.member(3, 8), l.far(4), l.far(5)}
		h.Send(x)
		for _, f := range fs {
			f.want(vx(vni, x))
		}
	}},
	{id: "5.multicast-underlay", name: "a path that is too narrow for one group", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9, 8}, 4)
		h, fs := l.host(), []*far{l.member(2, 9), l.member(3, 8), l.far(4)}
		l.Net.SetLink(l.addr(1), l.groupAddr(9), memory.Link{MTU: 90})
		x := eth(frame.Broadcast, h.MAC, "")
		for range 3 {
			h.Send(x)
		}
		fs[0].want()
		fs[1].want(vx(vni, x), vx(vni, x), vx(vni, x))
		fs[2].want(vx(vni, x), vx(vni, x), vx(vni, x))
		l.drops(nil)
		st := l.VTEP.Stats()
		l.check(st.Lost[frame.TooBig] == 3, "%d lost", st.Lost[frame.TooBig])
	}},
	{id: "5.multicast-underlay", name: "not of another family, nor of no group", wire: func(l *lab) {
		l.start()
		for _, a := range []string{pick(l.ip6, "ff05::1", "239.1.1.1"), "ff02::1%1"} {
			err := l.VTEP.SetFlood(vni, netip.AddrPortFrom(netip.MustParseAddr(a), 0))
			l.check(err != nil, "%s is in the flood list", a)
		}
		l.check(check.Err(l.VTEP.AddPeer(l.groupAt(9))) != nil, "a group is a peer")
	}},
	{id: "5.multicast-join", name: "VNIs share a group, and the VNI decides", wire: func(l *lab) {
		keep := vswitch.AttachConfig{KeepOpen: true} // the VTEP, when it is in no segment
		l.start(keep)
		other := l.vsi(200, nil)
		at := check.Must(other.AttachWith(l.VTEP, 200, &keep))(l.T)
		l.floodGroup(vni, []byte{9})
		l.floodGroup(200, []byte{9})
		past := check.Must(l.vsi(300, nil).AttachWith(l.VTEP, 300, &keep))(l.T)
		l.floodGroup(300, []byte{9, 7})
		l.must(past.Detach())
		h, o, f := l.host(), l.Host(200), l.member(2)
		hear := func(group byte, n frame.VNI, want bool) {
			l.T.Helper()
			b := eth(frame.Broadcast, rmac(1), fmt.Sprint(n))
			f.sendGroup(group, vx(n, b))
			var gotH, gotO [][]byte
			if want && n == vni {
				gotH = [][]byte{b}
			} else if want {
				gotO = [][]byte{b}
			}
			h.Want(gotH...)
			o.Want(gotO...)
		}
		hear(9, vni, true)
		hear(9, 200, true)
		hear(9, 300, false) // unknown-vni
		hear(7, vni, false) // not joined
		l.drops(one("unknown-vni"))
		l.must(l.tun.Detach())
		hear(9, 200, true)
		hear(9, vni, false) // shut: the VNI decides
		l.must(at.Detach())
		hear(9, 200, false) // nobody is in the group any more
		check.Equal(l.T, "to nobody", l.Net.Stats().NoListener, 2)
		check.Must(other.Attach(l.VTEP, 200))(l.T)
		hear(9, 200, true) // the list has stayed
		l.must(l.VTEP.SetFlood(200))
		hear(9, 200, false)
		check.Equal(l.T, "to nobody", l.Net.Stats().NoListener, 3)
		l.must(l.VTEP.SetFlood(300))
		l.must(l.VTEP.SetFlood(vni))
		l.pass(time.Minute) // the switch has retired what is not listed
		for _, p := range l.VTEP.Stats().Peers {
			l.check(!p.Addr.Addr().IsMulticast(), "left behind: %+v", p)
		}
	}},
	{id: "5.multicast-join", name: "Close leaves", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9})
		f := l.member(2)
		l.must(l.VTEP.Close())
		f.sendGroup(9, vx(vni, in1))
		check.Equal(l.T, "to nobody", l.Net.Stats().NoListener, 1)
	}},
	{id: "5.multicast-join", name: "from peers to a group and back, under traffic", wire: func(l *lab) {
		l.start()
		h, fs := l.host(), []*far{l.member(2, 9), l.member(3, 9, 8), l.member(4, 8, 9)}
		lists := []func(){
			func() { l.flood(2, 3, 4) },
			func() { l.floodGroup(vni, []byte{9}) },
			func() { l.flood(4, 3, 2) },
			func() { l.floodGroup(vni, []byte{8}, 2) },
			func() { l.floodGroup(vni, []byte{9}) },
		}
		lists[0]()
		stop := l.traffic(h, func() {})
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			lists[i%len(lists)]()
		}
		n := stop()
		for k, f := range fs {
			got := f.counted()
			for i := range n {
				l.check(got[i] == 1, "peer %d got %d of frame %d", k+2, got[i], i)
			}
		}
		l.check(n >= 200, "%d frames", n)
	}},
	{id: "5.multicast-answers", name: "by unicast to the outer source, which is a peer", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9})
		h, f, g := l.host(), l.member(2, 9), l.member(3, 9)
		ask := eth(frame.Broadcast, rmac(1), "question")
		f.sendGroup(9, vx(vni, ask))
		h.Want(ask)
		g.want(vx(vni, ask))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		answer := eth(rmac(1), h.MAC, "answer")
		h.Send(answer)
		got := f.outer()
		l.check(len(got) == 1 && got[0].Dst.Host().AddrPort().Addr() == l.addr(2) && got[0].TTL == 64, "%+v", got)
		g.want()
		st := l.VTEP.Stats()
		l.check(st.Learned == 1, "%d learned", st.Learned)
		l.drops(nil)
	}},
	{id: "5.multicast-answers", name: "a group, or no address, as outer source is nobody's", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9})
		v, s := l.forged()
		l.must(v.SetFlood(vni, l.groupAt(9)))
		none := pick(l.ip6, netip.IPv4Unspecified(), netip.IPv6Unspecified())
		in := v.Readers()[0]
		for _, from := range []netip.Addr{none, l.groupAddr(9), none} {
			e := check.Must(frame.EndpointFrom(netip.AddrPortFrom(from, 5000)))(l.T)
			s.outer = frame.Outer{Src: e, Dst: l.endpoint(2), TTL: 64}
			b := frame.NewBatch(nil)
			l.must(in.Read(b))
			f := &b.Frames[0]
			l.check(f.Drop == frame.Martian && f.From.Peer() == 0 && v.Stats().Learned == 0,
				"from %v: dropped as %v, from peer %d, %d learned", from, f.Drop, f.From.Peer(), v.Stats().Learned)
		}
		l.must(v.Close())
	}},
	{id: "5.multicast-loop", name: "the own copy does not come back", wire: func(l *lab) {
		l.start()
		l.floodGroup(vni, []byte{9})
		h := l.host()
		h.Send(eth(frame.Broadcast, h.MAC, ""))
		l.clean()
	}},
	{id: "5.multicast-loop", name: "or is dropped, and teaches nothing", wire: func(l *lab) {
		u := check.Must(l.Net.Listen(l.at(5), &memory.Config{MulticastLoop: true}))(l.T)
		v := check.Must(vtep.New(nil, u))(l.T)
		l.bridge()
		check.Must(l.seg.Attach(v, vni))(l.T)
		l.must(v.SetFlood(vni, l.groupAt(9)))
		h, f := l.host(), l.member(2, 9)
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f)
		l.dropped("own-address")
		st := v.Stats()
		l.check(st.Learned == 0, "%d learned", st.Learned)
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
	}},
	{id: "5.multicast-loop", name: "a hub does not send round what has come to a group", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true})
		l.floodGroup(vni, []byte{9})
		h, f, g := l.host(), l.member(2, 9), l.member(3, 9)
		x := eth(frame.Broadcast, rmac(1), "")
		f.sendGroup(9, vx(vni, x))
		h.Want(x)
		f.want()
		g.want(vx(vni, x))
		f.send(vx(vni, x)) // by unicast: nobody else has it
		h.Want(x)
		f.want(vx(vni, x)) // the sender is in the group, too
		g.want(vx(vni, x))
	}},
	{id: "1.ttl-group", name: "default", wire: func(l *lab) { l.groupTTL(nil, 1, 64) }},
	{id: "1.ttl-group", name: "set", wire: func(l *lab) { l.groupTTL(&vtep.Config{GroupTTL: 7}, 7, 64) }},
	{id: "1.ttl-group", name: "Header.TTL is for peers", wire: func(l *lab) {
		l.groupTTL(&vtep.Config{Header: vtep.Header{TTL: 9, TOS: 0xb8}}, 1, 9)
	}},
	{id: "1.ttl-group", name: "neither is it inherited", wire: func(l *lab) {
		l.groupTTL(&vtep.Config{Header: vtep.Header{TTL: vtep.Inherit}, GroupTTL: 64}, 64, 64)
	}},
	{id: "3.b-sent", name: "not on the one copy to a group, and on those beside it", wire: func(l *lab) {
		l.start(gpeVTEP)
		l.floodGroup(vni, []byte{9}, 3)
		h, f, g := l.host(), l.member(2, 9), l.far(3)
		b := eth(frame.Broadcast, h.MAC, "")
		h.Send(b)
		f.want(gpe(vni, 3, b))
		g.want(bum(vni, 3, b))
		l.floodGroup(vni, []byte{9})
		h.Send(b)
		f.want(gpe(vni, 3, b))
	}},
	{id: "5.link-local", name: "an end at a link-local address", only: "IPv6", wire: func(l *lab) {
		local := func(i byte) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 15: i}).WithZone("1"), encap.VXLANPort)
		}
		u := check.Must(l.Net.Listen(local(1), nil))(l.T)
		v := check.Must(vtep.New(nil, u))(l.T)
		l.bridge()
		far2 := check.Must(l.Net.Listen(local(2), nil))(l.T)
		tun := check.Must(l.seg.Attach(v, vni))(l.T)
		h, f := l.host(), l.hear(far2, local(1))
		zoneless := netip.AddrPortFrom(local(2).Addr().WithZone(""), 0)
		l.must(v.SetFlood(vni, local(2), zoneless, local(1))) // the zone is known, and the own address left out
		got := v.Flood(vni)
		l.check(slices.Equal(got, []netip.AddrPort{local(2)}), "flood list %v", got)
		x := eth(frame.Broadcast, h.MAC, "")
		l.passes(h, x, f)
		f.send(vx(vni, eth(h.MAC, rmac(1), "")))
		h.Got()
		st := v.Stats()
		l.check(len(st.Peers) == 1 && st.Peers[0].Addr == local(2) && st.Peers[0].Rx.Frames == 1 && st.Learned == 0, "%+v", st)
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0), rmac(1): tun.Dest(st.Peers[0].Peer)})
		x = eth(rmac(1), h.MAC, "")
		l.passes(h, x, f)
		l.check(v.SetFlood(vni, netip.AddrPortFrom(local(3).Addr().WithZone("2"), 0)) != nil, "a peer of another zone")
		l.drops(nil)
	}},
	{id: "5.link-local", name: "needs a zone at another end", only: "IPv6", wire: func(l *lab) {
		l.start()
		_, err := l.VTEP.AddPeer(netip.MustParseAddrPort("[fe80::2]:4789"))
		l.check(err != nil, "a link-local peer without a zone")
	}},
}

// groupTTL fails the test unless a group and a peer get these.
func (l *lab) groupTTL(vc *vtep.Config, group, peer uint8) {
	l.T.Helper()
	l.start(vc)
	l.floodGroup(vni, []byte{9}, 3)
	h, f, g := l.host(), l.member(2, 9), l.far(3)
	h.Send(eth(frame.Broadcast, h.MAC, ""))
	x, y := f.outer(), g.outer()
	l.check(len(x) == 1 && len(y) == 1 && x[0].TTL == group && y[0].TTL == peer && x[0].TOS == y[0].TOS,
		"to the group %+v, to the peer %+v", x, y)
}

// forger is an underlay whose one packet is from whom the test says.
type forger struct {
	*memory.Underlay
	outer frame.Outer
}

func (u *forger) Readers() []frame.Reader { return []frame.Reader{u} }

func (u *forger) Read(b *frame.Batch) error {
	b.Reset()
	f := b.Borrow(append(make([]byte, frame.Headroom), vx(vni, in1)...), frame.Headroom, frame.Headroom+8+len(in1))
	b.Outer[0] = u.outer
	f.Kind = frame.Ethernet
	return nil
}

// forged makes a VTEP on a forger, without a switch.
func (l *lab) forged() (v *vtep.VTEP, u *forger) {
	l.T.Helper()
	m := check.Must(l.Listen(l.addr(77), encap.TypeVXLAN))(l.T)
	u = &forger{Underlay: m}
	v = check.Must(vtep.New(nil, u))(l.T)
	l.must(v.Control().Open(vni))
	return v, u
}
