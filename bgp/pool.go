package bgp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// An Encapsulation says how packets to a pool travel between nodes.
type Encapsulation uint8

// Encapsulations of a Pool.
const (
	Never Encapsulation = iota // as they are
	IPIP                       // in IP (RFC 2003)
	VXLAN                      // to a MAC of nodes (RFC 7348)
)

var encapsulations = []string{Never: "never", IPIP: "ipip", VXLAN: "vxlan"}

// String returns the word for e.
func (e Encapsulation) String() string { return setting.Name(encapsulations, e) }

// MarshalText implements [encoding.TextMarshaler].
func (e Encapsulation) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Encapsulation) UnmarshalText(text []byte) error {
	return setting.Parse(e, encapsulations, text)
}

// A Mode says when packets are encapsulated.
type Mode uint8

// Modes of a Pool.
const (
	Always      Mode = iota // to all next hops
	CrossSubnet             // to those on no network of a link
)

var modes = []string{Always: "always", CrossSubnet: "cross-subnet"}

// String returns the word for m.
func (m Mode) String() string { return setting.Name(modes, m) }

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mode) UnmarshalText(text []byte) error { return setting.Parse(m, modes, text) }

// A Pool is a range of addresses of hosts, and says how packets to them travel. Of pools that overlap the smallest counts.
type Pool struct {
	Prefix        netip.Prefix  `json:"prefix"`                 // such as 10.65.0.0/16; needed
	Encapsulation Encapsulation `json:"encapsulation,omitzero"` // how they travel; default "never"
	Mode          Mode          `json:"mode,omitzero"`          // to which next hops, with an encapsulation; default "always"
	Segment       frame.VNI     `json:"segment,omitzero"`       // with an encapsulation: the segment of the tunnel, which has a gateway in the VRF; needed then
	Tunnel        string        `json:"tunnel,omitzero"`        // name of the tunnel, if the segment has several
}

// A Remote says which MAC the router of another node has behind a VXLAN tunnel: BGP does not.
type Remote struct {
	Address netip.Addr `json:"address"` // next hop of its routes, and its VTEP; needed
	MAC     frame.MAC  `json:"mac"`     // of its router behind the tunnel; needed
}

// pool returns the smallest pool with all of a prefix, nil if there is none.
func (c *Config) pool(p netip.Prefix) (best *Pool) {
	for i := range c.Pools {
		if q := &c.Pools[i]; within(p, q.Prefix) && (best == nil || q.Prefix.Bits() > best.Prefix.Bits()) {
			best = q
		}
	}
	return best
}

// within reports whether all of p is in q.
func within(p, q netip.Prefix) bool { return p.Bits() >= q.Bits() && q.Contains(p.Addr()) }
