package table

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// A VTEP says ten times as many of something as there may be, through a reflector that has said a few of others before, and says more of
// others after that.
func worstVTEP(t *testing.T, say func(i int) *route.Route, has func(l *lab) int, left string) (alone, beside int) {
	const limit, others, each = 1 << 12, 8, 100
	run := func(attack bool) int {
		l := newLab(t, func(c *Config) { c.MaxHosts, c.MaxRoutes, c.MaxVTEPs = limit, limit, limit })
		n := 0
		from := func(vtep byte, count int) {
			for range count {
				r := say(n)
				n++
				r.NextHop = route.AddrFrom(netip.AddrFrom4([4]byte{192, 0, 2, vtep}))
				l.Learned(0, reflector, r)
			}
		}
		for i := range others {
			from(byte(10+i), each/2)
		}
		if n = 1000; attack {
			from(99, 10*limit)
		}
		n = 100_000
		for i := range others {
			from(byte(10+i), each/2)
		}
		l.flush()
		if attack {
			if n := l.Left()[left]; n != 10*limit-(limit-others*each) {
				t.Errorf("%d are left out", n)
			}
		}
		kept := has(l)
		l.Down(0, reflector)
		l.flush()
		l.flush()
		s, v := l.segments[100], l.vrfs["red"]
		if len(l.Left())+len(s.hosts)+len(s.floods)+len(v.prefixes)+s.far.size+s.flooded.size+v.far.size+len(s.far.of)+len(s.flooded.of)+len(v.far.of) != 0 {
			t.Errorf("%v, %d hosts, %d VTEPs, %d prefixes are left at the end", l.Left(), len(s.hosts), len(s.floods), len(v.prefixes))
		}
		return kept
	}
	return run(false), run(true)
}

// good reports whether a path is one of the others'.
func good(paths []*path) bool {
	for _, p := range paths {
		if p.VTEP != at("192.0.2.99") {
			return true
		}
	}
	return false
}

func TestWorstHosts(t *testing.T) {
	alone, beside := worstVTEP(t, func(i int) *route.Route {
		m := frame.MAC{2, 1}
		binary.BigEndian.PutUint32(m[2:], uint32(i))
		return macIP(m, "")
	}, func(l *lab) (n int) {
		for _, h := range l.segments[100].hosts {
			if good(h.claims) && len(h.rows()) == 1 {
				n++
			}
		}
		return n
	}, leftSegmentLimit)
	worst.Kept(t, "MACs of EVPN VTEPs", alone, beside)
}

func TestWorstFloods(t *testing.T) {
	alone, beside := worstVTEP(t, func(i int) *route.Route {
		r := multicast()
		r.IP = route.AddrFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}))
		r.Tunnel = r.IP
		return r
	}, func(l *lab) (n int) {
		for _, f := range l.segments[100].floods {
			if good(f.paths) {
				n++
			}
		}
		return n
	}, leftFloodLimit)
	worst.Kept(t, "VTEPs of EVPN flood lists", alone, beside)
}

func TestWorstPrefixes(t *testing.T) {
	alone, beside := worstVTEP(t, func(i int) *route.Route {
		return prefixRoute(fmt.Sprintf("20.%d.%d.%d/32", i>>16, i>>8&255, i&255))
	}, func(l *lab) (n int) {
		for _, x := range l.vrfs["red"].prefixes {
			if good(x.paths) {
				n++
			}
		}
		return n
	}, leftVRFLimit)
	worst.Kept(t, "prefixes of EVPN VTEPs", alone, beside)
}
