package kernel

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

// Over a veth the kernel leaves the inner checksum of what its own stack sends through a vxlan
// device to a network card that is not there, and superframes too (Linux 6.18). The host
// behind our TAP takes all of it: TCP both ways, datagrams alone, and datagrams of which the
// sender's kernel got 20 in one call, as they were sent.
func TestUnfinishedInnerChecksum(t *testing.T) {
	for _, x := range underlays {
		for _, csum := range []string{"udpcsum", "noudpcsum"} {
			t.Run(x.name()+"/"+csum, func(t *testing.T) {
				fam := x.fam
				n := netns.New(t)
				a, b := n.Host("a"), n.Host("b")
				s := settings{}
				if x.packet {
					n.Link(a, "", b, fam.far+fam.bits)
					s.packet = &afpacket.Config{Device: "eth0", Prefix: netip.MustParsePrefix(fam.near + fam.bits), ZeroChecksum6RX: true}
				} else {
					n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
					s.udp.ZeroChecksum6RX = true
				}
				a.Ready()
				b.Ready()
				ours := newNode(t, a, fam.near, s)
				ours.vsi(vni, fam.far)
				ours.tap(vni, a, "tap0", frame.MAC{})
				a.Addr("tap0", "192.168.7.1/24,fd07::1/64")
				if fam.v6 {
					csum = strings.Replace(csum, "udpcsum", "udp6zerocsumtx", 1)
					csum = map[string]string{"udp6zerocsumtx": "noudp6zerocsumtx", "noudp6zerocsumtx": "udp6zerocsumtx"}[csum]
				}
				b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64", Args: []string{csum, "udp6zerocsumrx"}, Keep: true})
				a.Ready()
				b.Ready()
				b.Ping("192.168.7.1", 1)
				b.Ping("fd07::1", 1)
				before := [2]map[string]int{a.Nstat(), b.Nstat()}
				whole := a.Capture("tap0", "inbound and greater 3000")
				b.Transfer(a, net.JoinHostPort("192.168.7.1", "0"), 1<<20)
				b.Transfer(a, net.JoinHostPort("fd07::1", "0"), 1<<20)
				check.True(t, len(whole.Stop()) != 0, "no superframe came to the TAP in one piece")
				a.Transfer(b, net.JoinHostPort("192.168.7.2", "0"), 1<<20)
				a.Transfer(b, net.JoinHostPort("fd07::2", "0"), 1<<20)
				for _, addr := range []string{"192.168.7.1", "fd07::1"} {
					datagrams(b, a, addr, 1000, 0)
					datagrams(b, a, addr, 1000, 20)
					datagrams(b, a, addr, 1382, 20)
				}
				after := [2]map[string]int{a.Nstat(), b.Nstat()}
				for i := range after {
					for _, c := range []string{"TcpInCsumErrors", "UdpInCsumErrors", "Udp6InCsumErrors"} {
						n := after[i][c] - before[i][c]
						check.True(t, n == 0, "host %d: %s rose by %d", i, c, n)
					}
				}
				p := ours.port("vtep")
				check.True(t, p.RxDrops.Total() == 0, "drops %v", p.RxDrops)
			})
		}
	}
}

// datagrams sends UDP three times: a datagram of size, or, for n above 0, a superframe of n such
// and a bit.
func datagrams(from, to *netns.Host, addr string, size, n int) {
	send := from.Datagrams(to, net.JoinHostPort(addr, "0"))
	for range 3 {
		if n > 0 {
			send(n*size+7, size)
		} else {
			send(size, 0)
		}
	}
}
