package kernel

import (
	"net"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Over a veth the kernel leaves the inner checksum of what its own stack sends through
// a vxlan device to a network card that is not there, unless transmit offload is off:
// then the host behind our TAP takes the packet, else it counts it as corrupt. So it is
// on Linux 6.18, and this is why netns.Host.VXLAN turns the offload off.
func TestUnfinishedInnerChecksum(t *testing.T) {
	fam := families[0]
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
	ours := newNode(t, a, fam.near, settings{})
	ours.tap(ours.vsi(vni, nil, fam.far), a, "tap0", frame.MAC{})
	a.Addr("tap0", "192.168.7.1/24")
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: "192.168.7.2/24"})
	a.Ready()
	b.Ready()
	b.Ping("192.168.7.1", 1)
	for _, offload := range []string{"off", "on"} {
		b.Run("ethtool", "-K", "eth0", "tx", offload)
		before := a.Nstat()
		rose := func(name string) int { return a.Nstat()[name] - before[name] }
		b.Do(func() {
			c, err := net.Dial("udp4", "192.168.7.1:7000")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
		})
		// Nobody listens: a datagram that is right counts under NoPorts.
		a.Until("the datagram is counted", func() bool { return rose("UdpInCsumErrors")+rose("UdpNoPorts") > 0 })
		if got, want := rose("UdpInCsumErrors"), map[string]int{"off": 0, "on": 1}[offload]; got != want {
			t.Errorf("offload %s: %d datagrams with a wrong checksum, want %d", offload, got, want)
		}
	}
}
