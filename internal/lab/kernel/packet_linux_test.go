package kernel

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

// A VTEP past the stack of its host, with an address that nobody else has, and the kernel's:
// guests ping each other and talk TCP both ways, in superframes where ours takes them, and
// every checksum on the wire is right. The kernel leaves the inner checksums of what it sends to a card that is not
// there (transmit offload on), or not.
func TestPacketUnderlay(t *testing.T) {
	for _, fam := range families {
		for _, offload := range []bool{true, false} {
			t.Run(fam.name+map[bool]string{true: "/offload", false: "/no offload"}[offload], func(t *testing.T) {
				n := netns.New(t)
				a, b := n.Host("a"), n.Host("b")
				n.Link(a, "", b, fam.far+fam.bits)
				a.Ready()
				b.Ready()
				ours := newNode(t, a, fam.near, settings{packet: &afpacket.Config{
					Device: "eth0", Prefix: netip.MustParsePrefix(fam.near + fam.bits), Checksum: underlay.ChecksumOn, NoOffload: !offload,
				}})
				ours.vsi(vni, fam.far)
				ours.tap(vni, a, "tap0", frame.MAC{})
				a.Addr("tap0", "192.168.7.1/24")
				b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: "192.168.7.2/24"})
				a.Ready()
				b.Ping("192.168.7.1", 2)
				a.Ping("192.168.7.2", 2)
				a.Run("ethtool", "-K", "eth0", "tx", "off", "gso", "on") // the kernel is the card
				c := b.Capture("eth0", "udp port 4789")
				a.Transfer(b, net.JoinHostPort("192.168.7.2", "0"), 1<<20)
				b.Transfer(a, net.JoinHostPort("192.168.7.1", "0"), 1<<20)
				seen := c.Stop()
				rows := netns.Fields(t, seen, "tcp", "udp.checksum", "udp.checksum.status", "tcp.checksum.status", "ip.checksum.status")
				for _, r := range rows {
					if r[0] != "0x0000" && r[1] != "1" || strings.Contains(r[2], "0") || strings.Contains(r[3], "0") {
						t.Fatalf("checksums %q of %d packets", r, len(rows))
					}
				}
				st := ours.u.(*afpacket.Underlay).Stats()
				check.True(t, len(rows) >= 100 && offload == (st.TxRuns > 0) && st.Lost() <= 3 && st.RxOverflow == 0,
					"%d packets, %+v", len(rows), st)

				// The unfinished ones, and superframes in a datagram: both are said to be so.
				b.Run("ethtool", "-K", "eth0", "tx", "on", "tso", "on", "gso", "on", "tx-udp_tnl-segmentation", "on", "tx-udp_tnl-csum-segmentation", "on")
				whole := a.Capture("tap0", "tcp and greater 3000")
				before := a.Nstat()
				b.Transfer(a, net.JoinHostPort("192.168.7.1", "0"), 1<<20)
				after := a.Nstat()
				check.True(t, len(whole.Stop()) != 0, "no superframe came to the TAP in one piece")
				check.Equal(t, "segments with a wrong checksum", after["TcpInCsumErrors"]-before["TcpInCsumErrors"], 0)
			})
		}
	}
}
