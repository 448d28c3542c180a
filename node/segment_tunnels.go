package node

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// locals returns the local addresses of a tunnel, at most one of each family.
func (t *Tunnel) locals() []netip.Addr {
	if t.Local6.IsValid() {
		return []netip.Addr{t.Local, t.Local6}
	}
	return []netip.Addr{t.Local}
}

// beside returns the local address of the family of a, if there is one.
func (t *Tunnel) beside(a netip.Addr) netip.Addr {
	for _, own := range t.locals() {
		if own.IsValid() && own.Is4() == a.Is4() {
			return own
		}
	}
	return netip.Addr{}
}

// zoned returns the address of a peer, with the tunnel's zone if it lacks one.
func (t *Tunnel) zoned(a netip.Addr) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" {
		return a.WithZone(t.beside(a).Zone())
	}
	return a
}

// on returns the tunnel with only one of its addresses.
func (t *Tunnel) on(local netip.Addr) *Tunnel {
	x := *t
	if local != t.Local {
		x.Prefix, x.Gateway = t.Prefix6, t.Gateway6
	}
	x.Local, x.Local6, x.Prefix6, x.Gateway6 = local, netip.Addr{}, netip.Prefix{}, netip.Addr{}
	return &x
}

// AddrPort returns Local and the tunnel's UDP port, 0 for IP-in-IP: what [Options].Listen opens.
func (t *Tunnel) AddrPort() netip.AddrPort { return netip.AddrPortFrom(t.Local, t.port()) }

// A SegmentTunnel is one of several tunnels of a segment. Frames pass between tunnels of different groups, and of hubs,
// but not between tunnels of the same group.
type SegmentTunnel struct {
	Tunnel string       `json:"tunnel"`          // needed: name of the tunnel
	VNI    frame.VNI    `json:"vni,omitzero"`    // VNI in the tunnel, 1 to 16777215; 0 = the VNI of the segment
	Flood  []netip.Addr `json:"flood,omitempty"` // peers and multicast groups in the tunnel that get broadcast, multicast and unknown unicast

	vswitch.AttachConfig // Group: tunnels and members of the same group, 1 to 255, cannot reach each other; default 1
}

// in returns the tunnels of a segment, also that of Tunnel.
func (c *Segment) in() []SegmentTunnel {
	if len(c.Tunnels) == 0 && c.Tunnel != "" {
		return []SegmentTunnel{{Tunnel: c.Tunnel, Flood: c.Flood, AttachConfig: vswitch.AttachConfig{Hub: c.Hub}}}
	}
	return c.Tunnels
}

// named returns the name of a tunnel for rows if the segment has several, else "".
func (c *Segment) named(name string) string {
	if len(c.in()) < 2 {
		return ""
	}
	return name
}

// tag returns the tag of the segment in a tunnel.
func (c *Segment) tag(x *SegmentTunnel, t *Tunnel) uint32 {
	switch {
	case t.Type.Bare():
		return 0 // a single network
	case x.VNI != 0:
		return uint32(x.VNI)
	}
	return uint32(c.VNI)
}

// keeps reports whether c has an attachment with the same tunnel and tag.
func (n *Node) keeps(c *Segment, name string, a *vswitch.Attachment) bool {
	for _, x := range c.in() {
		if x.Tunnel == name {
			t := n.tunnels[name]
			return t != nil && t.v == a.Port() && c.tag(&x, &t.cfg) == a.Tag()
		}
	}
	return false
}

// setTunnels attaches the segment's tunnels.
func (n *Node) setTunnels(s *segment, c *Segment, by *attempt) {
	for _, x := range c.in() {
		t := n.tunnels[x.Tunnel]
		if t == nil {
			continue // not restored; the error is recorded
		}
		err := n.step("tunnel of a segment", func() (err error) {
			at := x.AttachConfig
			at.KeepOpen = true
			a := s.tunnels[x.Tunnel]
			if err := t.v.SetMarking(frame.VNI(c.tag(&x, &t.cfg)), c.Marking); err != nil {
				return err
			}
			if a != nil {
				return s.set(a, at)
			}
			if a, err = s.attach(t.v, c.tag(&x, &t.cfg), at); err == nil {
				s.tunnels[x.Tunnel] = a
			}
			return err
		})
		if err != nil && by.ends(fmt.Errorf("tunnel %q: %w", x.Tunnel, err)) {
			return
		}
	}
}

// unmark removes the marking of a segment from a tunnel that it leaves. One that is closed has none.
func unmark(a *vswitch.Attachment) {
	if v, ok := a.Port().(*vtep.VTEP); ok {
		_ = v.SetMarking(frame.VNI(a.Tag()), vtep.Marking{})
	}
}

// inTunnels checks the tunnels of a segment.
func (k *checker) inTunnels(key string, g *Segment) {
	switch {
	case len(g.Tunnels) > 0 && g.Tunnel != "":
		k.Fail(key+".tunnel", nil, "the segment has tunnels; add it there")
	case len(g.Tunnels) > 0 && len(g.Flood) > 0:
		k.Fail(key+".flood", nil, "the segment has tunnels; set it there")
	case len(g.Tunnels) > 0 && g.Hub:
		k.Fail(key+".hub", nil, "the segment has tunnels; set it there")
	case len(g.in()) == 0 && len(g.Flood) > 0:
		k.Fail(key+".flood", nil, "the segment has no tunnel")
	case len(g.in()) == 0 && g.Hub:
		k.Fail(key+".hub", nil, "the segment has no tunnel")
	case len(g.in()) == 0 && g.TOS != 0:
		k.Fail(key+".tos", nil, "the segment has no tunnel")
	case len(g.in()) == 0 && g.DSCP != 0:
		k.Fail(key+".dscp", nil, "the segment has no tunnel")
	}
	if g.CrossConnect.IsValid() {
		k.crossConnect(key, g)
	}
	if len(g.Tunnels) == 0 && g.Tunnel != "" {
		k.inTunnel(key, g, &g.in()[0], true)
	}
	here := map[string]bool{}
	each(k.Report, key+".tunnels", g.Tunnels, func(at string, x *SegmentTunnel) {
		k.inTunnel(at, g, x, !here[x.Tunnel])
		here[x.Tunnel] = true
	})
}

// inTunnel checks one tunnel of a segment; first is false for a duplicate.
func (k *checker) inTunnel(key string, g *Segment, x *SegmentTunnel, first bool) {
	t := k.tunnels[x.Tunnel]
	switch {
	case t == nil:
		k.Want(key+".tunnel", x.Tunnel, "the name of a tunnel")
	case !first:
		k.Fail(key+".tunnel", x.Tunnel, "duplicate")
	default:
		k.tagged(key, g, x, t)
	}
	if !x.VNI.Valid() {
		k.Want(key+".vni", x.VNI, "1 to %d, or 0 for the VNI of the segment", frame.MaxVNI)
	}
	if x.Hub && x.Group != 0 {
		k.Fail(key+".group", nil, "a hub cannot be in a group")
	}
	k.Ask(key, *x, func() error { return x.AttachConfig.Check(true) })
	k.peers(key+".flood", x.Flood, t, k.flooded)
}

// tagged checks that a tunnel can carry the segment and that no other segment has its VNI there.
func (k *checker) tagged(at string, g *Segment, x *SegmentTunnel, t *Tunnel) {
	ipip := t.Type.Bare()
	tag := g.tag(x, t)
	switch other := k.claim(fmt.Sprintf("tunnel %q %d", t.Name, tag), strconv.Itoa(int(g.VNI))); {
	case other == "":
	case ipip:
		k.Fail(at+".tunnel", t.Name, "carries only one segment, VNI %s", other)
	default:
		k.Fail(at+".vni", nil, "tunnel %q already has VNI %d, in segment %s", t.Name, tag, other)
	}
	switch {
	case !ipip:
	case len(g.in()) > 1:
		k.Fail(at+".tunnel", t.Name, "an IP tunnel must be alone in its segment")
	case g.CrossConnect.IsValid():
	case len(g.Members) > 0:
		k.Fail(at+".members", nil, "a segment with the IP tunnel %q takes no members without a cross-connect", t.Name)
	case g.Gateway == nil && !k.begun:
		k.Fail(at+".gateway", nil, "required, or a cross-connect: tunnel %q carries IP without Ethernet", t.Name)
	}
}

// tunnelOf returns the tunnel of an entry or hop, nil if there is none.
func (k *checker) tunnelOf(key string, g *Segment, name string) *Tunnel {
	in := g.in()
	for _, x := range in {
		if x.Tunnel == name || name == "" && len(in) == 1 {
			return k.tunnels[x.Tunnel]
		}
	}
	switch {
	case name != "":
		k.Want(key+".tunnel", name, "a tunnel of the segment")
	case len(in) > 1:
		k.Fail(key+".tunnel", nil, "required: the segment has several")
	}
	return nil
}
