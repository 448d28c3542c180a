//go:build !race

package policy

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// No packet allocates, whatever becomes of it.
func TestAllocations(t *testing.T) {
	cfg := allowed()
	cfg.Rules = append(cfg.Rules, Rule{SrcMACs: []frame.MAC{macOf(9)}, DstPorts: []PortRange{{7, 9}}, SrcPorts: []PortRange{{7, 9}}, EtherTypes: []uint16{5}})
	cfg.PortSets = map[string][]Endpoint{"p": {{ipOf(false, 2), 17, 0}}}
	cfg.Tiers = []Tier{{Name: "t", Rules: []Rule{
		{Action: Log, SrcSet: "s", NotDst: prefixes("192.0.2.0/24")}, {Action: Deny, NotDstPortSets: []string{"p"}, SrcPorts: []PortRange{{7, 9}}}, {Action: Pass},
	}}}
	cfg.Sets = map[string][]netip.Prefix{"s": prefixes("10.0.0.0/8", "fd00::/8")}
	l := newLab(t, cfg)
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128")})
	must(t, err)
	for _, v6 := range []bool{false, true} {
		udp := pkt{kind: "udp", v6: v6, src: 1, dst: 2, sport: 1}
		l.in(true, udp)
		l.in(true, pkt{kind: "udp", v6: v6, src: 1, dst: 2, frag: "first"})
		for _, x := range []pkt{
			udp, udp.answer(), {kind: "tcp", v6: v6, src: 1, dst: 2, flags: "S"}, {kind: "udp", v6: v6, src: 3, dst: 4},
			{kind: "icmp", v6: v6, typ: []uint8{3, 1}[b2i(v6)], src: 2, dst: 1, about: &udp},
			{kind: "udp", v6: v6, src: 1, dst: 2, frag: "later"}, {kind: "arp", src: 1, dst: 2}, {kind: "nd", v6: true, typ: 135, src: 1, dst: 2},
		} {
			f := x.frame(t)
			if n := testing.AllocsPerRun(100, func() {
				l.p.Ingress().Process(&f, l.at)
				l.p.Egress().Process(&f, l.at)
				g.Process(&f, l.at)
			}); n != 0 {
				t.Errorf("%+v: %v allocations", x, n)
			}
		}
	}
	// New flows, in a table that has grown.
	n := uint16(0)
	f := (&pkt{kind: "udp", src: 1, dst: 2}).frame(t)
	open := func() {
		n++
		f.Bytes()[34], f.Bytes()[35] = byte(n>>8), byte(n)
		if l.p.Ingress().Process(&f, l.at) != frame.Continue {
			t.Fatal("dropped")
		}
	}
	for range 8000 {
		open()
	}
	if n := testing.AllocsPerRun(2000, open); n != 0 {
		t.Errorf("opening: %v allocations", n)
	}
}
