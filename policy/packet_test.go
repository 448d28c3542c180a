package policy

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Later fragments follow their first, or are judged without ports.
func TestFragments(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, &Config{Default: Deny, Rules: []Rule{{DstPorts: []PortRange{Port(53)}}, {Name: "gre", Protocol: 47}}})
		first := pkt{kind: "udp", v6: v6, src: 1, dst: 2, sport: 1000, dport: 53, frag: "first", fragID: 7}
		later := first
		later.frag = "later"
		l.in(false, later)
		l.in(true, first)
		l.in(true, later)
		l.out(false, later)
		l.out(true, first)
		l.out(true, later)
		l.in(true, later)
		other := later
		other.fragID = 8
		l.in(false, other)
		other = later
		other.src, other.dst = 2, 1
		l.in(false, other)
		re := first.answer() // the other way it has an identification of its own
		re.fragID = 20
		l.in(true, re)
		re.frag = "later"
		l.in(true, re)
		bad := first
		bad.dport, bad.fragID = 54, 9
		l.in(false, bad)
		bad.frag = "later"
		l.in(false, bad)
		gre := later
		gre.kind = "gre"
		l.in(true, gre)
		l.at.Tick += fragmentTicks
		l.in(false, later)
		l.in(true, first)
		must(t, l.p.Update(&Config{Default: Deny}))
		l.in(false, later)
		if st := l.p.Stats(); st.Fragments != 4 || st.Flows.Tracked != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// Headers that cannot be read do not pass, whatever the rules say.
func TestMalformed(t *testing.T) {
	tcp, udp, ping := pkt{kind: "tcp", src: 1, dst: 2, flags: "S"}, pkt{kind: "udp", src: 1, dst: 2}, pkt{kind: "icmp", src: 1, dst: 2}
	tcp6, udp6, ping6 := tcp, udp, ping
	tcp6.v6, udp6.v6, ping6.v6 = true, true, true
	first := func(x pkt) pkt { x.frag = "first"; return x }
	l := newLab(t, nil)
	send := func(name string, x pkt, change func(b []byte) []byte) {
		t.Helper()
		n := l.p.Stats().Malformed
		f := x.frame(t)
		g := frame.Make(change(f.Bytes()))
		g.Kind = f.Kind
		if v := l.p.Ingress().Process(&g, l.at); v != frame.Drop(frame.Policy) || l.p.Stats().Malformed != n+1 {
			t.Errorf("%s: %v", name, v)
		}
	}
	short := func(total int) func([]byte) []byte { // an IP packet of a length
		return func(b []byte) []byte {
			if b[14]>>4 == 4 {
				b[16], b[17] = 0, byte(total)
			} else {
				b[18], b[19] = 0, byte(total-40)
			}
			return b
		}
	}
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	send("Ethernet", tcp, cut(13))
	send("IPv4", tcp, cut(33))
	send("IPv4 version", tcp, set(14, 0x55))
	send("IPv4 length", tcp, cut(50))
	send("IPv6", tcp6, cut(53))
	send("IPv6 length", tcp6, cut(70))
	send("TCP", tcp, short(39))
	send("TCP, first fragment", first(tcp), short(39))
	send("TCP6", tcp6, short(59))
	send("UDP", udp, short(27))
	send("UDP6", udp6, short(47))
	send("ICMP", ping, short(27))
	send("ICMPv6", ping6, short(47))
	send("SCTP", pkt{kind: "sctp", src: 1, dst: 2}, short(31))
	send("fragment of TCP at 8", tcp, func(b []byte) []byte { b[20], b[21] = 0, 1; return b })
	send("fragment of TCP at 16", tcp, func(b []byte) []byte { b[20], b[21] = 0, 2; return b })
	send("mapped", tcp6, func(b []byte) []byte {
		copy(b[22:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
		return b
	})
	send("extension header", tcp6, func(b []byte) []byte { b[20], b[55] = 60, 200; return b })
	udp.vlans = 3
	send("three tags", udp, func(b []byte) []byte { return b })
	udp.vlans, udp.bare = 0, true
	send("bare", udp, set(0, 0x65))
	l.in(true, tcp)
	udp = pkt{kind: "udp", src: 1, dst: 2, frag: "later"}
	l.in(true, udp)
}
