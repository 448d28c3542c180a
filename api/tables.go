package api

import (
	"encoding/json"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An FDBEntry is an entry of an FDB. Dest is the name of a port, the address of a peer (with "vni N" if its VNI differs),
// "group of" and a list of peers, "switch" or "filter".
type FDBEntry struct {
	VNI     frame.VNI `json:"vni"`
	MAC     string    `json:"mac"`
	Dest    string    `json:"dest"`
	Dev     string    `json:"dev"`               // name of the port or tunnel; "" for a filter
	VLAN    uint32    `json:"vlan,omitempty"`    // of the port in this segment; 0 = untagged
	Service bool      `json:"service,omitempty"` // the VLAN is that of a service tag (802.1ad)
	Origin  string    `json:"origin"`            // learned, static, control
	Proto   string    `json:"proto,omitempty"`   // owner of the row that the entry is from: config, vxsctl or a control plane
	Age     float64   `json:"age"`               // seconds since it was last seen, or since the node started
	Flags   []string  `json:"flags,omitempty"`   // sticky, filter, anycast, frozen
}

// A Neighbour is an IP address in a segment with its MAC.
type Neighbour struct {
	VNI    frame.VNI `json:"vni"`
	IP     string    `json:"ip"`
	MAC    string    `json:"mac"`
	Origin string    `json:"origin"`          // snooped, static, control
	Proto  string    `json:"proto,omitempty"` // as for an FDBEntry
	State  string    `json:"state"`           // permanent, reachable, probing, duplicate
	Age    float64   `json:"age"`             // as for an FDBEntry
}

// A Listener is a port, or the peer of a tunnel, with a host that listens to a multicast group, or with a multicast router.
type Listener struct {
	VNI   frame.VNI `json:"vni"`
	Group string    `json:"group,omitempty"` // "" for all groups
	Dest  string    `json:"dest"`            // as for an FDBEntry
	Dev   string    `json:"dev"`             // likewise
	Left  float64   `json:"left"`            // seconds until it is forgotten, unless it is permanent
	Why   []string  `json:"why,omitempty"`   // it gets all groups: router4, router6: a multicast router or querier is there; full: it has no room for another group

	Permanent bool `json:"permanent,omitempty"` // it is one of multicastRouters of the segment
}

// A Route is a route to a prefix.
type Route struct {
	VRF    string   `json:"vrf"`
	Prefix string   `json:"prefix"`
	Kind   string   `json:"kind"`            // connected, via, blackhole
	Proto  string   `json:"proto,omitempty"` // as for an FDBEntry
	Via    []string `json:"via"`             // next hops, "vni 10 via 10.0.10.9" or "vni 5 mac 02:00:00:00:00:01 peer 192.0.2.2:4789"; for connected, "vni 10"
}

// A VTEP is a tunnel with its peers.
type VTEP struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`
	Local   string            `json:"local"`            // address, and port if it has one
	Local6  string            `json:"local6,omitempty"` // IPv6 address, for a tunnel of both families
	MTU     int               `json:"mtu"`              // longest inner frame, including the Ethernet header
	Tx      frame.Count       `json:"tx"`               // copies sent
	Learned int               `json:"learned"`
	Lost    map[string]uint64 `json:"lost"` // lost copies of frames by reason
	Peers   []Peer            `json:"peers"`
}

// A Peer is a peer of a tunnel.
type Peer struct {
	Tunnel string `json:"tunnel"`
	Addr   string `json:"addr"`
	Listed bool   `json:"listed"`        // configured, not learned
	Dead   bool   `json:"dead,omitzero"` // as BFD has found
	MTU    int    `json:"mtu"`
	Rx     uint64 `json:"rx"` // frames
	Tx     uint64 `json:"tx"`

	RxBytes   uint64     `json:"rx_bytes"`
	TxBytes   uint64     `json:"tx_bytes"`
	LastHeard *time.Time `json:"last_heard,omitempty"` // when the last frame of rx came, to the second
}

// A Port is one port or tunnel of the switch, or one of the configuration that is down or in no segment. Port 0 is the switch
// itself.
type Port struct {
	Port      int               `json:"port"` // its number; -1 while it is down or unused
	Name      string            `json:"name"`
	Type      string            `json:"type"` // one of PortTypes; vxlan, gpe, ipip, fou for tunnels; switch
	MTU       int               `json:"mtu"`  // longest frame
	Members   []Member          `json:"members"`
	Rx        frame.Count       `json:"rx"`
	Accepted  frame.Count       `json:"accepted"` // rx without drops
	Tx        frame.Count       `json:"tx"`
	Forwarded uint64            `json:"forwarded"`
	Replied   uint64            `json:"replied"`
	Consumed  uint64            `json:"consumed"`
	Flood     vswitch.Flooded   `json:"flood"`
	RxDrops   map[string]uint64 `json:"rx_drops"` // by reason
	TxDrops   map[string]uint64 `json:"tx_drops"`

	Owner string `json:"owner,omitempty"` // program that has added it, see PortChange

	State string     `json:"state"`           // up; unused: in no segment; down: its device has failed, or could not be opened again
	Error string     `json:"error,omitempty"` // why it is down
	Since *time.Time `json:"since,omitempty"` // of state down
	Retry *time.Time `json:"retry,omitempty"` // when the node tries to open it again
}

// A Member is a segment of a port.
type Member struct {
	VNI     frame.VNI `json:"vni"`
	Tag     uint32    `json:"tag"`               // VLAN ID, or for a tunnel the VNI; 0 = none
	Service bool      `json:"service,omitempty"` // the VLAN is that of a service tag (802.1ad)
}

// A Segment is a VNI with its counters, and those of each member.
type Segment struct {
	VNI     frame.VNI         `json:"vni"`
	Rx      frame.Count       `json:"rx"` // what came in and was not dropped, of all members that there are and were
	Tx      frame.Count       `json:"tx"` // copies that went out
	Flood   vswitch.Flooded   `json:"flood"`
	Drops   map[string]uint64 `json:"drops"` // by reason
	Members []SegmentMember   `json:"members"`
}

// A SegmentMember is a port or tunnel of a segment.
type SegmentMember struct {
	Port    string      `json:"port"`
	VLAN    uint32      `json:"vlan,omitempty"`    // of the port in this segment; 0 = untagged
	Service bool        `json:"service,omitempty"` // the VLAN is that of a service tag (802.1ad)
	Rx      frame.Count `json:"rx"`
	Tx      frame.Count `json:"tx"`
}

// A Flood is the flood list of a segment in a tunnel.
type Flood struct {
	VNI    frame.VNI `json:"vni"`
	Tunnel string    `json:"tunnel"`
	Peers  []string  `json:"peers"` // those that are not for one group alone

	Members []FloodMember `json:"members"` // the peers with their settings, and those for one group each
}

// A FloodMember is a peer of a flood list.
type FloodMember struct {
	Peer  string   `json:"peer"`
	MAC   string   `json:"mac,omitempty"`   // of a group: it gets the frames to this MAC, as do no peers without it
	Proto []string `json:"proto,omitempty"` // owners of rows for it
	Flags []string `json:"flags,omitempty"` // no-broadcast, no-unknown: frames that it does not get
}

// A BFD is a session of Bidirectional Forwarding Detection.
type BFD struct {
	Proto       string           `json:"proto,omitempty"`  // with a peer of this control plane, such as "evpn", or
	Tunnel      string           `json:"tunnel,omitempty"` // with a peer of this tunnel, or
	VRF         string           `json:"vrf,omitempty"`    // with a next hop of routes of this VRF
	VNI         frame.VNI        `json:"vni,omitempty"`    // on the interface of this segment
	Local       string           `json:"local"`
	Peer        string           `json:"peer"`
	Status      string           `json:"status"` // unknown, alive or dead: what routes and groups go by
	State       string           `json:"state"`
	Diagnostic  string           `json:"diagnostic"`
	RemoteState string           `json:"remote_state"`
	Since       time.Time        `json:"since"`     // of the state
	Interval    float64          `json:"interval"`  // between packets, in seconds, as agreed
	Detection   float64          `json:"detection"` // in seconds; 0 while nothing is heard
	Stats       bfd.SessionStats `json:"stats"`
	SendError   string           `json:"send_error,omitempty"` // of the last packet
}

// A Row is a row of a control plane that waits, or was refused.
type Row struct {
	Proto string     `json:"proto"` // its owner
	State string     `json:"state"` // waiting, or refused: one of the owner's last 16, perhaps accepted since
	Time  *time.Time `json:"time,omitempty"`
	Row   string     `json:"row"`
	Why   string     `json:"why"`
}

// A Policy has the statistics of a policy, or with Port those of the guard of a member.
type Policy struct {
	Name  string          `json:"name"`
	VNI   frame.VNI       `json:"vni,omitempty"`
	Port  string          `json:"port,omitempty"`
	Stats json.RawMessage `json:"stats"` // policy.Stats or policy.GuardStats
}

// A Drop counts the frames of a port that were dropped for a reason.
type Drop struct {
	Where     string `json:"where"`     // port or tunnel
	Direction string `json:"direction"` // rx: received there; tx: copies to send there
	Reason    string `json:"reason"`    // too-big-answered: too long for their egress, answered with an ICMP error
	Frames    uint64 `json:"frames"`
}

// Stats is a line of statistics.
type Stats struct {
	Rx    frame.Count       `json:"rx"` // frames decapsulated and accepted, of all tunnels
	Tx    frame.Count       `json:"tx"` // copies sent into tunnels
	Flood vswitch.Flooded   `json:"flood"`
	Drops map[string]uint64 `json:"drops"`

	TooBig frame.TooBigStats `json:"toobig,omitzero"` // frames too long for their egress, by answer

	FDB   []FDBEntry  `json:"fdb"`
	Neigh []Neighbour `json:"neigh"`
	Peers []Peer      `json:"peers"`
}

// Flows is what the kernel carries, and why it does not carry more; see package offload for the causes.
type Flows struct {
	Datapath string            `json:"datapath"`      // user or kernel
	Why      string            `json:"why,omitempty"` // user with "datapath": "auto": why not the kernel
	Carried  frame.Count       `json:"carried"`       // by all flows so far; a superframe is one frame
	Added    uint64            `json:"added"`
	Removed  uint64            `json:"removed"`
	Renewed  uint64            `json:"renewed"` // times that a decision was asked for again, and was the same
	Refused  map[string]uint64 `json:"refused"` // pairs of hosts that the kernel cannot carry, by cause, counted once a second
	Misses   map[string]uint64 `json:"misses"`  // frames that the programs have left to the switch, by cause; as lost, those that they have dropped
	Flows    []Flow            `json:"flows"`
}

// A Flow is a pair of hosts whose frames the kernel carries.
type Flow struct {
	VNI     frame.VNI   `json:"vni"`
	Src     string      `json:"src"`             // MAC
	Dst     string      `json:"dst"`             // MAC
	Tuple   string      `json:"tuple,omitempty"` // of the packets, where a policy judges, and the addresses of routed ones; else all of them
	Hop     string      `json:"hop,omitempty"`   // of routed packets, such as "vni 200 mac 02:00:00:00:00:01"; Dst is the gateway
	From    string      `json:"from"`            // name of a port, or address of a peer
	To      string      `json:"to"`
	Carried frame.Count `json:"carried"`
	Age     float64     `json:"age"`  // seconds since it was put
	Idle    float64     `json:"idle"` // seconds since the last frame
}
