package evpn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Every leaf has an AS of its own, one of them an AS of four bytes, and the spine another: two of ours and one of FRR. All reach all,
// bridged and by the L3VNI, with the next hops of the leaves.
func TestExternal(t *testing.T) {
	t.Parallel()
	const spineAS, frrAS = 65100, 65003
	ases := [2]uint32{65001, 4200000002}
	n := netns.New(t)
	sw, spine, b, theirs := n.Switch("sw"), n.Host("spine"), n.Router("frr"), n.Host("theirs")
	n.Plug(spine, "192.0.2.9/24", sw)
	n.Plug(b, "192.0.2.3/24", sw)
	kernelLeaf(n, b, "192.0.2.3", theirs, "100", "500")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	theirs.IP("route", "add", "default", "via", "172.16.0.1")
	frr.Start(t, spine, frr.Daemon{Name: "zebra"}, spineConfig("192.0.2.9", ases[0], ases[1], frrAS))
	leaf := frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, leafConfig(frrAS, "192.0.2.3", "192.0.2.9", spineAS))
	p := newPair(t, n, sw, "192.0.2.%d/24", func(i int) Config { return Config{AS: ases[i], Peers: []Peer{peering("192.0.2.9", spineAS)}} })
	theirs.Ping("172.16.0.1", 1)
	spine.Until("flood lists", func() bool {
		return p.sites[0].floods(100) == 2 && p.sites[1].floods(100) == 2 && len(b.Peers("vx100", "00:00:00:00:00:00")) == 2
	})
	p.bridged[0].Until("bridged", func() bool {
		return pings(p.bridged[0], "172.16.0.12") && pings(p.bridged[0], "172.16.0.2") && pings(p.bridged[1], "172.16.0.2")
	})
	for i := range p.sites {
		p.routed[i].Ping(fmt.Sprintf("172.18.%d.1", i+1), 1)
	}
	for i, s := range p.sites {
		addr := fmt.Sprintf("192.0.2.%d", i+1)
		spine.Until("FRR to have the routes of "+addr, func() bool {
			mac := fmt.Sprintf("02:00:00:00:%02x:01", 10+i)
			return slices.Equal(b.Peers("vx100", mac), []string{addr}) && leaf.HasEVPN("[3]:[0]:[32]:["+addr+"]") &&
				leaf.HasEVPN(fmt.Sprintf("[5]:[0]:[24]:[172.18.%d.0]", i+1)) &&
				leaf.HasEVPN(fmt.Sprintf("[2]:[0]:[48]:[%s]:[32]:[172.16.0.%d]", mac, 11+i))
		})
		other := 2 - i
		spine.Until(addr+" to have the others' routes", func() bool {
			return s.routes("172.16.0.2/32") == 1 && s.routes(fmt.Sprintf("172.18.%d.0/24", other)) == 1 && s.routes(fmt.Sprintf("172.18.%d.2/32", other)) == 1
		})
	}
	check.Equal(t, "TTL, ours to ours", p.routed[0].PingTTL("172.18.2.2"), 62)
	check.Equal(t, "TTL, ours to FRR", p.routed[0].PingTTL("172.16.0.2"), 62)
	check.Equal(t, "TTL, FRR to ours", theirs.PingTTL("172.18.2.2"), 62)
	check.Equal(t, "TTL, bridged", p.bridged[1].PingTTL("172.16.0.2"), 64)
	for _, s := range p.sites {
		for _, x := range s.healthy("as-loop").Segments { // the spine says our own routes back
			if x.VNI == 100 && (x.VTEPs != 2 || x.Hosts == 0 || x.Remote == 0) {
				t.Errorf("%v: %+v", s.addr, x)
			}
		}
	}
}
