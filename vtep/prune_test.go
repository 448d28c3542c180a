package vtep

import (
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
			list = append(list, FloodPeer{a, r.IntN(2) == 0, r.IntN(2) == 0})
		}
		check.OK(t, v.SetFloodPeers(vni, list...))
		if round%3 == 1 { // another port for one of them
			a := &list[0].Addr
			*a = netip.AddrPortFrom(a.Addr(), 9999)
			check.Must(v.AddPeer(*a))(t)
		}
		if round%3 == 2 {
			u = fakeAt(netip.MustParseAddrPort("192.0.2.9:4789"))
			check.OK(t, v.SetUnderlay(u))
		}
		if round%5 == 0 { // peers with settings of their own
			check.OK(t, v.SetPeers([]PeerConfig{{Address: list[0].Addr.Addr(), Header: Header{TTL: 9}}}))
		}
		got := v.FloodPeers(vni)
		slices.SortFunc(got, func(a, b FloodPeer) int { return a.Addr.Compare(b.Addr) })
		sorted := slices.Clone(list)
		slices.SortFunc(sorted, func(a, b FloodPeer) int { return a.Addr.Compare(b.Addr) })
		if !slices.Equal(got, sorted) || len(v.Flood(vni)) != len(list) {
			t.Fatalf("list %v, want %v", got, sorted)
		}
		w := v.Writer(0)
		for _, dst := range []frame.MAC{frame.Broadcast, multicast, unicast} {
			u.sent, six.sent = nil, nil
			o := outOf(dst, 0)
			check.OK(t, w.Write(o))
			var to, want []netip.AddrPort
			for _, s := range slices.Concat(u.sent, six.sent) {
				to = append(to, s.to...)
			}
			for _, p := range list {
				if dst == unicast && !p.NoUnknown || dst != unicast && !p.NoBroadcast {
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

// A peer that gets no flooded frame does not count for what fits.
func TestFloodMTUOfPruned(t *testing.T) {
	const fits4, fits6 = 1500 - 36, 1500 - 56
	v := newVTEP(t, nil, fake4(), fake6())
	check.OK(t, v.Control().Open(vni))
	for _, x := range []struct {
		no  [2]bool
		all int
	}{{[2]bool{}, fits6}, {[2]bool{true, false}, fits6}, {[2]bool{false, true}, fits6}, {[2]bool{true, true}, fits4}} {
		check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1)}, FloodPeer{at6(1), x.no[0], x.no[1]}))
		some, all := v.FloodMTU(vni)
		check.Equal(t, "fits some and all", [2]int{some, all}, [2]int{fits4, x.all})
	}
}
