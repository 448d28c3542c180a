package api

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// An EVPN is what the section evpn of the configuration does.
type EVPN struct {
	State string     `json:"state"`           // running, failed
	Since time.Time  `json:"since"`           // of the state
	Error string     `json:"error,omitempty"` // with which a failed one has ended
	Again *time.Time `json:"again,omitempty"` // when a failed one is tried again

	AS          uint32            `json:"as"`
	RouterID    string            `json:"routerID"`
	Peers       int               `json:"peers"`       // as configured
	Established int               `json:"established"` // of these
	Advertised  int               `json:"advertised"`  // routes of ours
	Routes      int               `json:"routes"`      // of peers
	Duplicates  int               `json:"duplicates"`  // MACs that have moved too often
	LeftOut     map[string]int    `json:"leftOut"`     // of Routes, those that are used nowhere, by reason
	Malformed   map[string]uint64 `json:"malformed"`   // routes and UPDATEs that were not taken, by reason
}

// An EVPNPeer is a BGP speaker that the node has a session with, or wants one.
type EVPNPeer struct {
	Address   string `json:"address,omitempty"`   // none while no router is known at the interface
	Interface string `json:"interface,omitempty"` // that leads to the peer, if its settings have no address
	Link      string `json:"link,omitempty"`      // what is to say of the interface: why no router is known, or that there is another

	AS       uint32     `json:"as"`                 // 0 = external, while there is no session
	State    string     `json:"state"`              // idle, connect, active, openconfirm, established
	Since    *time.Time `json:"since,omitempty"`    // of the state
	HoldTime float64    `json:"holdTime,omitempty"` // in seconds, as agreed, while there is a session
	Routes   int        `json:"routes"`             // that it has advertised
	BFD      string     `json:"bfd,omitempty"`      // of the path: unknown, alive, dead; none if it is not probed
	Stale    bool       `json:"stale,omitempty"`    // routes of a session before may be among them
	Missing  int        `json:"missing,omitempty"`  // routes left out at a limit since it said all; those said twice count twice
	Received uint64     `json:"received"`           // messages
	Sent     uint64     `json:"sent"`               // messages
	Error    string     `json:"error,omitempty"`    // of the last session that failed
}

// An EVPNSegment is a segment that takes part.
type EVPNSegment struct {
	VNI    frame.VNI `json:"vni"`
	VTEP   string    `json:"vtep,omitempty"` // the node's address in it; none without a tunnel
	RD     string    `json:"rd"`             // route distinguisher
	VRF    string    `json:"vrf,omitempty"`  // of its gateway
	Hosts  int       `json:"hosts"`          // MACs that the node advertises
	Remote int       `json:"remote"`         // MACs of peers
	VTEPs  int       `json:"vteps"`          // of peers, in its flood list
}

// An EVPNRoute is a route that a peer has advertised, or the node.
type EVPNRoute struct {
	Peer      string    `json:"peer,omitempty"`      // none: the node itself
	Type      uint8     `json:"type"`                // 1 to 5 (RFC 7432, RFC 9136)
	RD        string    `json:"rd"`                  // route distinguisher
	VNI       frame.VNI `json:"vni,omitempty"`       // the first label
	L3VNI     frame.VNI `json:"l3vni,omitempty"`     // the second label, of type 2
	MAC       string    `json:"mac,omitempty"`       // of type 2
	IP        string    `json:"ip,omitempty"`        // of types 2, 3 and 4
	Prefix    string    `json:"prefix,omitempty"`    // of type 5
	ESI       string    `json:"esi,omitempty"`       // Ethernet segment: of types 1 and 4, and of a type 2 whose host is on one
	Gateway   string    `json:"gateway,omitempty"`   // of type 5, if the prefix is behind another router than the VTEP
	VTEP      string    `json:"vtep"`                // next hop
	RouterMAC string    `json:"routerMAC,omitempty"` // of the VTEP, with an L3VNI
	Sequence  uint32    `json:"sequence,omitempty"`  // of a MAC that has moved
	Sticky    bool      `json:"sticky,omitempty"`    // the MAC never moves
	Targets   []string  `json:"targets,omitempty"`   // route targets
	Stale     bool      `json:"stale,omitempty"`     // of a session that was lost, and not advertised again yet
	LeftOut   string    `json:"leftOut,omitempty"`   // why it is used nowhere
}

// An EVPNEthernetSegment is one that several VTEPs have a link to.
type EVPNEthernetSegment struct {
	ESI        string                 `json:"esi"`
	Mode       string                 `json:"mode"`                 // all-active or single-active
	VTEPs      []string               `json:"vteps,omitempty"`      // of peers
	Hosts      int                    `json:"hosts"`                // MACs of peers on it
	Port       string                 `json:"port,omitempty"`       // the node's; none if the node is not on it
	State      string                 `json:"state,omitempty"`      // of the port: up, waiting (others are to be heard first) or down
	Election   string                 `json:"election,omitempty"`   // of the VTEP that forwards, as all agree: modulo, hrw or preference
	Candidates []string               `json:"candidates,omitempty"` // of the election, the node among them
	Segments   []EVPNDesignatedMember `json:"segments,omitempty"`   // that the port is a member of
}

// An EVPNDesignatedMember says whether the node is the one that forwards to a member.
type EVPNDesignatedMember struct {
	VNI     frame.VNI `json:"vni"`
	Forward bool      `json:"forward"`
}

// An EVPNDuplicate is a MAC that has moved too often.
type EVPNDuplicate struct {
	VNI  frame.VNI `json:"vni"`
	MAC  string    `json:"mac"`
	VTEP string    `json:"vtep,omitempty"` // where it stays; none: at the node
}

// An EVPNChange lets a MAC move again that has moved too often.
type EVPNChange struct {
	Op  string    `json:"op"` // Clear
	VNI frame.VNI `json:"vni"`
	MAC string    `json:"mac"`
}

// Clear is the operation of an EVPNChange.
const Clear = "clear"
