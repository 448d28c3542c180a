package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// Settings are what the datastore does not say of a node.
type Settings struct {
	Node     string
	VRF      string
	Segment  frame.VNI // ways without a tunnel; 0 = none
	IPIP     Tunnel
	VXLAN    Tunnel
	Routers  []netip.Addr
	RouterID netip.Addr // none = the node's IPv4 address
	Listen   []netip.Addr
	Local    []netip.Addr // of sessions, one of a family; none = the node's addresses
	Distance uint8
	NoBGP    bool
	Restarts bool // peers keep their routes while they restart
}

// A Tunnel is a segment with one, and the name of the tunnel, for each family, if it has several.
type Tunnel struct {
	Segment frame.VNI
	IPv4    string
	IPv6    string
}

func (t *Tunnel) name(is4 bool) string {
	if is4 {
		return t.IPv4
	}
	return t.IPv6
}

// A Plan is what a node is to do.
type Plan struct {
	BGP  *bgp.Config    // nil without BGP
	Rows []control.Row  // that BGP has no part in
	Own  *resource.Node // nil if the datastore has no such node

	VNI, Port Said // of VXLAN

	NotDone
}

// Limits of a Plan.
const (
	MaxRows  = 1 << 18
	MaxPeers = 1 << 12
)

// defaultAS is that of a cluster.
const defaultAS = 64512

// A compiler makes a Plan.
type compiler struct {
	c      *Settings
	s      *Store
	plan   *Plan
	own    *resource.Node
	global resource.Configuration
	pools  []pool
	nodes  map[string]*resource.Node // all but ours
	bad    map[string]bool           // problems of nodes that are named already
	taken  map[netip.Prefix]bool     // prefixes with a route
	reject []bgp.Rule
}

// Compile says what the resources of a store mean for a node. It says the same for the same resources.
func Compile(c *Settings, s *Store) *Plan {
	x := &compiler{c: c, s: s, plan: &Plan{}, nodes: map[string]*resource.Node{}, bad: map[string]bool{}, taken: map[netip.Prefix]bool{}}
	for _, p := range s.Problems(false) {
		x.problem(p.Resource, "%s", p.Why)
	}
	x.own = One[resource.Node](s, resource.KindNode, c.Node)
	if x.own == nil {
		x.problem("nodes/"+c.Node, "the datastore has no such node, which calico/node or calicoctl make")
		return x.plan
	}
	x.plan.Own = x.own
	x.felix()
	x.configuration()
	x.readPools()
	x.readNodes()
	if !c.NoBGP {
		x.bgp()
	}
	x.blocks()
	if b := x.plan.BGP; b != nil {
		slices.SortFunc(b.Announce, netip.Prefix.Compare)
		b.Announce = slices.Compact(b.Announce)
	}
	return x.plan
}

func (x *compiler) problem(of string, format string, args ...any) { x.plan.Note(of, format, args...) }

// once is problem for what many routes have in common.
func (x *compiler) once(of string, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if key := of + "\x00" + why; !x.bad[key] {
		x.bad[key] = true
		x.problem(of, "%s", why)
	}
}

// configuration reads that of the cluster.
func (x *compiler) configuration() {
	x.global = resource.Configuration{AS: defaultAS, Direct: true}
	x.notCarried("node."+x.c.Node, One[resource.Configuration](x.s, resource.KindConfiguration, "node."+x.c.Node))
	g := One[resource.Configuration](x.s, resource.KindConfiguration, "default")
	if g == nil {
		return
	}
	x.global = *g
	x.global.AS = cmp.Or(g.AS, defaultAS)
	x.notCarried("default", g)
}

// notCarried names what of a BGPConfiguration is not done.
func (x *compiler) notCarried(name string, c *resource.Configuration) {
	if c == nil || x.c.NoBGP {
		return
	}
	for _, f := range c.NotCarried {
		x.problem("bgpconfigurations/"+name, "%s is not carried", f)
	}
}

// port returns the port that a node listens on, 0 if nobody says.
func (x *compiler) port(node string) uint16 {
	if c := One[resource.Configuration](x.s, resource.KindConfiguration, "node."+node); c != nil && c.Port != 0 {
		return c.Port
	}
	return x.global.Port
}
