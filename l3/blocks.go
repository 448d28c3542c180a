package l3

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/setting"
)

// Encapsulation says when packets for another node go through its tunnel, and when they are
// handed to it as they are.
type Encapsulation uint8

// Modes of encapsulation.
const (
	Always      Encapsulation = iota // through the tunnel
	CrossSubnet                      // directly where the node is in one of our subnets
	Never                            // directly
)

var encapsulationWords = []string{"always", "cross-subnet", "never"}

// String returns the mode as settings call it.
func (e Encapsulation) String() string { return setting.Name(encapsulationWords, e) }

// MarshalText implements [encoding.TextMarshaler].
func (e Encapsulation) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what String writes.
func (e *Encapsulation) UnmarshalText(text []byte) error {
	return setting.Parse(e, encapsulationWords, text)
}

// Direct reports whether a node is reached directly from one that is in these subnets.
func (e Encapsulation) Direct(node netip.Addr, subnets []netip.Prefix) bool {
	in := func(s netip.Prefix) bool { return s.Contains(node) }
	return e == Never || e == CrossSubnet && slices.ContainsFunc(subnets, in)
}

// A Node is where blocks of a [Blocks] are: another host, with the two ways to it. A way that
// there is not has no Interface.
type Node struct {
	Addr   netip.Addr // in the underlay: CrossSubnet looks at it
	Tunnel NextHop    // Interface and Peer of a tunnel for IP, or Interface and MAC of an L3VNI
	Direct NextHop    // Interface and IP of a link, or Interface of an IP port
}

// A Blocks is the routes of a VRF to blocks of addresses that other nodes have, as an address
// manager hands them out. All follow one mode, which changes under traffic.
type Blocks struct {
	vrf *VRF

	mu      sync.Mutex
	mode    Encapsulation
	subnets []netip.Prefix
	blocks  map[netip.Prefix][]Node
}

// NewBlocks returns a pool without blocks. The subnets are those that this node is in itself.
func (v *VRF) NewBlocks(mode Encapsulation, subnets ...netip.Prefix) (*Blocks, error) {
	if mode > Never {
		return nil, fmt.Errorf("l3: VRF %s: pool: mode %d is none", v.name, mode)
	}
	for _, s := range subnets {
		if !s.IsValid() || s != s.Masked() {
			return nil, fmt.Errorf("l3: VRF %s: pool: subnet %v: no prefix, or bits beyond its length", v.name, s)
		}
	}
	return &Blocks{vrf: v, mode: mode, subnets: slices.Clone(subnets), blocks: map[netip.Prefix][]Node{}}, nil
}

// Set says which nodes have a block: of several, each flow goes to one. Without nodes
// packets for the block are dropped, as a node does with what is left of a block of its own.
func (p *Blocks) Set(block netip.Prefix, nodes ...Node) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.route(p.mode, block, nodes)
	if err == nil {
		err = p.vrf.Add(r)
	}
	if err != nil {
		return err
	}
	p.blocks[block] = slices.Clone(nodes)
	return nil
}

// Delete removes a block, and reports whether there was one.
func (p *Blocks) Delete(block netip.Prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.blocks[block]
	delete(p.blocks, block)
	return ok && p.vrf.Delete(block)
}

// SetMode changes the way to every node at once, under traffic: a packet goes the old way or
// the new one. When a node cannot be reached the new way nothing is changed.
func (p *Blocks) SetMode(mode Encapsulation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mode > Never {
		return fmt.Errorf("l3: VRF %s: pool: mode %d is none", p.vrf.name, mode)
	}
	routes := make([]Route, 0, len(p.blocks))
	for block, nodes := range p.blocks {
		r, err := p.route(mode, block, nodes)
		if err != nil {
			return err
		}
		routes = append(routes, r)
	}
	if err := p.vrf.Add(routes...); err != nil {
		return err
	}
	p.mode = mode
	return nil
}

// Mode returns the mode.
func (p *Blocks) Mode() Encapsulation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// route returns the route to a block. p.mu is held.
func (p *Blocks) route(mode Encapsulation, block netip.Prefix, nodes []Node) (Route, error) {
	r := Route{Prefix: block}
	for _, n := range nodes {
		h, way := n.Tunnel, "tunnel"
		if mode.Direct(n.Addr, p.subnets) {
			h, way = n.Direct, "direct way"
		}
		if h.Interface == nil {
			return r, fmt.Errorf("l3: VRF %s: block %v: node %v has no %s, which mode %v needs", p.vrf.name, block, n.Addr, way, mode)
		}
		r.Via = append(r.Via, h)
	}
	return r, nil
}
