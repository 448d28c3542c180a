package policy

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Of what a rule with Log matches one packet a second is told of; the next rule decides, and all are counted.
func TestLog(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		l := newLab(t, &Config{Stateless: stateless, Default: Deny, PortSets: map[string][]Endpoint{"p": {{ipOf(false, 2), 6, 80}}}, Rules: []Rule{
			{Name: "seen", Action: Log, Protocol: 6, DstPorts: []PortRange{Port(80)}, DstPortSets: []string{"p"}},
			{Name: "web", Protocol: 6, DstPorts: []PortRange{Port(80)}},
			{Name: "rest", Action: Log},
		}})
		var got []Logged
		stop := l.p.WatchLog(func(x Logged) { got = append(got, x) })
		x := web(80)
		for range 3 {
			x.sport++
			l.in(true, x)
		}
		other := pkt{kind: "lldp", src: 3, dst: 4}
		l.out(false, other)
		l.out(false, other)
		tuple := frame.Tuple{Protocol: 6, Src: ipOf(false, 1), Dst: ipOf(false, 2), SrcPort: 1001, DstPort: 80}
		check.Slice(t, "told", got, []Logged{
			{Rule: "seen", Direction: Ingress, VNI: 100, From: frame.NewDest(1, 0), SrcMAC: macOf(1), DstMAC: macOf(2), EtherType: 0x800, Tuple: tuple},
			{Rule: "rest", Direction: Egress, VNI: 100, From: frame.NewDest(1, 0), SrcMAC: macOf(3), DstMAC: macOf(4), EtherType: 0x88cc},
		})
		s := l.p.Stats()
		check.Equal(t, "count", [3]uint64{s.Rules["seen"].Packets, s.Rules["web"].Packets, s.Rules["rest"].Packets}, [3]uint64{3, 3, 2})

		l.at.Tick++
		x.sport++
		l.in(true, x)
		check.Equal(t, "a second later", len(got), 3)
		stop()
		l.at.Tick++
		x.sport++
		l.in(true, x)
		check.Equal(t, "after stop", len(got), 3)
	}
}

// What a rule with Log matches is not carried past it; what rules with Pass match counts for them, too.
func TestJudgePassAndLog(t *testing.T) {
	p := check.Must(New(&Config{Stateless: true, Tiers: []Tier{{Name: "a", Rules: []Rule{
		{Action: Log, Protocol: 17}, {Action: Pass, Protocol: 6},
	}}}}))(t)
	udp, tcp := pkt{kind: "udp", src: 1, dst: 2}, web(80)
	tuple, _ := frame.TupleOf(udp.bytes(t))
	if _, pass := p.Ingress().Judge(macOf(1), macOf(2), tuple); pass {
		t.Error("carried past Log")
	}
	judged(t, p, p.Ingress(), tcp.bytes(t))
	s := p.Stats()
	check.Equal(t, "count", [2]uint64{s.Rules["a#1"].Packets, s.Default.Packets}, [2]uint64{2, 2})
}
