package evpn

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A site is a node of ours in a host of the lab, with segments 100 and 200, and VRF red.
type site struct {
	t       *testing.T
	host    *netns.Host
	addr    netip.Addr
	node    *node.Node
	speaker *Speaker
	taps    int
}

// gateways are those of a site whose address ends in last: segment 100 is bridged, 200 routed, and the L3VNI is 500.
func gateways(last byte) map[frame.VNI]node.Gateway {
	return map[frame.VNI]node.Gateway{
		200: {Addresses: prefixes(fmt.Sprintf("172.18.%d.1/24", last), fmt.Sprintf("2001:db8:18:%d::1/64", last))},
		500: {MAC: frame.MAC{2, 0, 0, 0, 5, last}},
	}
}

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, p := range list {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

func newSite(t *testing.T, h *netns.Host, addr string, c Config) *site {
	a := netip.MustParseAddr(addr).AsSlice()
	return newSiteWith(t, h, addr, c, gateways(a[len(a)-1]))
}

// newSiteWith makes a site with other gateways. The router ID is 192.0.2.N, where N ends the address, and the AS is 65000, unless c says else.
func newSiteWith(t *testing.T, h *netns.Host, addr string, c Config, gws map[frame.VNI]node.Gateway) *site {
	t.Helper()
	s := &site{t: t, host: h, addr: netip.MustParseAddr(addr)}
	s.node = check.Must(node.New(&node.Options{Owners: []string{"evpn"}}))(t)
	h.Do(func() {
		check.Must(s.node.Tunnel("vx", node.Tunnel{Local: s.addr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
	})
	for _, vni := range []frame.VNI{100, 200, 500} {
		gw, routed := gws[vni]
		if vni == 500 && !routed {
			continue
		}
		seg := &node.Segment{Tunnels: []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}}
		if vni != 500 {
			seg.Neighbours = &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}
		}
		v := check.Must(s.node.Segment(vni, seg))(t)
		if routed {
			check.OK(t, v.Gateway("red", gw))
		}
	}
	last := s.addr.AsSlice()
	if c.AS == 0 {
		c.AS = 65000
	}
	c.RouterID, c.In = netip.AddrFrom4([4]byte{192, 0, 2, last[len(last)-1]}), h.Do
	c.Listen = append(c.Listen, netip.AddrPortFrom(s.addr, 179))
	s.speaker = check.Must(New(s.node, &c))(t)
	t.Cleanup(func() { s.node.Close() })
	check.Run(t, s.node.Run, s.speaker.Run)
	return s
}

// tell has sites log all that they know if the test fails, before anything that is there now is taken away.
func tell(t *testing.T, sites ...*site) {
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range sites {
				s.tell()
			}
		}
	})
}

// tell logs the sessions of a site, all routes, and what is here.
func (s *site) tell() {
	st := s.speaker.Status()
	s.t.Logf("%v: left out %v, malformed %v", s.addr, st.LeftOut, st.Malformed)
	for _, p := range st.Peers {
		s.t.Logf("%v: peer %+v", s.addr, p)
	}
	for r := range s.speaker.Routes() {
		s.t.Logf("%v: route %+v", s.addr, r)
	}
	for e := range s.node.Switch().State() {
		if e.Kind == frame.EventMACLearned || e.Kind == frame.EventNeighbourLearned {
			s.t.Logf("%v: %v vni %v mac %v ip %v on %s", s.addr, e.Kind, e.VNI, e.MAC, e.IP, e.Name)
		}
	}
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

func newLab(t *testing.T, more ...Peer) *aLab {
	n := netns.New(t)
	l := &aLab{Net: n, leaf: n.Router("frr"), theirs: n.Host("theirs"), bridged: n.Host("bridged"), routed: n.Host("routed")}
	us, b := n.Host("us"), l.leaf
	n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
	kernelLeaf(n, b, theirsAddr, l.theirs, "100", "500")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	l.theirs.IP("route", "add", "default", "via", "172.16.0.1")
	us.Ready()
	l.bgpd = leafConfig(65000, theirsAddr, oursAddr, 65000, " exit-address-family", " neighbor "+oursAddr+" timers 1 3")
	l.frr = frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, l.bgpd)
	l.theirs.Ping("172.16.0.1", 1)
	p := peering(theirsAddr, 65000)
	p.Hold = 3 * time.Second
	l.us = newSite(t, us, oursAddr, Config{Peers: append(more, p)})
	l.us.plug(l.bridged, 100, "172.16.0.11/24", macOf["bridged"])
	l.us.plug(l.routed, 200, "172.18.1.2/24", macOf["routed"])
	l.routed.IP("route", "add", "default", "via", "172.18.1.1")
	tell(t, l.us)
	return l
}

// kernelLeaf gives a host that FRR will run in a bridge and a vxlan device for each VNI, and joins theirs, 172.16.0.2, to the first.
func kernelLeaf(n *netns.Net, b *netns.Host, vtep string, theirs *netns.Host, vnis ...string) {
	_, port := n.Link(theirs, "172.16.0.2/24", b, "")
	for _, vni := range vnis {
		b.IP("link", "add", "br"+vni, "type", "bridge")
		b.IP("link", "add", "vx"+vni, "type", "vxlan", "id", vni, "local", vtep, "dstport", "4789", "nolearning")
		b.IP("link", "set", "vx"+vni, "master", "br"+vni)
		b.IP("link", "set", "vx"+vni, "type", "bridge_slave", "neigh_suppress", "on", "learning", "off")
		b.Up("vx" + vni)
		b.Up("br" + vni)
	}
	b.Join(port, "br"+vnis[0])
}

// leafConfig makes bgpd that of a leaf with a session to a peer; lines go on with the family of EVPN.
func leafConfig(as uint32, id, peer string, peerAS uint32, lines ...string) frr.Daemon {
	return frr.Daemon{Name: "bgpd", Config: fmt.Sprintf(`router bgp %d
 bgp router-id %s
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 neighbor %s remote-as %d
 address-family ipv4 unicast
  redistribute connected
 address-family l2vpn evpn
  neighbor %[3]s activate
  advertise-all-vni
  advertise ipv4 unicast
%[5]s
`, as, id, peer, peerAS, strings.Join(lines, "\n"))}
}

// peering is a session with a peer that is tried again soon.
func peering(addr string, as uint32) Peer {
	return Peer{Addr: netip.MustParseAddr(addr), AS: RemoteAS(as), Retry: 100 * time.Millisecond, Hold: 9 * time.Second}
}

// floods and routes return how many VTEPs are in the flood list of a segment, and how many next hops a prefix of VRF red has.
func (s *site) floods(vni frame.VNI) int { return len(s.node.Tunnels()["vx"].Flood(vni)) }

func (s *site) routes(prefix string) int {
	r, _ := s.node.Gateway().VRF("red").Route(netip.MustParsePrefix(prefix))
	return len(r.Via)
}

// forget has the switch forget the hosts of a segment.
func (s *site) forget(vni frame.VNI) {
	for _, v := range s.node.Switch().VSIs() {
		if v.VNI() == vni {
			v.Flush()
		}
	}
}

// macIn returns the MAC of the host of site n that is bridged (1) or routed (2).
func macIn(n, which int) frame.MAC { return frame.MAC{2, 0, 0, 0, byte(n + 9), byte(which)} }

// hosts gives the site 192.0.2.N a host in segment 100, 172.16.0.(10+N), and one in segment 200, 172.18.N.2.
func (s *site) hosts(n *netns.Net) (bridged, routed *netns.Host) {
	s.t.Helper()
	a := s.addr.AsSlice()
	last := a[len(a)-1]
	bridged, routed = n.Host(fmt.Sprintf("bridged%d", last)), n.Host(fmt.Sprintf("routed%d", last))
	s.plug(bridged, 100, fmt.Sprintf("172.16.0.%d/24,2001:db8:16::%[1]d/64", last+10), macIn(int(last), 1))
	s.plug(routed, 200, fmt.Sprintf("172.18.%d.2/24,2001:db8:18:%[1]d::2/64", last), macIn(int(last), 2))
	routed.IP("route", "add", "default", "via", fmt.Sprintf("172.18.%d.1", last))
	routed.IP("route", "add", "default", "via", fmt.Sprintf("2001:db8:18:%d::1", last))
	return bridged, routed
}

// healthy fails the test unless all sessions are there, none was lost over an UPDATE, and all routes are used, but for reasons.
func (s *site) healthy(reasons ...string) Status {
	s.t.Helper()
	st := s.speaker.Status()
	for _, p := range st.Peers {
		if p.State != "established" || p.Err != nil && strings.Contains(p.Err.Error(), "UPDATE error") {
			s.t.Errorf("%v: %+v", s.addr, p)
		}
	}
	left, malformed := maps.Clone(st.LeftOut), maps.Clone(st.Malformed)
	for _, r := range reasons {
		delete(left, r)
		delete(malformed, r)
	}
	if len(left)+len(malformed) > 0 {
		s.t.Errorf("%v: left out %v, malformed %v", s.addr, st.LeftOut, st.Malformed)
	}
	return st
}

// linkLocal returns the link-local address of a device, and the device's number.
func linkLocal(t *testing.T, h *netns.Host, dev string) (addr, index string) {
	t.Helper()
	f := strings.Fields(h.IP("-6", "-o", "addr", "show", "dev", dev, "scope", "link"))
	if len(f) < 4 {
		t.Fatalf("%s has no link-local address: %q", dev, f)
	}
	addr, _, _ = strings.Cut(f[3], "/")
	return addr, strings.TrimSuffix(f[0], ":")
}
