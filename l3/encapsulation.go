package l3

import (
	"net/netip"
	"slices"

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
