package table

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Whatever peers say and the switch does, in any order: when it has settled, a Table that hears only the end has the same rows and routes,
// and nothing is kept of what is gone.
func TestRandom(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		l := newLab(t, nil)
		end := map[netip.Addr]map[route.Key]*route.Route{peer: {}, reflector: {}}
		for range 200 {
			p := []netip.Addr{peer, reflector}[r.IntN(2)]
			x := randomRoute(r)
			switch r.IntN(14) {
			default:
				l.Learned(0, p, x)
				end[p][x.Key] = x
			case 6, 7:
				l.Withdrawn(0, p, &x.Key)
				delete(end[p], x.Key)
			case 8:
				l.Down(0, p)
				clear(end[p])
			case 9:
				l.DeleteSegment(100)
				l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours)})
			case 10:
				l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), NoHostRoutes: r.IntN(2) == 0})
			case 11:
				l.flush()
			case 12:
				l.SetEthernets(0, nil)
			case 13:
				l.SetEthernets(0, []EthernetSegment{randomEthernet(r)})
			}
		}
		last := randomEthernet(r)
		l.SetEthernets(0, []EthernetSegment{last})
		l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours)})
		l.flush()
		l.flush()
		fresh := newLab(t, nil)
		fresh.SetEthernets(0, []EthernetSegment{last})
		for p, routes := range end {
			for _, x := range routes {
				fresh.Learned(0, p, x)
			}
		}
		fresh.flush()
		if a, b := l.list(), fresh.list(); !slices.Equal(a, b) {
			t.Fatalf("seed %d:\n%q\n%q", seed, a, b)
		}
		if a, b := fmt.Sprint(l.roles), fmt.Sprint(fresh.roles); a != b {
			t.Fatalf("seed %d: roles %s, want %s", seed, a, b)
		}
		if a, b := fmt.Sprint(l.Left()), fmt.Sprint(fresh.Left()); a != b {
			t.Fatalf("seed %d: left out %s, want %s", seed, a, b)
		}
		l.Down(0, peer)
		l.Down(0, reflector)
		l.flush()
		if got := l.list(); len(got) != 0 || len(l.segments[100].hosts)+len(l.segments[200].hosts)+len(l.segments[100].floods)+len(l.vrfs["red"].prefixes) != 0 {
			t.Fatalf("seed %d: %q are left", seed, got)
		}
		l.SetEthernets(0, nil)
		l.flush()
		l.empty()
	}
}

func randomEthernet(r *rand.Rand) EthernetSegment {
	return atPort3(EthernetSegment{ESI: route.ESI{3, byte(r.IntN(2))}, Port: "p1", Up: r.IntN(4) > 0, VNIs: [][]frame.VNI{{100}, {100, 200}}[r.IntN(2)],
		SingleActive: r.IntN(2) == 0, Election: route.Election{Algorithm: uint8(r.IntN(3))}})
}

func randomRoute(r *rand.Rand) *route.Route {
	var x *route.Route
	switch r.IntN(7) {
	case 4:
		x = whole()
		communities2(x, target(65000, 100), route.ESILabel(r.IntN(4) == 0))
	case 5:
		x = alias()
		x.Labels[0] = uint32(r.IntN(2)) * 100
	case 6:
		x = rival()
		x.IP = at([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}[r.IntN(3)])
	case 0:
		x = macIP(mac(byte(r.IntN(3))), []string{"", "10.0.0.1", "10.0.0.2"}[r.IntN(3)])
		x.Communities += route.Join(route.Mobility(uint32(r.IntN(3)), r.IntN(8) == 0))
	case 1:
		x = macVRF(mac(byte(r.IntN(3))), []string{"10.2.0.1", "10.2.0.2", "10.2.0.3"}[r.IntN(3)])
		x.Communities += route.Join(route.Mobility(uint32(r.IntN(3)), false))
	case 2:
		x = multicast()
	case 3:
		x = prefixRoute([]string{"10.9.0.0/16", "10.2.0.2/32", "224.0.0.0/8"}[r.IntN(3)])
	}
	x.NextHop = at([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}[r.IntN(4)])
	x.RD[7] = byte(r.IntN(2))
	if id := (route.ESI{3, byte(r.IntN(2))}); x.Kind == route.AutoDiscovery || x.Kind == route.Segment {
		x.Segment = id
	} else if r.IntN(2) == 0 && x.Kind == route.MACIP {
		x.ESI = id
	}
	return x
}
