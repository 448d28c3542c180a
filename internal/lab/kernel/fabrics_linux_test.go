package kernel

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// One node of ours in two fabrics of the kernel's, each of two hosts: one over IPv4 on port
// 4789, the other over IPv6 on port 8472.
//
//	k0, k1 -- IPv4, 4789 --+
//	                       u -- tap0
//	k2, k3 -- IPv6, 8472 --+
func TestTwoFabrics(t *testing.T) {
	type hub struct{ a, b bool }
	for _, c := range []struct {
		name  string
		a, b  vswitch.AttachConfig
		full  hub     // the kernel's hosts of a fabric list each other, unless ours is their hub
		reach [][]int // from host, 4 is ours: whom a flooded frame reaches
		pings [][2]int
		drop  string // of known unicast from k0 to k2
	}{
		{"one group", vswitch.AttachConfig{}, vswitch.AttachConfig{}, hub{true, true},
			[][]int{{1, 4}, {0, 4}, {3, 4}, {2, 4}, {0, 1, 2, 3}}, [][2]int{{0, 4}, {2, 4}, {0, 1}, {2, 3}}, "split-horizon"},
		{"two groups", vswitch.AttachConfig{}, vswitch.AttachConfig{Group: 9}, hub{true, true},
			[][]int{{1, 2, 3, 4}, {0, 2, 3, 4}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, [][2]int{{0, 2}, {1, 3}, {3, 0}, {0, 4}, {2, 4}}, ""},
		{"a hub in each", vswitch.AttachConfig{Hub: true}, vswitch.AttachConfig{Hub: true}, hub{false, false},
			[][]int{{1, 2, 3, 4}, {0, 2, 3, 4}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, [][2]int{{0, 1}, {2, 3}, {0, 2}, {3, 1}, {0, 4}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t)
			sw := n.Switch("sw")
			u := n.Host("u")
			v4, v6 := families[0].addresses(3), families[1].addresses(3)
			n.Plug(u, v4[0]+"/24,"+v6[0]+"/64", sw)
			var ss []*site
			for i := range 4 {
				fabric, at, port, bits, full := v4, 0, 4789, "/24", c.full.a
				if i >= 2 {
					fabric, at, port, bits, full = v6, 2, 8472, "/64", c.full.b
				}
				s := &site{host: n.Host(fmt.Sprintf("k%d", i)), addr: fabric[1+i-at], dev: "vx0"}
				n.Plug(s.host, s.addr+bits, sw)
				s.host.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
				flood := []string{fabric[0]}
				if full {
					flood = append(flood, fabric[1+(1-(i-at))])
				}
				s.host.VXLAN("vx0", netns.VXLAN{ID: vni, Local: s.addr, Dev: "eth0", Flood: flood, Port: port})
				ss = append(ss, s)
			}
			u.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
			ours := newNode(t, u, v4[0], settings{})
			_, err := ours.Tunnel("other", node.Tunnel{Local: netip.MustParseAddr(v6[0]), Config: vtep.Config{Port: 8472}})
			ours.must(err)
			_, err = ours.Segment(vni, &node.Segment{Tunnels: []node.SegmentTunnel{
				{Tunnel: "vtep", Flood: addrs(v4[1:]), AttachConfig: c.a}, {Tunnel: "other", Flood: addrs(v6[1:]), AttachConfig: c.b},
			}})
			ours.must(err)
			ours.tap(vni, u, "tap0", frame.MAC{})
			ss = append(ss, &site{host: u, dev: "tap0"})
			for i, s := range ss {
				s.host.Addr(s.dev, fmt.Sprintf("192.168.7.%d/24", i+1))
				s.host.Ready()
				s.out = s.host.Capture(s.dev, "ether proto 0x88b5")
			}
			for i := range 4 {
				u.Ping([]string{v4[1], v4[2], v6[1], v6[2]}[i], 1)
			}

			// Each flooded frame arrives once where it should.
			for from, s := range ss {
				for number, dst := range []string{"ff:ff:ff:ff:ff:ff", "01:00:5e:01:02:03", "02:00:00:00:dd:01"} {
					text := func(i int) string { return fmt.Sprintf("from %d flooded %d part %d.", from, number, i) }
					src := fmt.Sprintf("02:00:00:00:ee:%02x", from)
					for i := range 3 {
						s.host.Inject(s.dev, append(ethernet(dst, src, 0x88b5), text(i)...))
						for _, to := range c.reach[from] {
							ss[to].out.Want(1, func(p netns.Packet) bool { return !p.Out && bytes.Contains(p.Data, []byte(text(i))) })
						}
					}
					for to, x := range ss {
						want := 0
						for _, k := range c.reach[from] {
							if k == to {
								want = 1
							}
						}
						got := count(x.out, false, text(0))
						check.True(t, got == want, "from %d to %s: host %d got %d, want %d", from, dst, to, got, want)
					}
				}
			}
			for _, p := range c.pings {
				ss[p[0]].host.Ping(fmt.Sprintf("192.168.7.%d", p[1]+1), 2)
			}
			if c.drop != "" {
				before := ours.port("vtep").RxDrops[frame.SplitHorizon]
				ss[0].host.Inject("vx0", append(ethernet("02:00:00:00:ee:02", "02:00:00:00:ee:00", 0x88b5), "known"...))
				u.Until("the frame is dropped", func() bool { return ours.port("vtep").RxDrops[frame.SplitHorizon] > before })
			}
		})
	}
}
