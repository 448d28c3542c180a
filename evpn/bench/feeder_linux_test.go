package bench

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const (
	as    = 65000
	vni   = 100
	l3vni = 500
)

var (
	feederAddr = netip.MustParseAddr("192.0.2.9")
	moverAddr  = netip.MustParseAddr("192.0.2.10")
	leafAddr   = netip.MustParseAddr("192.0.2.1")
	vteps      = [2]netip.Addr{netip.MustParseAddr("192.0.2.50"), netip.MustParseAddr("192.0.2.51")}
)

// A feeder is a BGP speaker that says routes to the leaf.
type feeder struct {
	*bgp.BGP
	up   chan time.Time
	stop func()
}

func newFeeder(t *testing.T, h *netns.Host, addr netip.Addr) *feeder {
	b, err := bgp.New(bgp.Config{AS: as, RouterID: addr, Listen: []netip.AddrPort{netip.AddrPortFrom(addr, 179)}, In: h.Do,
		Peers: []bgp.Peer{{Addr: leafAddr, AS: as, Passive: true, MaxStale: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	f := &feeder{BGP: b, up: make(chan time.Time, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, f) }()
	f.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return f
}

func (f *feeder) Up(netip.Addr)                       { f.up <- time.Now() }
func (f *feeder) Learned(netip.Addr, *route.Route)    {}
func (f *feeder) Withdrawn(netip.Addr, *route.Key)    {}
func (f *feeder) Down(netip.Addr, error)              {}
func (f *feeder) Ended(netip.Addr)                    {}
func (f *feeder) Stale(netip.Addr, error)             {}
func (f *feeder) Malformed(_ netip.Addr, what string) {}

func target(n uint32) route.Community {
	t, _ := route.TargetFrom(as, n)
	return route.Community(t)
}

func mac(i int) frame.MAC { return frame.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)} }

// host is the route of a MAC with its address, at a VTEP with a sequence number.
func host(i int, vtep netip.Addr, sequence uint32) route.Route {
	c := []route.Community{target(vni), route.Encapsulation(route.VXLAN)}
	if sequence > 0 {
		c = append(c, route.Mobility(sequence, false))
	}
	return route.Route{Key: route.Key{Kind: route.MACIP, RD: route.RDFrom(vteps[0], 1), MAC: mac(i), IP: route.AddrFrom(netip.AddrFrom4([4]byte{172, byte(16 + i>>16), byte(i >> 8), byte(i)}))},
		Labels: [2]uint32{vni}, NumLabels: 1, NextHop: route.AddrFrom(vtep), Communities: route.Join(c...)}
}

func prefix(i int) route.Route {
	return route.Route{Key: route.Key{Kind: route.Prefix, RD: route.RDFrom(vteps[0], 2), IP: route.AddrFrom(netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)})), Bits: 32},
		Labels: [2]uint32{l3vni}, NumLabels: 1, NextHop: route.AddrFrom(vteps[0]),
		Communities: route.Join(target(l3vni), route.Encapsulation(route.VXLAN), route.RouterMAC(frame.MAC{2, 0, 0, 0, 9, 9}))}
}
