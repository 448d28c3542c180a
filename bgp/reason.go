package bgp

import "github.com/vxswitch/vxswitch/setting"

// A Reason says why a route of a peer is not taken. Each is counted by its name.
type Reason uint8

// Reasons. None is that of a route that is taken.
const (
	None            Reason = iota
	Filtered               // a rule of Config.Import rejects it
	OutsidePools           // no pool has it, and no rule of Config.Import accepts it
	DefaultRoute           // it is 0.0.0.0/0 or ::/0, which Config.DefaultRoute does not allow
	NotRouted              // it is of loopback, multicast or link-local addresses
	OwnBlock               // we announce the prefix, or all of it is in a block that we announce
	UnderlayNetwork        // it is in a network of nodes, which tunnels and sessions use
	BadNextHop             // the next hop is not the address of one host, or of another family
	OwnNextHop             // the next hop is ours
	OverlayNextHop         // the next hop is in a pool, whose packets need it
	OffLink                // the way is without a tunnel, and the next hop on no network of a link; the link of the peer has no router of its family
	UnknownNode            // the way is by VXLAN, and Config.Nodes has no MAC for the next hop
	PeerFiltered           // a rule of a filter of its peer rejects it: it is not listed
	TooMany                // peers have more routes than Config.MaxRoutes: counted each time, and not listed

	reasons
)

var reasonWords = []string{
	None: "none", Filtered: "filtered", OutsidePools: "outside-pools", DefaultRoute: "default-route", NotRouted: "not-routed", OwnBlock: "own-block", UnderlayNetwork: "underlay",
	BadNextHop: "next-hop", OwnNextHop: "own-next-hop", OverlayNextHop: "overlay-next-hop", OffLink: "off-link", UnknownNode: "unknown-node", PeerFiltered: "peer-filter",
	TooMany: "too-many",
}

// String returns the name of a reason.
func (r Reason) String() string { return setting.Name(reasonWords, r) }

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
