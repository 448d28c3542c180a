package l3

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/vxswitch/vxswitch/setting"
)

// Encapsulation says when packets to another node go through its tunnel, and when they go directly.
type Encapsulation uint8

// Modes of encapsulation.
const (
	Always      Encapsulation = iota // through the tunnel
	CrossSubnet                      // directly if the node is in one of this node's subnets
	Never                            // directly
)

var encapsulationWords = []string{"always", "cross-subnet", "never"}

// String returns the mode's word in settings.
func (e Encapsulation) String() string { return setting.Name(encapsulationWords, e) }

// MarshalText implements [encoding.TextMarshaler].
func (e Encapsulation) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Encapsulation) UnmarshalText(text []byte) error {
	return setting.Parse(e, encapsulationWords, text)
}

// Direct reports whether packets go directly to a node from one in the given subnets.
func (e Encapsulation) Direct(node netip.Addr, subnets []netip.Prefix) bool {
	in := func(s netip.Prefix) bool { return s.Contains(node) }
	return e == Never || e == CrossSubnet && slices.ContainsFunc(subnets, in)
}

// A Node is another host that has blocks of [Blocks], and the two paths to it. A missing path has
// no Interface.
type Node struct {
	Addr   netip.Addr // in the underlay; CrossSubnet compares it with the subnets
	Tunnel NextHop    // Interface and Peer of a tunnel for IP, or Interface and MAC of an L3VNI
	Direct NextHop    // Interface and IP of a link, or Interface of an IP port
}

// Blocks holds the routes of a VRF to blocks of addresses on other nodes, as an address manager
// assigns them. All blocks have the same mode, which changes under traffic.
type Blocks struct {
	vrf *VRF

	mu      sync.Mutex
	mode    Encapsulation
	subnets []netip.Prefix
	blocks  map[netip.Prefix][]Node
}

// NewBlocks returns an empty Blocks. The subnets are this node's own.
func (v *VRF) NewBlocks(mode Encapsulation, subnets ...netip.Prefix) (*Blocks, error) {
	if err := v.checkMode(mode); err != nil {
		return nil, err
	}
	for _, s := range subnets {
		if !s.IsValid() || s != s.Masked() {
			return nil, fmt.Errorf("l3: VRF %s: blocks: subnet %v, allowed are prefixes without bits beyond their length", v.name, s)
		}
	}
	return &Blocks{vrf: v, mode: mode, subnets: slices.Clone(subnets), blocks: map[netip.Prefix][]Node{}}, nil
}

func (v *VRF) checkMode(m Encapsulation) error {
	if m > Never {
		return fmt.Errorf("l3: VRF %s: blocks: mode %d, allowed are %s", v.name, m, strings.Join(encapsulationWords, ", "))
	}
	return nil
}

// Set sets the nodes of a block. Of several nodes each flow takes one. Without nodes packets to
// the block are dropped, as for the unused addresses of a node's own block.
func (b *Blocks) Set(block netip.Prefix, nodes ...Node) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.route(b.mode, block, nodes)
	if err == nil {
		err = b.vrf.Add(r)
	}
	if err != nil {
		return err
	}
	b.blocks[block] = slices.Clone(nodes)
	return nil
}

// Delete removes a block, and reports whether there was one.
func (b *Blocks) Delete(block netip.Prefix) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.blocks[block]
	delete(b.blocks, block)
	return ok && b.vrf.Delete(block)
}

// SetMode changes the paths to all nodes at once, under traffic: each packet takes the old path or
// the new one. If a node lacks the new path nothing changes.
func (b *Blocks) SetMode(mode Encapsulation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.vrf.checkMode(mode); err != nil {
		return err
	}
	routes := make([]Route, 0, len(b.blocks))
	for block, nodes := range b.blocks {
		r, err := b.route(mode, block, nodes)
		if err != nil {
			return err
		}
		routes = append(routes, r)
	}
	if err := b.vrf.Add(routes...); err != nil {
		return err
	}
	b.mode = mode
	return nil
}

// Mode returns the mode.
func (b *Blocks) Mode() Encapsulation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode
}

// route returns the route to a block. b.mu is held.
func (b *Blocks) route(mode Encapsulation, block netip.Prefix, nodes []Node) (Route, error) {
	r := Route{Prefix: block}
	for _, n := range nodes {
		h, path := n.Tunnel, "Tunnel"
		if mode.Direct(n.Addr, b.subnets) {
			h, path = n.Direct, "Direct"
		}
		if h.Interface == nil {
			return r, fmt.Errorf("l3: VRF %s: block %v: node %v: %s.Interface: nil, required in mode %v", b.vrf.name, block, n.Addr, path, mode)
		}
		r.Via = append(r.Via, h)
	}
	return r, nil
}
