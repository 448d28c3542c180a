package node

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// Config is what a node is to be: the whole of it. Its zero value is a node that does
// nothing. Names join the parts: segments name tunnels and ports, gateways name VRFs.
type Config struct {
	Tunnels  []Tunnel  `json:"tunnels,omitempty"`
	Ports    []Port    `json:"ports,omitempty"`
	Policies []Policy  `json:"policies,omitempty"`
	Segments []Segment `json:"segments,omitempty"`
	VRFs     []VRF     `json:"vrfs,omitempty"`
	MaxMACs  int       `json:"maxMACs,omitzero"` // learned MACs in all; 0 = only each segment's limit counts
	Control  Control   `json:"control,omitzero"`
}

// Control is how a running node is asked and told.
type Control struct {
	Socket string `json:"socket,omitempty"` // path of the Unix socket; none without
	Mode   string `json:"mode,omitempty"`   // its permissions in octal, default "0600"
}

// A Tunnel is a VTEP: its settings, and those of its sockets.
type Tunnel struct {
	vtep.Config
	Underlay Underlay   `json:"underlay,omitzero"` // default UnderlayUDP
	Local    netip.Addr `json:"local"`             // outer source, an address of this host, of UnderlayPacket best one that it has not

	underlay.UDPConfig // of which other underlays have their part

	Prefix  netip.Prefix `json:"prefix,omitzero"`  // of underlay.PacketConfig, like the next two
	Gateway netip.Addr   `json:"gateway,omitzero"` // router to all that is not in Prefix
	MAC     frame.MAC    `json:"mac,omitzero"`
}

// A Port is a device, or with PortPacket an interface that is there.
type Port struct {
	Name string   `json:"name"`
	Type PortType `json:"type,omitzero"` // default PortTAP

	port.DeviceConfig // of which an interface has its part

	Promiscuous bool `json:"promiscuous,omitzero"` // of port.PacketConfig, like the next two
	RecvBuffer  int  `json:"recvBuffer,omitzero"`
	SendBuffer  int  `json:"sendBuffer,omitzero"`

	IP bool `json:"ip,omitzero"` // of PortOwn: it carries IP without Ethernet, as a TUN does
}

// bare reports whether the port carries IP without Ethernet.
func (p *Port) bare() bool { return p.Type == PortTUN || p.IP }

// A Policy is rules under a name.
type Policy struct {
	Name string `json:"name"`
	policy.Config
}

// A Segment is one VSI.
type Segment struct {
	VNI     frame.VNI       `json:"vni"`
	Tunnel  string          `json:"tunnel,omitzero"` // that it is in; none for a segment of this node only
	Flood   []netip.Addr    `json:"flood,omitempty"` // peers, or multicast groups, that get what is flooded
	Hub     bool            `json:"hub,omitzero"`
	Tunnels []SegmentTunnel `json:"tunnels,omitempty"` // instead of these three, where there are several
	Members []Member        `json:"members,omitempty"`

	vswitch.VSIConfig

	FDB        []FDB           `json:"fdb,omitempty"`
	Neighbours *Neighbours     `json:"neighbours,omitzero"`
	Gateway    *SegmentGateway `json:"gateway,omitzero"`
	Policy     string          `json:"policy,omitzero"` // what comes in, on members and from the tunnel
}

// A Member is a port in a segment.
type Member struct {
	Port     string `json:"port"`
	VLAN     int    `json:"vlan,omitzero"`     // 0: untagged
	Isolated bool   `json:"isolated,omitzero"` // from other such members, through the gateway too: Group is vswitch.GroupIsolated

	vswitch.AttachConfig

	Guard    *policy.GuardConfig `json:"guard,omitzero"`    // what it may say it is
	Policy   string              `json:"policy,omitzero"`   // before that of the segment
	MSSClamp int                 `json:"mssClamp,omitzero"` // MTU that TCP connections from here are made for; 0 = as they ask
}

// An FDB entry is static.
type FDB struct {
	MAC    frame.MAC  `json:"mac"`
	Remote netip.Addr `json:"remote,omitzero"` // behind that peer,
	Tunnel string     `json:"tunnel,omitzero"` // of that tunnel, where the segment is in several,
	Port   string     `json:"port,omitzero"`   // or on that port
	Sticky bool       `json:"sticky,omitzero"`
}

// Neighbours is ARP and ND of a segment: what answers, and what it knows.
type Neighbours struct {
	arp.Config
	arp.TableConfig
	Static []Neighbour `json:"static,omitempty"`
}

// A Neighbour is a static one.
type Neighbour struct {
	IP  netip.Addr `json:"ip"`
	MAC frame.MAC  `json:"mac"`
}

// A SegmentGateway is an interface of a VRF in a segment. Without a MAC it is one for IP alone.
type SegmentGateway struct {
	VRF string `json:"vrf"`
	Gateway
}

// Gateway is the settings of a gateway's interface.
type Gateway = l3.InterfaceConfig

// A VRF is a table of routes.
type VRF struct {
	Name   string  `json:"name"`
	Routes []Route `json:"routes,omitempty"`
	Pools  []Pool  `json:"pools,omitempty"`
}

// A Route is to a prefix; without Via such packets are dropped.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`
	Via    []Hop        `json:"via,omitempty"`
}

// A Hop is a way on: a neighbour in a segment (IP), a router behind a tunnel (MAC and
// Remote), a node of a tunnel for IP (Remote), or all that is behind an IP port.
type Hop struct {
	Segment frame.VNI  `json:"segment"`
	IP      netip.Addr `json:"ip,omitzero"`
	MAC     frame.MAC  `json:"mac,omitzero"`
	Remote  netip.Addr `json:"remote,omitzero"`
	Tunnel  string     `json:"tunnel,omitempty"` // of Remote, where the segment is in several
}

// A Pool is routes to blocks that other nodes have.
type Pool struct {
	Mode    l3.Encapsulation `json:"mode"`
	Subnets []netip.Prefix   `json:"subnets,omitempty"` // of this node
	Blocks  []Block          `json:"blocks,omitempty"`
}

// A Block is addresses of one pool; without Nodes they are this node's.
type Block struct {
	Prefix netip.Prefix `json:"prefix"`
	Nodes  []BlockNode  `json:"nodes,omitempty"`
}

// A BlockNode has a block.
type BlockNode struct {
	Address netip.Addr `json:"address"`
	Tunnel  *Hop       `json:"tunnel,omitempty"`
	Direct  *Hop       `json:"direct,omitempty"`
}

// PortType is what a [Port] is.
type PortType uint8

// Types of ports.
const (
	PortTAP    PortType = iota // Ethernet: port.OpenTAP
	PortTUN                    // IP: port.OpenTUN
	PortPacket                 // an interface that is there: port.OpenPacket
	PortOwn                    // the program's own: see VSI.Add
)

var portWords = []string{PortTAP: "tap", PortTUN: "tun", PortPacket: "packet", PortOwn: "own"}

// String returns the type as settings call it.
func (t PortType) String() string { return setting.Name(portWords, t) }

// MarshalText implements [encoding.TextMarshaler].
func (t PortType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what String writes.
func (t *PortType) UnmarshalText(text []byte) error { return setting.Parse(t, portWords, text) }

// Underlay is what a [Tunnel] goes over. IP-in-IP has raw sockets instead.
type Underlay uint8

// Underlays.
const (
	UnderlayUDP    Underlay = iota // sockets: underlay.ListenUDP
	UnderlayPacket                 // an interface, past the host's stack: underlay.ListenPacket
)

var underlayWords = []string{UnderlayUDP: "udp", UnderlayPacket: "packet"}

// String returns the underlay as settings call it.
func (u Underlay) String() string { return setting.Name(underlayWords, u) }

// MarshalText implements [encoding.TextMarshaler].
func (u Underlay) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what String writes.
func (u *Underlay) UnmarshalText(text []byte) error { return setting.Parse(u, underlayWords, text) }
