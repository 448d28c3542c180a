package api

import (
	"encoding/json"

	"github.com/vxswitch/vxswitch/frame"
)

// An FDBEntry is where a MAC of a segment is. Dest is a port's name, or a peer's address, behind which
// "vni N" is what the peer calls the network if it calls it otherwise; of several peers it is
// "group of" and a list of these; and it may be "switch" or "filter".
type FDBEntry struct {
	VNI    frame.VNI `json:"vni"`
	MAC    string    `json:"mac"`
	Dest   string    `json:"dest"`
	Dev    string    `json:"dev"`             // the name of the port or tunnel; "" of a filter
	Origin string    `json:"origin"`          // learned, static, control
	Age    float64   `json:"age"`             // seconds since it was last heard; of what was not, since the node began
	Flags  []string  `json:"flags,omitempty"` // sticky, filter, anycast, frozen
}

// A Neighbour is an address of a segment and its MAC.
type Neighbour struct {
	VNI    frame.VNI `json:"vni"`
	IP     string    `json:"ip"`
	MAC    string    `json:"mac"`
	Origin string    `json:"origin"` // snooped, static, control
	State  string    `json:"state"`  // permanent, reachable, probing, duplicate
	Age    float64   `json:"age"`    // as of an FDBEntry
}

// A Route says where packets for a prefix go.
type Route struct {
	VRF    string   `json:"vrf"`
	Prefix string   `json:"prefix"`
	Kind   string   `json:"kind"` // connected, via, blackhole
	Via    []string `json:"via"`  // next hops, "vni 10 via 10.0.10.9"; of what is connected, "vni 10"
}

// A VTEP is a tunnel and its peers.
type VTEP struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`
	Local   string            `json:"local"`            // address, and port if it has one
	Local6  string            `json:"local6,omitempty"` // the same over IPv6, of a tunnel with both families
	MTU     int               `json:"mtu"`              // longest inner frame, from the destination MAC on
	Tx      Count             `json:"tx"`               // copies sent
	Learned int               `json:"learned"`
	Lost    map[string]uint64 `json:"lost"` // copies not sent of frames of which others were, by reason
	Peers   []Peer            `json:"peers"`
}

// A Peer is the far end of a tunnel.
type Peer struct {
	Tunnel string `json:"tunnel"`
	Addr   string `json:"addr"`
	Listed bool   `json:"listed"` // configured, as opposed to learned
	MTU    int    `json:"mtu"`
	Rx     uint64 `json:"rx"` // frames
	Tx     uint64 `json:"tx"`
}

// Count is frames and their bytes.
type Count struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
}

// Flooded is flooded frames by class.
type Flooded struct {
	Broadcast uint64 `json:"broadcast"`
	Multicast uint64 `json:"multicast"`
	Unknown   uint64 `json:"unknown"`
}

// A Port is one port or tunnel of the switch. Port 0 is the switch itself.
type Port struct {
	Port      int               `json:"port"`
	Name      string            `json:"name"`
	Type      string            `json:"type"` // tap, tun, packet; of a tunnel vxlan, gpe, ipip; switch
	MTU       int               `json:"mtu"`  // longest frame
	Members   []Member          `json:"members"`
	Rx        Count             `json:"rx"`
	Accepted  Count             `json:"accepted"` // of rx, what was not dropped
	Tx        Count             `json:"tx"`
	Forwarded uint64            `json:"forwarded"`
	Replied   uint64            `json:"replied"`
	Consumed  uint64            `json:"consumed"`
	Flood     Flooded           `json:"flood"`
	RxDrops   map[string]uint64 `json:"rx_drops"` // by reason
	TxDrops   map[string]uint64 `json:"tx_drops"`
}

// A Member is a segment that a port is in.
type Member struct {
	VNI frame.VNI `json:"vni"`
	Tag uint32    `json:"tag"` // VLAN, or of a tunnel the VNI on the wire; 0 = none
}

// A Flood is who gets what is flooded in a segment.
type Flood struct {
	VNI    frame.VNI `json:"vni"`
	Tunnel string    `json:"tunnel"`
	Peers  []string  `json:"peers"`
}

// A Policy is a policy and what it counted, or with Port a member's guard and what it dropped.
type Policy struct {
	Name  string          `json:"name"`
	VNI   frame.VNI       `json:"vni,omitempty"`
	Port  string          `json:"port,omitempty"`
	Stats json.RawMessage `json:"stats"` // of package policy: Stats, or GuardStats
}

// A Drop is frames of one port that were dropped for one reason.
type Drop struct {
	Where     string `json:"where"`     // the port or tunnel
	Direction string `json:"direction"` // rx: what came in there; tx: copies that were to leave there
	Reason    string `json:"reason"`    // too-big-answered: too long for their way out, and their senders were told
	Frames    uint64 `json:"frames"`
}

// Stats is the line of statistics.
type Stats struct {
	Rx    Count             `json:"rx"` // frames decapsulated and accepted, of all tunnels
	Tx    Count             `json:"tx"` // copies sent into tunnels
	Flood Flooded           `json:"flood"`
	Drops map[string]uint64 `json:"drops"`

	TooBig frame.TooBigStats `json:"toobig,omitzero"` // frames too long for their way out, by what their senders were told

	FDB   []FDBEntry  `json:"fdb"`
	Neigh []Neighbour `json:"neigh"`
	Peers []Peer      `json:"peers"`
}
