package node

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A neighbourhood has the settings of a segment's neighbours and gateway. If it changes, they are recreated.
type neighbourhood struct {
	gateway      *SegmentGateway
	responder    arp.Config
	table        arp.TableConfig
	crossConnect netip.Addr
}

func (c *Segment) neighbourhood() neighbourhood {
	g := c.Gateway
	if g != nil {
		x := *g
		x.BFD, x.Policy = nil, ""
		g = &x
	}
	return neighbourhood{g, c.responder(nil), *c.table(), c.CrossConnect}
}

// setGateway makes the responder of a segment, and the gateway's interface if it has a MAC.
func (n *Node) setGateway(s *segment, c *Segment) error {
	if s.bfd = nil; c.Gateway != nil {
		s.bfd = c.Gateway.BFD
	}
	n.setGatewayPolicy(s, c)
	was := s.table
	defer func() { s.renewed = s.renewed || was != nil && was != s.table }()
	if want := c.neighbourhood(); !reflect.DeepEqual(s.made, want) {
		s.dropInterface()
		s.dropMACs(c.Gateway)
		s.responder = nil
		if !reflect.DeepEqual(s.made.table, want.table) {
			s.table = nil
		}
		s.made = want
	}
	if c.Neighbours == nil && !c.ethernet() {
		s.table, s.responder = nil, nil
		return nil
	}
	if s.table == nil {
		s.responder = nil // it uses the old table
		cfg := c.table()
		cfg.Notify = n.sw.Notify
		err := n.step("neighbours", func() (err error) {
			s.table, err = arp.NewTable(cfg)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.keepNeighbours(c); err != nil {
		return err
	}
	if s.responder == nil {
		cfg := c.responder(s.vsi.FDB().Lookup)
		cfg.Table, cfg.Notify = s.table, n.sw.Notify
		cfg.Inject = func(f *frame.Frame) bool { return s.vsi.Send(0, f) }
		err := n.step("responder", func() (err error) {
			s.responder, err = arp.NewResponder(&cfg)
			return err
		})
		if err != nil {
			return err
		}
	}
	if !c.ethernet() || s.iface != nil {
		s.advertiseMTU(n.hostMTU(c))
		return nil
	}
	cfg := c.iface(s.responder, s.vsi.Send)
	err := n.setInterface(s, c, cfg)
	if err == nil {
		if err = n.step("gateway's MACs", s.setGatewayMACs); err != nil {
			s.dropInterface()
			s.dropMACs(nil)
		}
	}
	return err
}

// ethernet reports whether the segment has a gateway with a MAC.
func (c *Segment) ethernet() bool { return c.Gateway != nil && !c.Gateway.MAC.IsZero() }

// table returns the settings of the neighbour table.
func (c *Segment) table() *arp.TableConfig {
	t := new(arp.TableConfig)
	if c.Neighbours != nil {
		*t = c.Neighbours.TableConfig
	}
	t.VNI = c.VNI
	return t
}

// responder returns the settings of the responder.
func (c *Segment) responder(locate func(frame.MAC) (frame.Dest, bool)) (cfg arp.Config) {
	if c.Neighbours != nil {
		cfg = c.Neighbours.Config
	}
	cfg.Locate = locate
	if c.ethernet() {
		cfg.MAC, cfg.AccessMAC = cmp.Or(cfg.MAC, c.Gateway.VTEPMAC, c.Gateway.MAC), cmp.Or(cfg.AccessMAC, c.Gateway.MAC)
	}
	return cfg
}

// iface returns the settings of the gateway's interface.
func (c *Segment) iface(r *arp.Responder, send func(frame.Dest, *frame.Frame) bool) l3.InterfaceConfig {
	cfg := c.Gateway.Gateway
	cfg.VNI, cfg.Neighbours, cfg.Send = c.VNI, r, send
	return cfg
}

// hostMTU returns the longest IP packet of a host that fits all tunnels of a segment, 0 without tunnels, or if IPv6 does not fit.
func (n *Node) hostMTU(c *Segment) (mtu int) {
	for _, in := range c.in() {
		if t := n.tunnels[in.Tunnel]; t != nil {
			if fits := c.Fits(t.v) - encap.EthernetLen; mtu == 0 || fits < mtu {
				mtu = fits
			}
		}
	}
	if mtu < l3.MinHostMTU {
		return 0
	}
	return mtu
}

// advertiseMTU has the gateway advertise what fits the tunnels.
func (s *segment) advertiseMTU(mtu int) {
	if s.iface != nil {
		s.iface.SetHostMTU(mtu)
	}
}

// setInterface makes a segment's interface.
func (n *Node) setInterface(s *segment, c *Segment, cfg l3.InterfaceConfig) error {
	cfg.Notify = n.sw.Notify
	return n.step("gateway", func() error {
		i, err := n.vrf(s.made.gateway.VRF).NewInterface(&cfg)
		if err == nil {
			s.iface = i
			n.setGatewayPolicy(s, c)
			s.advertiseMTU(n.hostMTU(c))
		}
		return err
	})
}

// setGatewayMACs adds the gateway's MACs to the FDB.
func (s *segment) setGatewayMACs() error {
	flags := fdb.Static
	if s.made.gateway.Anycast {
		flags |= fdb.Anycast
	}
	for _, mac := range s.made.gateway.macs() {
		if err := s.vsi.FDB().Set(mac, 0, flags); err != nil {
			return err
		}
		if !slices.Contains(s.macs, mac) {
			s.macs = append(s.macs, mac)
		}
		flags = fdb.Static // for VTEPMAC
	}
	return nil
}

// dropMACs removes the gateway's MACs from the FDB, except for those of the next gateway.
func (s *segment) dropMACs(next *SegmentGateway) {
	keep := next.macs()
	for _, mac := range s.macs {
		if !slices.Contains(keep, mac) {
			s.vsi.FDB().Delete(mac)
		}
	}
	s.macs = slices.DeleteFunc(s.macs, func(mac frame.MAC) bool { return !slices.Contains(keep, mac) })
}

// setIPGateway makes the interface of a segment without MACs.
func (n *Node) setIPGateway(s *segment, c *Segment) error {
	if c.Gateway == nil || !c.Gateway.MAC.IsZero() || s.iface != nil {
		return nil
	}
	cfg := c.iface(nil, s.vsi.Send)
	for _, a := range s.members {
		cfg.Port = a.Dest(0)
	}
	for name, a := range s.tunnels { // one tunnel or one member
		cfg.Port, cfg.Tunnel = a.Dest(0), n.tunnels[name].v
	}
	if cfg.Port == 0 {
		return nil // not restored; the error is recorded
	}
	if err := n.setInterface(s, c, cfg); err != nil {
		return err
	}
	return s.configure(c.vsi(n.slots(s, c)))
}

// setGatewayPolicy has the policy of the gateway judge what it routes.
func (n *Node) setGatewayPolicy(s *segment, c *Segment) {
	var p *policy.Policy
	if r := n.policies[c.gatewayPolicy()]; r != nil {
		p = r.Policy
	}
	switch {
	case s.iface == nil || p == s.ruled:
		return
	case p == nil:
		s.iface.SetFilters(nil, nil)
	default:
		s.iface.SetFilters(p.Ingress(), p.Egress())
	}
	s.ruled = p
}

// gatewayPolicy returns the name of the policy of the segment's gateway.
func (c *Segment) gatewayPolicy() string {
	if c == nil || c.Gateway == nil {
		return ""
	}
	return c.Gateway.Policy
}

// retire tells hosts that the gateway is no longer their router: at once if the segment is deleted, or recreated for c, else when the
// gate opens, since the ports may be shut until then.
func (s *segment) retire(c *Segment) {
	switch {
	case s.iface == nil:
	case c == nil || c.Refuse != s.vsi.Config().Refuse:
		s.iface.Retire()
	default:
		s.gate.retired = append(s.gate.retired, s.iface)
	}
}

// retireNow tells hosts, unless the gateway that has followed advertises itself with the same MAC.
func (s *segment) retireNow() {
	for _, i := range s.gate.retired {
		if now := s.iface; now == nil || now.MAC() != i.MAC() || now.Config().RouterAdvertisements == nil {
			i.Retire()
		}
	}
	s.gate.retired = nil
}

// dropInterface removes the gateway or the cross-connect from a segment. The gateway's routes are held until the gates open.
func (s *segment) dropInterface() {
	if s.iface != nil {
		s.iface.Hold()
	}
	s.iface, s.crossConnect, s.ruled = nil, nil, nil
}

func mode(c *Segment) arp.Mode {
	if c.Neighbours == nil {
		return arp.Off
	}
	return c.Neighbours.Mode
}

// mode returns the ARP and ND mode of the member.
func (m *Member) mode(c *Segment) arp.Mode {
	if m.NeighbourMode != nil {
		return *m.NeighbourMode
	}
	return mode(c)
}

// keepNeighbours sets the static neighbours to those of c.
func (s *segment) keepNeighbours(c *Segment) error {
	want := map[netip.Addr]frame.MAC{}
	if c.Neighbours != nil {
		for _, x := range c.Neighbours.Static {
			want[x.IP] = x.MAC
		}
	}
	for e := range s.table.All() {
		if e.Origin != arp.Static {
			continue
		}
		if mac, ok := want[e.IP]; !ok {
			s.table.Delete(e.IP)
		} else if mac == e.MAC {
			delete(want, e.IP)
		}
	}
	for ip, mac := range want {
		if err := s.table.Set(ip, mac, arp.Static, 0); err != nil {
			return err
		}
	}
	return nil
}

// macs returns the MACs of a gateway, nil for none.
func (g *SegmentGateway) macs() []frame.MAC {
	if g == nil || g.MAC.IsZero() {
		return nil
	}
	return slices.DeleteFunc([]frame.MAC{g.MAC, g.VTEPMAC}, frame.MAC.IsZero)
}

// passOver has routes pass over interfaces whose IP port is gone. Those of other ports have neighbours, which are
// forgotten. Where a port has come back meanwhile, perhaps with the same number, the event is about the one before. n.mu is held.
func (n *Node) passOver(events []frame.Event) {
	for _, e := range events {
		s := n.segments[e.VNI]
		if e.Kind != frame.EventDetached || e.Dest == 0 || s == nil || s.iface == nil || s.iface.Config().Port.Port() != e.Dest.Port() {
			continue
		}
		if !slices.ContainsFunc(s.vsi.Attachments(), func(a *vswitch.Attachment) bool { return a.Dest(0).Port() == e.Dest.Port() }) {
			s.iface.SetPortGone() // until it is made anew, with its port
		}
	}
}
