package kernel

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// inSubnets runs a part of a test with the addresses of each family.
func inSubnets(t *testing.T, f func(t *testing.T, in func(subnet, n byte) string)) {
	t.Run("IPv4", func(t *testing.T) { f(t, in4) })
	t.Run("IPv6", func(t *testing.T) { f(t, in6) })
}

// The gateway is on every node, with the same addresses and MAC. Between two hosts of one
// node nothing enters the tunnel, their questions for the gateway included; between nodes
// the one that a packet comes in on routes it (asymmetric IRB).
//
//	VM1 -- A === VNI 10, 20 === B -- VM5 (VNI 10)
//	VM2 --(G)                  (G)-- VM4 (VNI 20)
func TestAnycastGateway(t *testing.T) { overFabrics(t, 2, testAnycastGateway) }

func testAnycastGateway(t *testing.T, f *fabric) {
	a, b := f.leaves[0], f.leaves[1]
	f.anycast("red", 10, 10)
	f.anycast("red", 20, 20)
	vm1, vm2 := a.host(10, 10, 1, 1450), a.host(20, 20, 2, 1450)
	vm4 := b.host(20, 20, 4, 1450)
	b.host(10, 10, 5, 1450)
	inSubnets(t, func(t *testing.T, in func(subnet, n byte) string) {
		w := f.watch()
		for h, to := range map[*netns.Host]string{vm1: in(10, gatewayNo), vm2: in(20, gatewayNo), vm4: in(20, gatewayNo)} {
			wantTTL(t, h, to, 64)
		}
		wantTTL(t, vm1, in(20, 2), 63)
		check.Equal(t, "traceroute", fmt.Sprint(vm1.Traceroute(in(20, 2))), fmt.Sprint([]string{in(10, gatewayNo), in(20, 2)}))
		w.want() // nothing at all

		// A asks for VM4 in its own name, not in that of the address that B has too: the
		// answer would end there. B does not know VM1 either: it has heard nothing of it.
		w = f.watch()
		wantTTL(t, vm1, in(20, 4), 63)
		w.want(
			"A>B 20 A>all who-has "+in(20, 4),
			"B>A 20 VM4>A "+in(20, 4)+" is-at VM4",
			"A>B 20 A>VM4 ping 63",
			"B>A 10 B>all who-has "+in(10, 1),
			"A>B 10 VM1>B "+in(10, 1)+" is-at VM1",
			"B>A 10 B>VM1 pong 63",
		)
		w = f.watch()
		vm1.PingTTL(in(20, 4))
		w.want("A>B 20 A>VM4 ping 63", "B>A 10 B>VM1 pong 63")
		wantTTL(t, vm4, in(10, 5), 63)
	})
	for _, s := range f.leaves {
		for _, vsi := range s.Switch().VSIs() {
			m := vsi.FDB().Stats().Moved
			check.True(t, m == 0, "%s, VNI %d: %d MACs moved", s.name, vsi.VNI(), m)
		}
	}
}

// anycast joins all leaves in a VNI, with a gateway on each.
func (f *fabric) anycast(vrf string, vni frame.VNI, subnet byte) {
	f.t.Helper()
	f.mesh(vni, f.leaves...)
	for _, s := range f.leaves {
		s.gateway(vrf, vni, subnet, true)
	}
}

// Each node has a network of its own, and an L3VNI joins the gateways: a packet is routed
// on both, in between from router to router, and the hosts' MACs stay where they are.
//
//	VM1 -- A (VNI 10) === L3VNI 999 === B (VNI 20) -- VM4
//	                 RA               RB
func TestSymmetricIRB(t *testing.T) { overFabrics(t, 2, testSymmetricIRB) }

func testSymmetricIRB(t *testing.T, f *fabric) {
	a, b := f.leaves[0], f.leaves[1]
	f.symmetric(a, b)
	vm1 := a.host(10, 10, 1, 1450)
	b.host(20, 20, 4, 1450)
	inSubnets(t, func(t *testing.T, in func(subnet, n byte) string) {
		w := f.watch()
		wantTTL(t, vm1, in(20, 4), 62)
		w.want("A>B 999 RA>RB ping 63", "B>A 999 RB>RA pong 63")
		// The other router has no address on the L3VNI, and speaks from one that it has.
		want := fmt.Sprint([]string{in(10, gatewayNo), in(20, gatewayNo), in(20, 4)})
		check.Equal(t, "traceroute", fmt.Sprint(vm1.Traceroute(in(20, 4))), want)
	})

	// What is in which table: those of its own hosts and routers, by name.
	for s, want := range map[*leaf]string{
		a: "map[10:[G10 VM1] 20:[] 999:[RA RB]]",
		b: "map[10:[] 20:[G20 VM4] 999:[RA RB]]",
	} {
		got := s.macs(10, 20, 999)
		check.True(t, got == want, "%s has %s, want %s", s.name, got, want)
	}

	// The L3VNI does not bridge: a frame for a host that comes out of it goes nowhere.
	before, link := a.dropped(), vm1.Capture(vm1.Name, "ip") // the guest sends MLD when it likes
	inner := ethernet("02:00:00:00:0a:01", b.router().String(), 0x0800)
	inner = append(inner, inner4("10.0.20.4", in4(10, 1))...)
	b.inject(a, 999, inner)
	b.h.Until("a frame that is dropped", func() bool { return a.dropped() == before+1 })
	got := link.Stop()
	check.True(t, len(got) == 0, "a frame was bridged out of the L3VNI:\n%s", netns.Dump(got))
}

// symmetric gives A a gateway in VNI 10 and B one in VNI 20, and routes to each other's.
func (f *fabric) symmetric(a, b *leaf) {
	f.t.Helper()
	a.vsi(10)
	b.vsi(20)
	a.gateway("red", 10, 10, false)
	b.gateway("red", 20, 20, false)
	a.reach(a.l3vni("red", 999), "red", b.router(), b.addr, "10.0.20.0/24", "fd00:20::/64")
	b.reach(b.l3vni("red", 999), "red", a.router(), a.addr, "10.0.10.0/24", "fd00:10::/64")
}
