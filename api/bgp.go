package api

import "time"

// A BGP is what the section bgp of the configuration does, or calico by BGP.
type BGP struct {
	State string     `json:"state"`           // running, failed; of calico starting, too
	Since time.Time  `json:"since"`           // of the state
	Error string     `json:"error,omitempty"` // with which a failed one has ended
	Again *time.Time `json:"again,omitempty"` // when a failed one is tried again

	AS          uint32         `json:"as"`                 // 0 while a section calico is starting
	RouterID    string         `json:"routerID"`           // "" likewise
	VRF         string         `json:"vrf"`                // of the routes
	Peers       int            `json:"peers"`              // by address, and those of a prefix while they are connected
	Established int            `json:"established"`        // of these
	Announced   []string       `json:"announced"`          // prefixes of ours
	Received    int            `json:"received"`           // routes that peers have announced
	Accepted    int            `json:"accepted"`           // of these: taken; others may have better ones for the rest
	Refused     map[string]int `json:"refused"`            // of Received, those that are not taken, by reason; of too-many, each time one was left out at the limit of all
	RowError    string         `json:"rowError,omitempty"` // about rows that the node refused last
}

// A BGPPeer is a BGP speaker that the node has a session with, or wants one.
type BGPPeer struct {
	Address  string         `json:"address"`
	AS       uint32         `json:"as"`
	State    string         `json:"state"`              // idle, connect, active, opensent, openconfirm, established
	Since    *time.Time     `json:"since,omitempty"`    // of an established session
	HoldTime float64        `json:"holdTime,omitempty"` // in seconds, as agreed, while there is a session
	BFD      string         `json:"bfd,omitempty"`      // of the path: unknown, alive, dead; none if it is not probed
	Routes   int            `json:"routes"`             // that it has announced
	Accepted int            `json:"accepted"`           // of these: taken; others may have better ones for the rest
	Refused  map[string]int `json:"refused"`            // of Routes, those that are not taken, by reason
	Received uint64         `json:"received"`           // messages
	Sent     uint64         `json:"sent"`               // messages
	Error    string         `json:"error,omitempty"`    // with which the last session has ended
}

// A BGPRoute is one of the best routes to a prefix that peers have announced, or one of the node.
type BGPRoute struct {
	Prefix  string `json:"prefix"`
	NextHop string `json:"nextHop"`
	Peer    string `json:"peer,omitempty"`    // none: the node itself
	PathID  uint32 `json:"pathID,omitempty"`  // of add-path (RFC 7911)
	Via     string `json:"via,omitempty"`     // way of packets, if it is taken, in the words of rows: "vni 200 ip 10.0.0.2" or "vni 100 vtep 10.0.0.3:0"
	Refused string `json:"refused,omitempty"` // why it is not
}
