package underlay

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Sockets that are none of ours, and control messages that others read and write.

func plainSocket(t *testing.T, network, local string) (*net.UDPConn, frame.Endpoint) {
	t.Helper()
	pc := check.Must(net.ListenPacket(network, local))(t)
	t.Cleanup(func() { pc.Close() })
	c := pc.(*net.UDPConn)
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c, endpoint(t, c.LocalAddr().(*net.UDPAddr).AddrPort())
}

func TestUDPToOrdinarySocket4(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		u := listen(t, "127.0.0.1:0", nil)
		c, e := plainSocket(t, "udp4", "127.0.0.2:0")
		p := ipv4.NewPacketConn(c)
		must(t, p.SetControlMessage(ipv4.FlagTTL|ipv4.FlagSrc|ipv4.FlagDst, true))
		send(t, u, frame.Datagram{Parts: [][]byte{{1, 2}, {3}}, To: []frame.Endpoint{e}, TOS: 0xfd, TTL: 9, DF: true})
		b := make([]byte, 100)
		n, cm, src, err := p.ReadFrom(b)
		must(t, err)
		from := src.(*net.UDPAddr).AddrPort()
		if n != 3 || b[2] != 3 || cm.TTL != 9 || !cm.Dst.Equal(net.IPv4(127, 0, 0, 2)) ||
			from.Addr().Unmap() != u.LocalAddr().Addr() || from.Port() < 49152 {
			t.Errorf("%x from %v, %v", b[:n], from, cm)
		}
		// Back, with what the other side chose.
		must(t, p.SetTTL(33))
		must(t, p.SetTOS(0x2e))
		check.Must(p.WriteTo([]byte("hi"), nil, net.UDPAddrFromAddrPort(u.LocalAddr())))(t)
		r := receive(t, u, 1)[0]
		want := frame.Outer{Src: e, Dst: endpoint(t, u.LocalAddr()), If: r.Outer.If, TOS: 0x2e, TTL: 33}
		if r.Payload != "hi" || r.Outer != want {
			t.Errorf("%+v, want %+v", r, want)
		}
	})
}

func TestUDPToOrdinarySocket6(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		u := listen(t, "[::1]:0", nil)
		c, e := plainSocket(t, "udp6", "[::1]:0")
		p := ipv6.NewPacketConn(c)
		must(t, p.SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagTrafficClass|ipv6.FlagDst, true))
		send(t, u, frame.Datagram{Parts: [][]byte{{1, 2}, {3}}, To: []frame.Endpoint{e}, TOS: 0xfd, TTL: 9, DF: true})
		b := make([]byte, 100)
		n, cm, src, err := p.ReadFrom(b)
		must(t, err)
		if n != 3 || cm.HopLimit != 9 || cm.TrafficClass != 0xfd || src.(*net.UDPAddr).Port < 49152 {
			t.Errorf("%x from %v, %v", b[:n], src, cm)
		}
		cm = &ipv6.ControlMessage{HopLimit: 33, TrafficClass: 0x2e}
		check.Must(p.WriteTo([]byte("hi"), cm, net.UDPAddrFromAddrPort(u.LocalAddr())))(t)
		r := receive(t, u, 1)[0]
		want := frame.Outer{Src: e, Dst: endpoint(t, u.LocalAddr()), If: r.Outer.If, TOS: 0x2e, TTL: 33}
		if r.Payload != "hi" || r.Outer != want {
			t.Errorf("%+v, want %+v", r, want)
		}
	})
}

// What arrived at a wildcard address tells which of our addresses it was for.
func TestUDPWildcardDestination(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		u := listen(t, "0.0.0.0:0", nil)
		c, _ := plainSocket(t, "udp4", "127.0.0.1:0")
		for _, a := range []string{"127.0.0.5", "127.0.0.6"} {
			ap := netip.AddrPortFrom(netip.MustParseAddr(a), u.LocalAddr().Port())
			check.Must(c.WriteToUDPAddrPort([]byte("x"), ap))(t)
			if r := receive(t, u, 1)[0]; r.Outer.Dst.AddrPort() != ap {
				t.Errorf("to %v, want %v", r.Outer.Dst, ap)
			}
		}
	})
}
