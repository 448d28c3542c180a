package vtep

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The switch is told of every peer once, those from before it at first, and of the local address.
func TestTell(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	c := v.Control()
	check.OK(t, c.Open(vni))
	one := addPeer(t, v, at(1))
	var told []string
	c.Tell(func(e frame.Event) {
		told = append(told, fmt.Sprint(e.Kind, " ", e.Dest, " ", v.PeerName(e.Dest.Peer())))
	})
	want := func(what string, events ...string) {
		t.Helper()
		if !slices.Equal(told, events) {
			t.Errorf("%s: %q, want %q", what, told, events)
		}
		told = nil
	}
	want("before", "peer-up 0/1 198.51.0.1:4789")
	two := addPeer(t, v, at(2))
	addPeer(t, v, at(2))
	check.Must(v.NextHop(at(2), 7))(t)
	check.Must(v.Group(one, two))(t)
	want("listed", "peer-up 0/2 198.51.0.2:4789", "peer-up 0/3 198.51.0.2:4789 vni 7", "peer-up 0/4 group of 198.51.0.1:4789, 198.51.0.2:4789")
	r := v.Readers()[0]
	for range 3 {
		u.hear(t, r, at(9), vx(vni, inner(1)))
	}
	want("learned", "peer-up 0/5 198.51.0.9:4789")
	flood(t, v, vni, at(9), at(10))
	want("flooded to", "peer-up 0/6 198.51.0.10:4789")
	check.Slice(t, "peers", c.Peers(), []uint16{1, 2, 3, 4, 5, 6})

	check.OK(t, v.SetUnderlay(fake4())) // at the same address
	want("another underlay")
	check.OK(t, v.SetUnderlay(fakeAt(netip.MustParseAddrPort("192.0.2.9:4789"))))
	want("another address", "local-changed 0 ")

	check.OK(t, v.SetFlood(vni))
	v.DeletePeer(one)
	gone := c.Retire(func(uint16) bool { return true })
	check.Slice(t, "peers while a number is not free", c.Peers(), slices.DeleteFunc([]uint16{1, 2, 3, 4, 5, 6}, func(n uint16) bool { return slices.Contains(gone, n) }))
	c.Tell(nil)
	addPeer(t, v, at(77))
	want("nobody listens")
}

// The name of a peer follows its port.
func TestPeerNameFollows(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	n := addPeer(t, v, at(1))
	for _, port := range []uint16{4789, 8472, 4789} {
		addPeer(t, v, netip.AddrPortFrom(at(1).Addr(), port))
		for range 2 {
			check.Equal(t, "name", v.PeerName(n), fmt.Sprint(at(1).Addr(), ":", port))
		}
	}
	check.Equal(t, "allocations", testing.AllocsPerRun(10, func() { v.PeerName(n) }), 0)
}
