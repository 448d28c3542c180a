package afpacket

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/vtep"
)

// While a VTEP goes to and fro between two packet underlays, its Readers and Writers stay as they
// are: at each address, in turn, a host that knows neither asks who has it, is answered, and reaches
// it; what is sent comes from there. It stays in its group, and nobody answers for the other address.
func TestSwap(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		cfg, b := &Config{Queues: 2}, v.udp(v.B, 2, nil)
		group := netip.MustParseAddr(map[bool]string{false: "239.1.1.1", true: "ff05::1"}[v.IP6])
		tunnel, err := vtep.New(nil, v.packet(cfg))
		must(t, err)
		must(t, tunnel.Control().Open(7))
		must(t, tunnel.SetFlood(7, netip.AddrPortFrom(group, 0)))
		must(t, b.Join(group))
		num, err := tunnel.AddPeer(b.LocalAddr())
		must(t, err)
		w, f := tunnel.Writer(0), frame.Make(make([]byte, 60))
		var wg sync.WaitGroup
		var at [3]atomic.Uint64 // address 1, address 3, the group
		for _, r := range tunnel.Readers() {
			underlaytest.Reading(t, &wg, r, func(o *frame.Outer) {
				for i, a := range []netip.Addr{v.At(1, 0).Addr(), v.At(3, 0).Addr(), group} {
					if o.Dst.AddrPort().Addr() == a {
						at[i].Add(1)
						return
					}
				}
				t.Errorf("to %v", o.Dst)
			})
		}
		var from atomic.Pointer[netip.Addr]
		for _, r := range b.Readers() {
			underlaytest.Reading(t, &wg, r, func(o *frame.Outer) { a := o.Src.AddrPort().Addr(); from.Store(&a) })
		}
		files := 0
		for round := range 6 {
			n := []int{1, 3}[round%2]
			if round > 0 {
				must(t, tunnel.SetUnderlay(v.packetAt(v.A, n, cfg)))
			}
			here, there := &at[round%2], at[1-round%2].Load()
			was, all := here.Load(), at[2].Load()
			fake.Until(t, "datagrams to it", func() bool {
				send(t, b, to("x", 0, v.End(n)), to("to all", 0, endpoint(t, netip.AddrPortFrom(group, 4789))))
				return here.Load() > was && at[2].Load() > all
			})
			fake.Until(t, "datagrams from it", func() bool {
				must(t, w.Write([]frame.Out{{F: &f, Peer: num, Tag: 7}}))
				a := from.Load()
				return a != nil && *a == v.At(n, 0).Addr()
			})
			other := v.At([]int{3, 1}[round%2], 0).Addr()
			neigh := func(a netip.Addr) string { return v.B.IP("neigh", "show", "to", a.String(), "dev", "eth0") }
			if !strings.Contains(neigh(v.At(n, 0).Addr()), v.A.MAC("eth0")) {
				t.Errorf("of %v is known: %q", v.At(n, 0).Addr(), neigh(v.At(n, 0).Addr()))
			}
			v.B.IP("neigh", "flush", "to", other.String(), "dev", "eth0")
			send(t, b, to("nobody", 0, v.End([]int{3, 1}[round%2])))
			if s := neigh(other); strings.Contains(s, "lladdr") {
				t.Errorf("somebody answers for %v: %q", other, s)
			}
			if got := at[1-round%2].Load(); got != there {
				t.Errorf("round %d: %d datagrams to the other address", round, got-there)
			}
			switch n := underlaytest.OpenFiles(t); round {
			case 1:
				files = n
			case 5:
				if n != files {
					t.Errorf("%d descriptors, there were %d", n, files)
				}
			}
		}
		tunnel.Close()
		b.Close()
		wg.Wait()
	})
}
