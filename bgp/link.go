package bgp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Link is a network of nodes that a node with several is on, such as a plane of a fabric. Each peer belongs to one.
type Link struct {
	Segment   frame.VNI    `json:"segment"`             // whose gateway in the VRF is on the network; needed, another one for each link
	Addresses []netip.Addr `json:"addresses,omitempty"` // the node's own on the network, at most one of each family: the next hop of what peers of the link get
	Routers   []netip.Addr `json:"routers,omitempty"`   // at most one of each family, get packets without a tunnel by routes of peers of the link whose next hop is on no network of a link; default none

	IPIP  frame.VNI `json:"ipip,omitzero"`  // segment of the tunnel by this link for pools with "ipip", which has a gateway in the VRF; default that of the pool
	VXLAN frame.VNI `json:"vxlan,omitzero"` // segment of the tunnel by this link for pools with "vxlan", which has a gateway in the VRF; default that of the pool
}

// tunnel returns the segment and the name of the tunnel for a pool by the link.
func (l *Link) tunnel(p *Pool) (segment frame.VNI, name string) {
	switch {
	case p.Encapsulation == IPIP && l.IPIP != 0:
		return l.IPIP, ""
	case p.Encapsulation == VXLAN && l.VXLAN != 0:
		return l.VXLAN, ""
	}
	return p.Segment, p.Tunnel
}

// links returns the links, one at least.
func (c *Config) links() []Link {
	if len(c.Links) > 0 {
		return c.Links
	}
	return []Link{{Segment: c.Segment, Addresses: c.Addresses, Routers: c.Routers}}
}

func (c *Config) checkLinks(w *setting.Check) {
	if !c.Segment.Valid() {
		w.Want("Segment", c.Segment, "0 to %d", frame.MaxVNI)
	}
	checkFamilies(w, "Addresses", c.Addresses)
	checkFamilies(w, "Routers", c.Routers)
	if len(c.Routers) > 0 && c.Segment == 0 && len(c.Links) == 0 {
		w.Wrong("Routers", c.Routers[0], "requires segment")
	}
	if len(c.Links) > 0 && (c.Segment != 0 || len(c.Addresses)+len(c.Routers) > 0) {
		w.Wrong("Links", nil, "each has a segment, addresses and routers of its own: leave out those beside them")
	}
	seen := map[frame.VNI]int{}
	for i, l := range c.Links {
		at := fmt.Sprintf("Links[%d].", i)
		if l.Segment == 0 || !l.Segment.Valid() {
			w.Want(at+"Segment", l.Segment, "1 to %d", frame.MaxVNI)
		} else if first, ok := seen[l.Segment]; ok {
			w.Wrong(at+"Segment", l.Segment, "links[%d] has it already", first)
		} else {
			seen[l.Segment] = i
		}
		for e, vni := range []frame.VNI{l.IPIP, l.VXLAN} {
			if !vni.Valid() {
				w.Want(at+[]string{"IPIP", "VXLAN"}[e], vni, "0 to %d", frame.MaxVNI)
			}
		}
		checkFamilies(w, at+"Addresses", l.Addresses)
		checkFamilies(w, at+"Routers", l.Routers)
	}
}

// checkLink adds an error if a peer is of a link that there is not.
func (c *Config) checkLink(w *setting.Check, at string, p *Peer) {
	if p.Segment != 0 && !slices.ContainsFunc(c.links(), func(l Link) bool { return l.Segment == p.Segment }) {
		w.Want(at+".Segment", p.Segment, "the segment of a link")
	}
}

// NextHops returns all addresses that are a next hop of what we announce, each once, first those of links.
func (c *Config) NextHops() (list []netip.Addr) {
	add := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	for _, l := range c.links() {
		for _, a := range l.Addresses {
			add(a)
		}
	}
	for i := range c.Peers {
		if c.Peers[i].NextHopSelf {
			add(c.Peers[i].Local)
		}
	}
	return list
}

// A link is a Link, and the networks of the interface of its segment.
type link struct {
	Link
	networks []netip.Prefix
}

func (l *link) has(a netip.Addr) bool {
	return slices.ContainsFunc(l.networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// linkOf returns the link of a peer: that of its segment, or with its address or prefix on a network, or else the first.
func (r *rules) linkOf(p *Peer) *link {
	for i := range r.links {
		if l := &r.links[i]; p.Segment != 0 && l.Segment == p.Segment || p.Segment == 0 && l.has(p.family()) {
			return l
		}
	}
	return &r.links[0]
}

// link returns the link of the peer with an address.
func (r *rules) link(peer netip.Addr) *link {
	if len(r.links) == 1 {
		return &r.links[0]
	}
	if l, ok := r.linkBy[peer]; ok {
		return l
	}
	of := Peer{Addr: peer}
	for _, p := range r.cfg.Peers {
		if p.Prefix.Contains(peer) && p.Prefix.Bits() > of.Prefix.Bits() {
			of = p
		}
	}
	return r.linkOf(&of)
}

// nextHops returns our next hops in what a peer gets, at most one of each family; nil if all peers get Config.Addresses.
func (r *rules) nextHops(p *Peer) []netip.Addr {
	if !r.differ {
		return nil
	}
	list := []netip.Addr{}
	if p.NextHopSelf {
		list = append(list, p.Local)
	}
	for _, a := range r.linkOf(p).Addresses {
		if !p.NextHopSelf || a.Is4() != p.Local.Is4() {
			list = append(list, a)
		}
	}
	return list
}

// peers returns peers for the engine with what their filters and links say. The list is that of Config.peers.
func (r *rules) peers(list []engine.Peer) []engine.Peer {
	list = slices.Clone(list)
	for i := range list {
		p, x := &r.cfg.Peers[i], &list[i]
		x.NextHops = r.nextHops(p)
		ours := x.NextHops
		if !r.differ {
			ours = r.links[0].Addresses
		}
		x.Import, x.Export = r.cfg.rules(p, ours)
	}
	return list
}
