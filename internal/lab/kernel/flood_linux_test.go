package kernel

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// site is one host of a mesh.
type site struct {
	host *netns.Host
	addr string
	dev  string // vx0 or tap0
	out  *netns.Capture
	wire *netns.Capture
}

// addresses returns n addresses of a family, for hosts of one link.
func (fam family) addresses(n int) (as []string) {
	for i := range n {
		as = append(as, map[bool]string{false: "10.0.0.", true: "fd00::"}[fam.v6]+fmt.Sprint(i+1))
	}
	return as
}

// newSites joins hosts to one underlay. Each has, by its letter in kinds, k a vxlan
// device of the kernel or u our VTEP; h is ours as a hub. peers says who is in whose
// flood list.
func newSites(t *testing.T, fam family, kinds string, peers [][]int) []*site {
	t.Helper()
	n := netns.New(t)
	sw := n.Switch("sw")
	addrs := fam.addresses(len(kinds))
	var ss []*site
	for i, kind := range kinds {
		s := &site{host: n.Host(fmt.Sprintf("%c%d", kind, i)), addr: addrs[i], dev: "vx0"}
		n.Plug(s.host, addrs[i]+fam.bits, sw)
		s.host.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
		var flood []string
		for _, k := range peers[i] {
			flood = append(flood, addrs[k])
		}
		if kind == 'k' {
			s.host.VXLAN("vx0", netns.VXLAN{ID: vni, Local: s.addr, Dev: "eth0", Flood: flood})
		} else {
			s.dev = "tap0"
			n := newNode(t, s.host, s.addr, settings{})
			n.vsiWith(vni, vswitch.VSIConfig{}, vswitch.AttachConfig{Hub: kind == 'h'}, flood...)
			n.tap(vni, s.host, "tap0", frame.MAC{})
		}
		ss = append(ss, s)
	}
	for _, s := range ss {
		s.host.Ready()
		s.out = s.host.Capture(s.dev, "ether proto 0x88b5")
		s.wire = s.host.Capture("eth0", "udp dst port 4789")
	}
	// The neighbours are found before anything is counted: the first packets to a peer
	// wait for that in a short queue.
	for i, s := range ss {
		for _, k := range peers[i] {
			s.host.Ping(addrs[k], 1)
		}
	}
	return ss
}

// sends counts the packets that match.
func count(c *netns.Capture, out bool, text string) (n int) {
	for _, p := range c.Seen() {
		if p.Out == out && bytes.Contains(p.Data, []byte(text)) {
			n++
		}
	}
	return n
}

// Broadcast, multicast and unknown unicast reach each host that they should exactly
// once; none comes back, and none goes from tunnel to tunnel unless that is a hub's.
func TestFloodExactlyOnce(t *testing.T) {
	mesh := [][]int{{1, 2}, {0, 2}, {0, 1}}
	star := [][]int{{1}, {0, 2}, {1}} // the middle knows both, the ends only the middle
	for _, c := range []struct {
		name, kinds string
		peers       [][]int
		reach       [][]int // from host: whom a flooded frame reaches
		sent        [][]int // from host: copies on the wire, by host
	}{
		{"mesh of the kernel", "kkk", mesh, mesh, [][]int{{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}},
		{"mesh with ours", "ukk", mesh, mesh, [][]int{{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}},
		{"mesh of ours", "uuu", mesh, mesh, [][]int{{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}},
		{"star, the kernel in the middle", "kkk", star, star, [][]int{{1, 0, 0}, {0, 2, 0}, {0, 0, 1}}},
		{"star, ours in the middle", "kuk", star, star, [][]int{{1, 0, 0}, {0, 2, 0}, {0, 0, 1}}},
		{"star, ours in the middle as a hub", "khk", star, mesh, [][]int{{1, 1, 0}, {0, 2, 0}, {0, 1, 1}}},
	} {
		for _, fam := range families {
			t.Run(c.name+"/"+fam.name, func(t *testing.T) {
				ss := newSites(t, fam, c.kinds, c.peers)
				number := 0
				for from, s := range ss {
					for _, dst := range []string{"ff:ff:ff:ff:ff:ff", "01:00:5e:01:02:03", "02:00:00:00:dd:01"} {
						number++
						text := func(i int) string { return fmt.Sprintf("flooded %d part %d.", number, i) }
						src := fmt.Sprintf("02:00:00:00:ee:%02x", from)
						// Three: when the last has arrived everywhere, no copy of the first is on its way.
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
							got = count(x.wire, true, text(0))
							check.True(t, got == c.sent[from][to],
								"from %d to %s: host %d sent %d, want %d", from, dst, to, got, c.sent[from][to])
						}
					}
				}
			})
		}
	}
}
