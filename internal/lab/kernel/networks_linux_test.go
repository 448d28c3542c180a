package kernel

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two networks of one VTEP with the same MACs and the same IP addresses in both stay
// apart: each guest of ours reaches the guest of its own network, and only that.
func TestTwoNetworksWithTheSameAddresses(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		n := netns.New(t)
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
		ours := newNode(t, a, fam.near, settings{})
		const macA, macB = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
		mac, _ := frame.ParseMAC(macA)
		far, _ := frame.ParseMAC(macB)
		ids := []frame.VNI{100, 200}
		var near, peers []*netns.Host
		for _, id := range ids {
			g, k := n.Host(fmt.Sprintf("g%d", id)), n.Host(fmt.Sprintf("k%d", id))
			g.Quiet()
			k.Quiet()
			ours.vsi(id, fam.far)
			ours.tap(id, g, g.Name, mac)
			g.Addr(g.Name, "192.168.7.1/24")
			dev := fmt.Sprintf("vx%d", id)
			b.VXLAN(dev, netns.VXLAN{ID: int(id), Local: fam.far, Remote: fam.near, Dev: "eth0"})
			b.IP("link", "set", dev, "netns", k.NS)
			k.IP("link", "set", dev, "name", "vx0", "address", macB)
			k.Up("vx0")
			k.Addr("vx0", "192.168.7.2/24")
			near, peers = append(near, g), append(peers, k)
		}
		a.Ready()
		b.Ready()
		echos := func() [2]int {
			return [2]int{peers[0].Nstat()["IcmpInEchos"], peers[1].Nstat()["IcmpInEchos"]}
		}
		before := echos()
		near[0].Ping("192.168.7.2", 5)
		near[1].Ping("192.168.7.2", 3)
		after := echos()
		check.True(t, after[0]-before[0] == 5 && after[1]-before[1] == 3,
			"echo requests at the peers: %v, then %v", before, after)
		dests := map[frame.Dest]bool{}
		for _, vsi := range ours.Switch().VSIs() {
			here, ok := vsi.FDB().Lookup(mac)
			there, ok2 := vsi.FDB().Lookup(far)
			check.True(t, ok && ok2 && ours.Switch().Name(here) == fmt.Sprintf("g%d", vsi.VNI()) && ours.Switch().Name(there) == fam.endpoint(),
				"VNI %d: %q and %q", vsi.VNI(), ours.Switch().Name(here), ours.Switch().Name(there))
			dests[here] = true
		}
		check.True(t, len(dests) == 2, "the guests' MAC is on one port in both networks: %v", dests)
		for _, s := range ours.Switch().Stats().VSIs {
			check.True(t, s.Drops.Total() == 0 && s.FDB.Moved == 0, "VNI %d: %+v", s.VNI, s)
		}
	})
}

// endpoint is what our switch calls the far VTEP.
func (fam family) endpoint() string {
	if fam.v6 {
		return "[" + fam.far + "]:4789"
	}
	return fam.far + ":4789"
}
