package table

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// anyRoute makes a route of bytes: sound in form, as the decoder passes it on, with values of all sorts.
func anyRoute(d *check.Draw) *route.Route {
	n := func() byte { return byte(d.N(256)) }
	addr := func() route.Addr {
		switch k := d.N(12); k {
		case 0:
			return route.Addr{}
		case 7:
			return route.AddrOf([]byte{n(), n(), n(), n()})
		case 8:
			return route.AddrOf([]byte{n(), n(), 15: n()})
		default: // 10.2.0.1 is of our gateway
			return at([]string{1: ours, "10.2.0.1", "127.0.0.1", "224.0.0.5", "::1", "fe80::1", 9: "192.0.2.2", "192.0.2.2", "192.0.2.2"}[k])
		}
	}
	r := &route.Route{Key: route.Key{Kind: route.Kind(d.N(5) + 1), RD: route.RD{7: n()}, Tag: uint32(n())}, NumLabels: uint8(d.N(3)), NextHop: addr(), TunnelType: uint8(d.N(8)), TunnelFlags: n()}
	r.MAC = check.Pick(d, mac(n()), mac(0xfe), mac(0xfd), frame.Broadcast, frame.MAC{})
	r.IP, r.Gateway, r.Tunnel = addr(), addr(), addr()
	id := check.Pick(d, esi, route.ESI{3, 1}, route.ESI{}, route.ESI{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	switch r.Kind {
	case route.AutoDiscovery:
		if r.Segment = id; d.N(2) == 0 {
			r.Tag = route.AllTags
		}
	case route.Segment:
		r.Segment = id
		if r.IP.Bits() == 0 {
			r.IP = at("192.0.2.2")
		}
	case route.MACIP, route.Prefix:
		r.ESI = id
	}
	if r.Kind == route.Prefix {
		if r.IP.Bits() == 0 {
			r.IP = at("10.9.0.0")
		}
		r.Bits = uint8(d.N(r.IP.Bits() + 1))
	}
	for i := range r.Labels {
		r.Labels[i] = check.Pick[uint32](d, 100, 200, 500, 0, 7001, 1<<24-1)
	}
	var cs []route.Community
	for range d.N(6) {
		cs = append(cs, check.Pick(d,
			target(65000, 100), target(9, 200), target(70000, 500), route.Encapsulation(route.VXLAN), route.Encapsulation(10), route.RouterMAC(mac(n())),
			route.RouterMAC(frame.Broadcast), route.RouterMAC(mac(0xfd)), route.Mobility(binary.BigEndian.Uint32([]byte{n(), n(), n(), n()}), d.N(2) == 0),
			route.DefaultGateway(), route.NDFlags(true, true), route.Community{6, 0x7f, 1}, route.ESILabel(d.N(2) == 0), route.ESImport(esi),
			route.Election{Algorithm: uint8(d.N(4)), Capabilities: uint16(n()) << 8, Preference: uint16(n())}.Community(),
		))
	}
	r.Communities = route.Join(cs...)
	return r
}

// No route takes what is ours, leads to where nobody is, or stays when its peer is gone.
func FuzzImport(f *testing.F) {
	f.Add([]byte("a route, and another that replaces it, and some more of them, until there are no bytes"))
	f.Add([]byte{1, 0, 0, 1, 9, 0, 0, 0, 1, 0, 9, 0, 9, 0, 0, 2, 0, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLab(t, nil)
		l.Here(0, 100, mac(1), frame.NewDest(3, 0), false)
		l.Here(0, 200, mac(2), 0, true)
		l.home(func(c *EthernetSegment) { c.VNIs, c.Election.Algorithm = []frame.VNI{100, 200}, uint8(len(b)%3) })
		for i := 0; len(b) > 0; i++ {
			r := anyRoute((*check.Draw)(&b))
			p := []netip.Addr{peer, reflector}[i%2]
			if i%5 == 4 {
				l.Withdrawn(l.now, p, &r.Key)
			} else {
				l.Learned(l.now, p, r)
			}
			l.now += time.Second
			if i%3 == 0 {
				l.flush()
				l.sound()
			}
		}
		l.flush()
		l.sound()
		l.Down(l.now, peer)
		l.Down(l.now, reflector)
		l.flush()
		if got := l.list(); len(got) != 0 || len(l.Left()) != 0 {
			t.Errorf("%q, left out %v: the peers are gone", got, l.Left())
		}
		for vni, r := range l.roles {
			if r.NoFlood || len(r.Shared) > 0 {
				t.Errorf("VNI %d: %v without others", vni, r)
			}
		}
		l.SetEthernets(l.now, nil)
		l.flush()
		l.empty()
	})
}

// sound checks that no row does harm.
func (l *lab) sound() {
	for _, r := range l.rows.Rows("evpn") {
		var vtep netip.Addr
		var bad bool
		switch r := r.(type) {
		case control.MAC:
			if vtep = r.VTEP.Addr(); r.Group != "" || r.Port == "p1" {
				vtep = peer
			}
			bad = !r.MAC.IsHost() || r.VNI == 200 && (r.MAC == mac(0xfe) || r.IP == netip.MustParseAddr("10.2.0.1")) || r.IP.IsLoopback() || r.IP.IsMulticast() || r.VNI == 200 && r.MAC == mac(2) && !r.Sticky
		case control.Group:
			vtep = r.VTEP.Addr()
		case control.Flood:
			vtep = r.VTEP.Addr()
		case control.Prefix:
			vtep = r.Via.VTEP.Addr()
			if !vtep.IsValid() {
				vtep, bad = peer, r.Via.IP == netip.MustParseAddr("10.2.0.1") || r.Via.VNI != 200
			} else {
				bad = r.Via.VNI != 500 || !r.Via.MAC.IsHost() || r.Via.MAC == mac(0xfd)
			}
			a := r.Prefix.Addr()
			bad = bad || r.Prefix != r.Prefix.Masked() || a.IsMulticast() || a.IsLoopback() || a.IsLinkLocalUnicast() || r.Prefix.IsSingleIP() && (a == vtep || a == netip.MustParseAddr(ours) || a == netip.MustParseAddr("10.2.0.1"))
		}
		if bad || !vtep.IsValid() || vtep.IsMulticast() || vtep.IsLoopback() || vtep.IsUnspecified() || vtep == netip.MustParseAddr(ours) {
			l.t.Errorf("row %v", r)
		}
	}
}
