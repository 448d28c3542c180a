package policy

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
)

// What a guard refuses in one framing it refuses in all.
func TestGuardFramings(t *testing.T) {
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128")})
	must(t, err)
	for _, x := range []pkt{
		{kind: "tcp", src: 1, srcIP: ipOf(false, 2), dst: 2},
		{kind: "udp", v6: true, src: 1, srcIP: ipOf(true, 2), dst: 2},
		{kind: "arp", src: 1, srcIP: ipOf(false, 2), dst: 3},
		{kind: "nd", v6: true, typ: 134, src: 1, dst: 2},
		{kind: "nd", v6: true, typ: 136, src: 1, dst: 2},
		{kind: "udp", src: 1, dst: 2, sport: 67, dport: 68},
		{kind: "udp", v6: true, src: 1, dst: 2, sport: 547, dport: 546},
		{kind: "udp", src: 1, dst: 2, dport: 4789},
	} {
		for name, b := range framing.All(x.bytes(t)) {
			f := frame.Make(b)
			if v := g.Process(&f, frame.At{}); v != frame.Drop(frame.Policy) {
				t.Errorf("%s behind %s: %v", x.kind, name, v)
			}
		}
	}
	if g.Stats().Malformed == 0 {
		t.Error("no framing is too deep")
	}
}

// What rules deny in one framing they deny in all, and they allow what they can read.
func TestRuleFramings(t *testing.T) {
	l := newLab(t, &Config{Stateless: true, Rules: []Rule{
		{Name: "web", Action: Deny, Protocol: 6, DstPorts: []PortRange{Port(80)}},
		{Name: "from 3", Action: Deny, Src: []netip.Prefix{netip.PrefixFrom(ipOf(true, 3), 128)}},
		{Name: "ARP", Action: Deny, EtherTypes: []uint16{0x806}},
	}})
	send := func(b []byte) frame.Verdict {
		f := frame.Make(b)
		return l.p.Ingress().Process(&f, l.at)
	}
	for _, x := range []pkt{{kind: "tcp", src: 1, dst: 2, dport: 80}, {kind: "udp", v6: true, src: 3, dst: 2}, {kind: "arp", src: 1, dst: 2}} {
		for name, b := range framing.All(x.bytes(t)) {
			if v := send(b); v != frame.Drop(frame.Policy) {
				t.Errorf("%s behind %s: %v", x.kind, name, v)
			}
		}
	}
	for _, name := range []string{"web", "from 3", "ARP"} {
		if n := l.p.Stats().Rules[name].Packets; n < 10 {
			t.Errorf("%s: %d", name, n)
		}
	}
	other := pkt{kind: "tcp", src: 1, dst: 2, dport: 81}
	for _, x := range framing.Plain {
		if v := send(framing.Put(other.bytes(t), x)); v != frame.Continue {
			t.Errorf("port 81 behind % x: %v", x, v)
		}
	}
}

// LLC that has no packet of Ethernet's in it is a frame like others.
func TestLLC(t *testing.T) {
	l := newLab(t, &Config{Default: Deny, Stateless: true, Rules: []Rule{{Name: "STP", DstMACs: []frame.MAC{{1, 0x80, 0xc2}}}}})
	b := append([]byte{1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 38, 0x42, 0x42, 3}, make([]byte, 43)...)
	f := frame.Make(b)
	if v := l.p.Ingress().Process(&f, l.at); v != frame.Continue {
		t.Error(v, l.p.Stats())
	}
}
