package evpn

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A site is a node of ours in a host of the lab, with segment 100 bridged, 200 routed, and VRF red with L3VNI 500.
type site struct {
	t       *testing.T
	host    *netns.Host
	addr    netip.Addr
	node    *node.Node
	speaker *Speaker
	taps    int
}

func newSite(t *testing.T, h *netns.Host, addr string, c Config) *site {
	s := &site{t: t, host: h, addr: netip.MustParseAddr(addr)}
	last := s.addr.As4()[3]
	s.node = check.Must(node.New(&node.Options{Owners: []string{"evpn"}}))(t)
	h.Do(func() {
		check.Must(s.node.Tunnel("vx", node.Tunnel{Local: s.addr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
	})
	for _, vni := range []frame.VNI{100, 200, 500} {
		seg := &node.Segment{Tunnels: []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}}
		if vni != 500 {
			seg.Neighbours = &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}
		}
		v := check.Must(s.node.Segment(vni, seg))(t)
		switch vni {
		case 200:
			check.OK(t, v.Gateway("red", node.Gateway{Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 18, last, 1}), 24)}}))
		case 500:
			check.OK(t, v.Gateway("red", l3.InterfaceConfig{MAC: frame.MAC{2, 0, 0, 0, 5, last}}))
		}
	}
	c.AS, c.RouterID, c.In = 65000, s.addr, h.Do
	c.Listen = []netip.AddrPort{netip.AddrPortFrom(s.addr, 179)}
	s.speaker = check.Must(New(s.node, &c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { check.OK(t, s.node.Run(ctx)) })
	running.Go(func() { check.OK(t, s.speaker.Run(ctx)) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		s.node.Close()
	})
	return s
}

// plug gives a host of the lab a TAP in a segment.
func (s *site) plug(h *netns.Host, vni frame.VNI, addr string, mac frame.MAC) {
	s.t.Helper()
	s.taps++
	name := fmt.Sprintf("tap%d", s.taps)
	tap := netns.Open(s.t, h, func() (*port.Device, error) { return port.OpenTAP(name, &port.DeviceConfig{MAC: mac}) })
	v := check.Must(s.node.Segment(vni, nil))(s.t)
	check.OK(s.t, v.Add(tap, nil))
	h.Addr(name, addr)
	h.Up(name)
}

// aLab is a site, a leaf of FRR with host theirs (172.16.0.2 in segment 100, routed by 172.16.0.1), and hosts of ours
// beside it: bridged (172.16.0.11) and routed (172.18.1.2).
type aLab struct {
	*netns.Net
	us                      *site
	leaf                    *netns.Host
	frr                     *frr.FRR
	bgpd                    frr.Daemon
	theirs, bridged, routed *netns.Host
}

const (
	oursAddr   = "192.0.2.1"
	theirsAddr = "192.0.2.2"
)

var macOf = map[string]frame.MAC{"bridged": {2, 0, 0, 0, 1, 1}, "routed": {2, 0, 0, 0, 1, 2}}

func newLab(t *testing.T) *aLab {
	n := netns.New(t)
	l := &aLab{Net: n, leaf: n.Router("frr"), theirs: n.Host("theirs"), bridged: n.Host("bridged"), routed: n.Host("routed")}
	us, b := n.Host("us"), l.leaf
	n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
	_, port := n.Link(l.theirs, "172.16.0.2/24", b, "")
	for _, vni := range []string{"100", "500"} {
		b.IP("link", "add", "br"+vni, "type", "bridge")
		b.IP("link", "add", "vx"+vni, "type", "vxlan", "id", vni, "local", theirsAddr, "dstport", "4789", "nolearning")
		b.IP("link", "set", "vx"+vni, "master", "br"+vni)
		b.IP("link", "set", "vx"+vni, "type", "bridge_slave", "neigh_suppress", "on", "learning", "off")
		b.Up("vx" + vni)
		b.Up("br" + vni)
	}
	b.IP("link", "set", port, "master", "br100")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	l.theirs.IP("route", "add", "default", "via", "172.16.0.1")
	us.Ready()
	l.bgpd = frr.Daemon{Name: "bgpd", Config: fmt.Sprintf(`router bgp 65000
 bgp router-id %s
 no bgp default ipv4-unicast
 neighbor %s remote-as 65000
 neighbor %[2]s timers 1 3
 address-family ipv4 unicast
  redistribute connected
 address-family l2vpn evpn
  neighbor %[2]s activate
  advertise-all-vni
  advertise ipv4 unicast
`, theirsAddr, oursAddr)}
	l.frr = frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, l.bgpd)
	l.theirs.Ping("172.16.0.1", 1)
	l.us = newSite(t, us, oursAddr, Config{Peers: []Peer{{Addr: netip.MustParseAddr(theirsAddr), AS: 65000, Retry: 100 * time.Millisecond, Hold: 3 * time.Second}}})
	l.us.plug(l.bridged, 100, "172.16.0.11/24", macOf["bridged"])
	l.us.plug(l.routed, 200, "172.18.1.2/24", macOf["routed"])
	l.routed.IP("route", "add", "default", "via", "172.18.1.1")
	return l
}

// floods and routes return how many VTEPs are in the flood list of a segment, and how many next hops a prefix of VRF red has.
func (s *site) floods(vni frame.VNI) int { return len(s.node.Tunnels()["vx"].Flood(vni)) }

func (s *site) routes(prefix string) int {
	r, _ := s.node.Gateway().VRF("red").Route(netip.MustParsePrefix(prefix))
	return len(r.Via)
}
