package vtep

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// outOf is a frame to a MAC.
func outOf(dst frame.MAC, skip uint16) []frame.Out {
	b := inner(1)
	copy(b, dst[:])
	f := frame.Make(b)
	return []frame.Out{{F: &f, Skip: skip, Tag: vni}}
}

// Broadcast and multicast, and unknown unicast, each go to those that want them (RFC 9574), whatever happens to ports,
// settings and the underlay.
func TestPrunedFlood(t *testing.T) {
	unicast, multicast := frame.MAC{2, 0, 0, 0, 0, 5}, frame.MAC{1, 0, 0x5e, 0, 0, 5}
	groups := []frame.MAC{{1, 0, 0x5e, 1, 1, 1}, {0x33, 0x33, 0, 1, 0, 1}}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		u, six := fake4(), fake6()
		v := newVTEP(t, &Config{Peers: ListedPerVNI}, u, six)
		check.OK(t, v.Control().Open(vni))
		var list []FloodPeer
		for i := range 1 + r.IntN(6) {
			a := at(i)
			if r.IntN(3) == 0 {
				a = at6(i)
			}
			for _, mac := range groups {
				if r.IntN(4) == 0 {
					list = append(list, FloodPeer{Addr: a, MAC: mac, NoBroadcast: r.IntN(4) == 0})
				}
			}
			if r.IntN(4) > 0 {
				list = append(list, FloodPeer{Addr: a, NoBroadcast: r.IntN(2) == 0, NoUnknown: r.IntN(2) == 0})
			}
		}
		if len(list) == 0 {
			continue
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		check.OK(t, v.SetFloodPeers(vni, list...))
		if round%3 == 1 { // another port for one of them
			a := list[0].Addr.Addr()
			for i := range list {
				if list[i].Addr.Addr() == a {
					list[i].Addr = netip.AddrPortFrom(a, 9999)
				}
			}
			check.Must(v.AddPeer(list[0].Addr))(t)
		}
		if round%3 == 2 {
			u = fakeAt(netip.MustParseAddrPort("192.0.2.9:4789"))
			check.OK(t, v.SetUnderlay(u))
		}
		if round%5 == 0 { // peers with settings of their own
			check.OK(t, v.SetPeers([]PeerConfig{{Address: list[0].Addr.Addr(), Header: Header{TTL: 9}}}))
		}
		got := v.FloodPeers(vni)
		order := func(a, b FloodPeer) int {
			return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()))
		}
		slices.SortFunc(got, order)
		sorted := slices.SortedFunc(slices.Values(list), order)
		peers := map[netip.AddrPort]bool{}
		for _, p := range list {
			peers[p.Addr] = true
		}
		if !slices.Equal(got, sorted) || len(v.Flood(vni)) != len(peers) {
			t.Fatalf("list %v, want %v", got, sorted)
		}
		w := v.Writer(0)
		for _, dst := range append(groups, frame.Broadcast, multicast, unicast) {
			alone := slices.ContainsFunc(list, func(p FloodPeer) bool { return p.MAC == dst })
			check.Equal(t, "HasGroup", v.HasGroup(vni, dst), alone)
			u.sent, six.sent = nil, nil
			o := outOf(dst, 0)
			check.OK(t, w.Write(o))
			var to, want []netip.AddrPort
			for _, s := range slices.Concat(u.sent, six.sent) {
				to = append(to, s.to...)
			}
			for _, p := range list {
				if (dst == unicast && !p.NoUnknown || dst != unicast && !p.NoBroadcast) && (p.MAC == dst || p.MAC.IsZero() && !alone) {
					want = append(want, p.Addr)
				}
			}
			slices.SortFunc(to, netip.AddrPort.Compare)
			slices.SortFunc(want, netip.AddrPort.Compare)
			if !slices.Equal(to, want) || (o[0].Drop == frame.NoPeer) != (len(want) == 0) {
				t.Fatalf("%v to %v, %v, want %v; list %v", dst, to, o[0].Drop, want, list)
			}
		}
		for i, p := range list { // all may send
			in, q := u, v.Readers()[0]
			if p.Addr.Addr().Is6() {
				in, q = six, v.Readers()[1]
			}
			if fs := in.hear(t, q, p.Addr, vx(vni, inner(1))); fs[0].Drop != 0 {
				t.Fatalf("from entry %d: %v", i, fs[0].Drop)
			}
		}
	}
}

// A multicast group is pruned like a peer, and who the frame came from is left out.
func TestPrunedGroup(t *testing.T) {
	u := &groupFake{fake: fake4()}
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	group := netip.MustParseAddrPort("239.1.1.1:4789")
	check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1)}, FloodPeer{Addr: at(2), NoUnknown: true}, FloodPeer{Addr: group, NoUnknown: true}))
	w := v.Writer(0)
	for dst, want := range map[frame.MAC][]netip.AddrPort{frame.Broadcast: {at(2), group}, {2, 0, 0, 0, 0, 5}: nil} {
		u.sent = nil
		check.OK(t, w.Write(outOf(dst, addPeer(t, v, at(1)))))
		var to []netip.AddrPort
		for _, s := range u.sent {
			to = append(to, s.to...)
		}
		if !slices.Equal(to, want) {
			t.Errorf("%v to %v, want %v", dst, to, want)
		}
	}
}

// A writer takes any frame, as without pruning: an empty one too.
func TestPrunedEmpty(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.OK(t, v.Control().Open(vni))
	check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1), NoUnknown: true}))
	f := frame.Make(nil)
	o := []frame.Out{{F: &f, Tag: vni}}
	check.OK(t, v.Writer(0).Write(o))
	check.Equal(t, "dropped", o[0].Drop, frame.NotDropped)
}

// Frames to a group whose only entry is the VTEP itself go nowhere, until the VTEP has another address. Copies count for their
// peers, and allocate nothing.
func TestFloodOfGroup(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	one, own := frame.MAC{1, 0, 0x5e, 1, 1, 1}, frame.MAC{1, 0, 0x5e, 1, 1, 2}
	self := netip.AddrPortFrom(u.LocalAddr().Addr(), 0)
	check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1)}, FloodPeer{Addr: at(2), MAC: one}, FloodPeer{Addr: self, MAC: own}))
	w, nums := v.Writer(0), []uint16{addPeer(t, v, at(1)), addPeer(t, v, at(2))}
	for _, x := range []struct {
		dst  frame.MAC
		skip uint16
		drop frame.Reason
	}{{one, 0, 0}, {one, nums[0], 0}, {one, nums[1], frame.NoPeer}, {own, 0, frame.NoPeer}, {frame.Broadcast, 0, 0}} {
		o := outOf(x.dst, x.skip)
		check.OK(t, w.Write(o))
		check.Equal(t, "dropped", o[0].Drop, x.drop)
	}
	u.send = func([]frame.Datagram) error { return nil }
	o := outOf(one, 0)
	if n := testing.AllocsPerRun(20, func() { check.OK(t, w.Write(o)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	check.OK(t, v.SetFlood(vni, at(1)))
	check.Equal(t, "to the first", v.countsOf(nums[0]).Tx.Frames, 1)
	check.Equal(t, "to the second", v.countsOf(nums[1]).Tx.Frames, 2+21)

	check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1)}, FloodPeer{Addr: self, MAC: own}))
	check.OK(t, v.SetUnderlay(fakeAt(netip.MustParseAddrPort("192.0.2.9:4789"))))
	check.Equal(t, "entries", len(v.FloodPeers(vni)), 2)
}

// A list with an entry too many, or for the MAC of a host, is refused as a whole.
func TestGroupsRefused(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.OK(t, v.Control().Open(vni))
	var list []FloodPeer
	for i := range MaxGroups {
		list = append(list, FloodPeer{Addr: at(1), MAC: frame.MAC{1, 0, 0x5e, 0, byte(i >> 8), byte(i)}})
	}
	check.OK(t, v.SetFloodPeers(vni, list...))
	check.ErrorIs(t, "one more", v.SetFloodPeers(vni, append(list, FloodPeer{Addr: at(2), MAC: frame.MAC{1}})...), ErrGroups)
	check.ErrorHas(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1), MAC: frame.MAC{2}}), "vtep: flood list: MAC 02:00:00:00:00:00: must be that of a group")
	check.Equal(t, "entries", len(v.FloodPeers(vni)), MaxGroups)
}

// A peer that gets no flooded frame does not count for what fits.
func TestFloodMTUOfPruned(t *testing.T) {
	const fits4, fits6 = 1500 - 36, 1500 - 56
	v := newVTEP(t, nil, fake4(), fake6())
	check.OK(t, v.Control().Open(vni))
	for _, x := range []struct {
		no  [2]bool
		all int
	}{{[2]bool{}, fits6}, {[2]bool{true, false}, fits6}, {[2]bool{false, true}, fits6}, {[2]bool{true, true}, fits4}} {
		check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1)}, FloodPeer{Addr: at6(1), NoBroadcast: x.no[0], NoUnknown: x.no[1]}))
		some, all := v.FloodMTU(vni)
		check.Equal(t, "fits some and all", [2]int{some, all}, [2]int{fits4, x.all})
	}
	for _, list := range [][]FloodPeer{{{Addr: at(1)}, {Addr: at6(1), MAC: frame.MAC{1}}}, {{Addr: at(1), MAC: frame.MAC{1}}}} { // those of a group count for some alone
		check.OK(t, v.SetFloodPeers(vni, list...))
		some, all := v.FloodMTU(vni)
		check.Equal(t, "fits some and all", [2]int{some, all}, [2]int{fits4, fits4})
	}
}
