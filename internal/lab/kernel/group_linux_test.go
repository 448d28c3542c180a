package kernel

import (
	"bytes"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/underlay"
)

// A network goes from peers to a multicast group and back under traffic, on each node at another
// time: what is flooded arrives once at each of the others, since all have joined the group first.
func TestFloodListBecomesGroup(t *testing.T) {
	for _, fam := range []struct{ name, addr, bits, group string }{
		{"IPv4", "10.0.0.%d", "/24", "239.1.1.1"}, {"IPv6", "fd00::%d", "/64", "ff05::1:1"},
	} {
		t.Run(fam.name, func(t *testing.T) {
			n := netns.New(t)
			sw := n.Switch("sw")
			group := netip.MustParseAddr(fam.group)
			var hosts []*netns.Host
			var nodes []*ourNode
			var outs []*netns.Capture
			for i := 1; i <= 3; i++ {
				h := n.Host(fmt.Sprint("h", i))
				n.Plug(h, fmt.Sprintf(fam.addr, i)+fam.bits, sw)
				h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1") // of the TAP
				h.Ready()
				x := newNode(t, h, fmt.Sprintf(fam.addr, i), settings{udp: underlay.UDPConfig{Queues: 2}})
				x.vsi(vni)
				x.tap(vni, h, "tap0", frame.MAC{})
				check.OK(t, x.u.(*underlay.UDP).Join(group))
				hosts, nodes = append(hosts, h), append(nodes, x)
				outs = append(outs, h.Capture("tap0", "ether proto 0x88b5"))
			}
			set := func(i int, toGroup bool) {
				t.Helper()
				var to []netip.AddrPort
				for k := 1; k <= 3; k++ { // its own address is left out
					to = append(to, netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(fam.addr, k)), 0))
				}
				if toGroup {
					to = []netip.AddrPort{netip.AddrPortFrom(group, 0)}
				}
				check.OK(t, nodes[i].v.SetFlood(vni, to...))
			}
			for i := range nodes {
				set(i, false)
			}
			var stop atomic.Bool
			flipped := make(chan int)
			go func() {
				k := 0
				for ; !stop.Load(); k++ {
					set(k%3, k/3%2 == 0)
					time.Sleep(2 * time.Millisecond)
				}
				flipped <- k
			}()
			const frames = 300
			text := func(from, i int) []byte { return fmt.Appendf(nil, "from %d frame %d.", from, i) }
			for i := range frames {
				for from, h := range hosts {
					h.Inject("tap0", append(ethernet("ff:ff:ff:ff:ff:ff", fmt.Sprintf("02:00:00:00:cc:%02x", from), 0x88b5), text(from, i)...))
				}
			}
			stop.Store(true)
			k := <-flipped
			check.True(t, k >= 20, "%d changes", k)
			for to, c := range outs {
				for from := range hosts {
					if from != to {
						c.Want(frames, func(p netns.Packet) bool { return !p.Out && bytes.Contains(p.Data, fmt.Appendf(nil, "from %d ", from)) })
					}
				}
			}
			time.Sleep(50 * time.Millisecond)
			for to, c := range outs {
				seen := map[string]int{}
				for _, p := range c.Stop() {
					if i := bytes.Index(p.Data, []byte("from ")); i > 0 && !p.Out {
						seen[string(p.Data[i:bytes.IndexByte(p.Data, '.')+1])]++
					}
				}
				for from := range hosts {
					for i := range frames {
						want, got := map[bool]int{true: 1}[from != to], seen[string(text(from, i))]
						check.True(t, got == want, "host %d got %d of frame %d of host %d, want %d", to, got, i, from, want)
					}
				}
			}
			for i, x := range nodes {
				st := x.u.(*underlay.UDP).Stats()
				check.True(t, st.Lost() == 0 && st.RxOverflow == 0, "node %d: %+v", i, st)
			}
		})
	}
}
