package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
)

// A VTEP on the portable underlay and the kernel's, which flood to each other or to a group: hosts ping, with packets
// as long as fit, over IPv4 and IPv6, and talk TCP both ways.
func TestPortableUnderlay(t *testing.T) {
	groups := map[string]string{"IPv4": "239.1.1.1", "IPv6": "ff05::1:1"}
	for _, fam := range families {
		for _, group := range []string{"", groups[fam.name]} {
			t.Run(fam.name+map[bool]string{true: "/group"}[group != ""], func(t *testing.T) {
				n := netns.New(t)
				a, b := n.Host("a"), n.Host("b")
				n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
				a.Ready()
				b.Ready()
				ours := newNode(t, a, fam.near, settings{portable: true})
				u := ours.u.(*underlay.Portable)
				kernel, flood := netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"}, fam.far
				if group != "" {
					var err error
					a.Do(func() { err = u.Join(netip.MustParseAddr(group)) })
					check.OK(t, err)
					kernel.Group, kernel.Remote, flood = group, "", group
				}
				ours.vsi(vni, flood)
				mtu := ours.v.MTU(0) - 14
				ours.tapMTU(vni, a, "tap0", frame.MAC{}, mtu)
				a.Addr("tap0", "192.168.7.1/24,fd07::1/64")
				b.VXLAN("vx0", kernel)
				a.Ready()
				b.Ready()
				wire := b.Capture("eth0", "udp dst port 4789 and src host "+fam.near)
				b.Ping("192.168.7.1", 2)
				a.Ping("192.168.7.2", 2)
				b.Ping("fd07::1", 2)
				a.Ping("fd07::2", 2)
				a.Run("ping", "-c", "1", "-W", "5", "-s", fmt.Sprint(mtu-28), "-M", "do", "192.168.7.2")
				a.Run("ping", "-c", "1", "-W", "5", "-s", fmt.Sprint(mtu-48), "-M", "do", "fd07::2")
				a.Transfer(b, net.JoinHostPort("192.168.7.2", "0"), 1<<20)
				b.Transfer(a, net.JoinHostPort("192.168.7.1", "0"), 1<<20)
				ports := map[string]bool{}
				for _, r := range netns.Fields(t, wire.Stop(), "udp.port == 4789", "udp.srcport") {
					ports[r[0]] = true
				}
				if st := u.Stats(); len(ports) < 2 || st.Lost() > 3 || st.RxTruncated != 0 {
					t.Errorf("%d source ports, %+v", len(ports), st)
				}
			})
		}
	}
}
