package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TestJoined: segments that come one by one, as from a network card, reach a guest by a veth port joined; superframes, as over
// veth, as they are. Short segments do not overtake long ones.
func TestJoined(t *testing.T) {
	for _, superframes := range []bool{false, true} {
		n := netns.New(t)
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
		if !superframes {
			for _, h := range []*netns.Host{a, b} {
				h.Run("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
			}
		}
		g1, g2 := n.Host("g1"), n.Host("g2")
		s, r := newSiteOf(t, a, g1, 1, 2), newSiteOf(t, b, g2, 2, 1)
		g1.Ping(guest(2), 20)
		s.flows(2)
		r.flows(2)
		sent := func(args ...string) func(name string) int {
			before := g2.Nstat()
			t.Logf("superframes %v, %v: %v", superframes, args, g1.IPerf(g2, guest(2), args...))
			now := g2.Nstat()
			return func(name string) int { return now[name] - before[name] }
		}
		got := sent("-n", "200M")
		if bytes, packets := got("IpExtInOctets"), got("IpInReceives"); bytes < 190<<20 || bytes/packets < 5000 || got("TcpInCsumErrors") != 0 {
			t.Errorf("superframes %v: %d bytes in %d packets, %d wrong checksums", superframes, bytes, packets, got("TcpInCsumErrors"))
		}
		got = sent("-n", "50M", "-N", "-l", "5000")                                             // three long segments and one of 806 bytes
		if early, packets := got("TcpExtTCPOFOQueue"), got("IpInReceives"); early > packets/5 { // some, after a loss
			t.Errorf("superframes %v: %d of %d packets came before others", superframes, early, packets)
		}
	}
}
