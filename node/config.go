package node

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

//go:generate go run ../internal/settings ..

// Config is what a node is to be: the whole of it. Its zero value is a node that does
// nothing. Names join the parts: segments name tunnels and ports, gateways name VRFs.
//
// docs/settings.md has the comments of all fields, in the order of a file.
type Config struct {
	Tunnels  []Tunnel  `json:"tunnels,omitempty"`  // VTEPs
	Ports    []Port    `json:"ports,omitempty"`    // devices, and existing interfaces
	Policies []Policy  `json:"policies,omitempty"` // what segments and members filter by
	Segments []Segment `json:"segments,omitempty"` // networks
	VRFs     []VRF     `json:"vrfs,omitempty"`     // what gateways route by

	vswitch.Config // but for Log, which is that of Options

	Gateway l3.GatewayConfig `json:"gateway,omitzero"` // limits of all gateways
	Capture capture.Config   `json:"capture,omitzero"` // how what passes through ports and tunnels is captured, from the next start on
	Control Control          `json:"control,omitzero"` // how the node is asked and told
}

// Control is how a running node is asked and told.
type Control struct {
	Socket string `json:"socket,omitempty"` // path of the Unix socket, in a folder that is there; none without
	Mode   string `json:"mode,omitempty"`   // its permissions in octal, default "0600"
}

// A Tunnel is a VTEP: its settings, and those of its sockets. The underlays are "udp" and "packet";
// a tunnel of type "ipip" has raw sockets instead, called ipip below.
type Tunnel struct {
	vtep.Config // Name: needed, one for each tunnel; Port: UDP port of the node and of its peers; default 4789, in type "gpe" 4790

	Underlay Underlay   `json:"underlay,omitzero"` // what its packets come in and leave through
	Local    netip.Addr `json:"local"`             // needed: outer source, an address of this host, IPv4 or IPv6; over "packet" best one that no host has
	Local6   netip.Addr `json:"local6,omitzero"`   // its IPv6 address beside an IPv4 Local: the tunnel has peers of both families then

	PeerSettings []PeerSetting `json:"peerSettings,omitempty"` // what is different towards single peers, whoever lists them and when they are learned

	underlay.UDPConfig

	// Those of afpacket.Config:

	Prefix  netip.Prefix `json:"prefix,omitzero"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	MAC     frame.MAC    `json:"mac,omitzero"`

	Prefix6  netip.Prefix `json:"prefix6,omitzero"`  // over "packet": as Prefix is of Local, of Local6
	Gateway6 netip.Addr   `json:"gateway6,omitzero"` // over "packet": as Gateway is of Local, of Local6
}

// A PeerSetting is what is different towards one peer of a tunnel. What is left out, or 0, is as the
// tunnel has it.
type PeerSetting struct {
	vtep.PeerConfig
	underlay.TxConfig
}

// Check returns what is wrong with it, whatever the tunnel is.
func (p *PeerSetting) Check() error {
	w := setting.Of("node: PeerSetting")
	w.Add("", p.PeerConfig.Check())
	w.Add("", p.TxConfig.Check())
	return w.Err()
}

// A Port is a device that the node makes or opens, or with type "packet" an existing interface.
type Port struct {
	Name string   `json:"name"`          // needed: of the device
	Type PortType `json:"type,omitzero"` // what it is

	port.DeviceConfig // MTU: bytes of an IP packet, as in "ip link set mtu"; default what fits the tunnels of its segments, without any what the device has

	// Those of port.PacketConfig:

	Promiscuous bool `json:"promiscuous,omitzero"`
	RecvBuffer  int  `json:"recvBuffer,omitzero"`
	SendBuffer  int  `json:"sendBuffer,omitzero"`

	IP bool `json:"ip,omitzero"` // of type PortOwn: it carries IP without Ethernet, as a TUN does
}

// bare reports whether the port carries IP without Ethernet.
func (p *Port) bare() bool { return p.Type == PortTUN || p.Type == PortOwn && p.IP }

// A Policy is rules under a name: what is to pass, and what not.
type Policy struct {
	Name string `json:"name"` // needed: by which segments and members call it
	policy.Config
}

// A Segment is one network of Ethernet (a VSI), or of IP alone.
type Segment struct {
	VNI     frame.VNI       `json:"vni"`               // needed: 0 to 16777215
	Tunnel  string          `json:"tunnel,omitzero"`   // name of the tunnel that it is in; none for a segment of this node only
	Flood   []netip.Addr    `json:"flood,omitempty"`   // peers that get broadcast, multicast and unknown unicast; a multicast group stands for all that are in it, and is joined
	Hub     bool            `json:"hub,omitzero"`      // peers reach each other through this node
	Tunnels []SegmentTunnel `json:"tunnels,omitempty"` // instead of Tunnel, Flood and Hub, where the segment is in several
	Members []Member        `json:"members,omitempty"` // ports

	vswitch.VSIConfig

	CrossConnect netip.Addr      `json:"crossConnect,omitzero"` // peer, of a tunnel for IP, that the segment's one port, for IP, is joined with: packets pass as they are, TTL and all, and the hosts route
	FDB          []FDB           `json:"fdb,omitempty"`         // static entries
	Neighbours   *Neighbours     `json:"neighbours,omitzero"`   // ARP and ND; none without, but a gateway's own
	Gateway      *SegmentGateway `json:"gateway,omitzero"`      // none without
	Policy       string          `json:"policy,omitzero"`       // name of a policy for what comes in and goes out, on members and tunnels
}

// A Member is a port in a segment.
type Member struct {
	Port     string `json:"port"`              // needed: its name
	VLAN     int    `json:"vlan,omitzero"`     // tag of the frames on the port, 1 to 4094; 0 = untagged
	Isolated bool   `json:"isolated,omitzero"` // kept apart from other such members, through the gateway too: in Group 2

	vswitch.AttachConfig // Hub: of tunnels only; Group: nothing passes between members of one group, 1 to 255; tunnels are in 1, isolated members in 2; 0 = none

	Guard    *policy.GuardConfig `json:"guard,omitzero"`    // what hosts behind it may say they are; none without
	Policy   string              `json:"policy,omitzero"`   // name of a policy for what comes in and goes out here, asked before that of the segment
	MSSClamp int                 `json:"mssClamp,omitzero"` // MTU that TCP connections from here are made for, 68 to 65535; 0 = as they ask

	NeighbourMode *arp.Mode `json:"neighbourMode,omitzero"` // what becomes of ARP and ND from here; default as in the segment, which needs neighbours or a gateway with a MAC
}

// An FDB entry is static: where a MAC is, a peer, several of them, a port, or nowhere. One of Remote,
// Remotes, Port and Filter is needed.
type FDB struct {
	MAC     frame.MAC    `json:"mac"`               // needed: of one host; or of a multicast group, whose frames then go to one place and are not flooded
	Remote  netip.Addr   `json:"remote,omitzero"`   // peer that it is behind
	Remotes []netip.Addr `json:"remotes,omitempty"` // or peers, two or more, that it is behind all of: each flow goes to one (RFC 8365, section 8)
	VNI     frame.VNI    `json:"vni,omitzero"`      // what Remote or Remotes call the network, 1 to 16777215; 0 = what the tunnel calls it here
	Tunnel  string       `json:"tunnel,omitzero"`   // name of the tunnel of Remote or Remotes, where the segment is in several
	Port    string       `json:"port,omitzero"`     // name of the member that it is behind
	Filter  bool         `json:"filter,omitzero"`   // frames to and from it are dropped
	Sticky  bool         `json:"sticky,omitzero"`   // says what holds anyway: no host moves an entry of the file (RFC 7432, section 15.2)
}

// Neighbours is ARP and ND of a segment: what answers, and what it knows. Beside a gateway
// nothing is learned from senders outside its prefixes.
type Neighbours struct {
	arp.Config // MAC: the node's own: of what arp.Proxy asks in its own name, and of what Refresh asks; default the gateway's
	arp.TableConfig
	Static []Neighbour `json:"static,omitempty"` // entries that no host changes
}

// A Neighbour is a host whose MAC does not change.
type Neighbour struct {
	IP  netip.Addr `json:"ip"`  // needed
	MAC frame.MAC  `json:"mac"` // needed
}

// A SegmentGateway is an interface of a VRF in a segment. Without a MAC it is one for IP alone.
type SegmentGateway struct {
	VRF string `json:"vrf"` // needed: its name
	Gateway
}

// Gateway is the settings of a gateway's interface.
type Gateway = l3.InterfaceConfig

// A VRF is a table of routes. Those to the prefixes of its gateways are not written.
type VRF struct {
	Name   string  `json:"name"`             // needed
	Routes []Route `json:"routes,omitempty"` // to prefixes
	Pools  []Pool  `json:"pools,omitempty"`  // of addresses that are given to nodes in blocks
}

// A Route is to a prefix.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`        // needed: the longest that matches counts
	Via    []Hop        `json:"via,omitempty"` // ways on, between which flows are spread; without any its packets are dropped
}

// A Hop is a way on: a neighbour in a segment (IP), a router behind a tunnel (MAC and
// Remote), a node of a tunnel for IP (Remote), or, with the segment alone, all that is behind
// its TUN.
type Hop struct {
	Segment frame.VNI  `json:"segment"`          // needed: its VNI
	IP      netip.Addr `json:"ip,omitzero"`      // of a neighbour there
	MAC     frame.MAC  `json:"mac,omitzero"`     // of a router behind Remote
	Remote  netip.Addr `json:"remote,omitzero"`  // peer of the tunnel
	VNI     frame.VNI  `json:"vni,omitzero"`     // with MAC: what the router calls the segment's network, 1 to 16777215; 0 = what the tunnel calls it here
	Tunnel  string     `json:"tunnel,omitempty"` // name of the tunnel of Remote, where the segment is in several
}

// A Pool is routes to blocks of addresses that nodes have.
type Pool struct {
	Mode    l3.Encapsulation `json:"mode"`              // when packets for another node go through its tunnel; default "always"
	Subnets []netip.Prefix   `json:"subnets,omitempty"` // that this node is in
	Blocks  []Block          `json:"blocks,omitempty"`  // and who has them
}

// A Block is addresses of one pool.
type Block struct {
	Prefix netip.Prefix `json:"prefix"`          // needed
	Nodes  []BlockNode  `json:"nodes,omitempty"` // that have it; without any it is this node's
}

// A BlockNode has a block. Which of the two ways is taken is the mode of the pool to say.
type BlockNode struct {
	Address netip.Addr `json:"address"`          // needed: of the node, which is in the pool's subnets or not
	Tunnel  *Hop       `json:"tunnel,omitempty"` // way through the tunnel
	Direct  *Hop       `json:"direct,omitempty"` // way without
}

// PortType is what a [Port] is.
type PortType uint8

// Types of ports.
const (
	PortTAP    PortType = iota // a device for Ethernet (port.OpenTAP)
	PortTUN                    // a device for IP (port.OpenTUN)
	PortPacket                 // an existing interface, past the host's stack (port.OpenPacket)
	PortOwn                    // a port that the program around the node has made (VSI.Add): in no file
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
	UnderlayUDP    Underlay = iota // UDP sockets (underlay.ListenUDP)
	UnderlayPacket                 // the interface that bind names, past the host's stack (afpacket.Listen)
)

var underlayWords = []string{UnderlayUDP: "udp", UnderlayPacket: "packet"}

// String returns the underlay as settings call it.
func (u Underlay) String() string { return setting.Name(underlayWords, u) }

// MarshalText implements [encoding.TextMarshaler].
func (u Underlay) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what String writes.
func (u *Underlay) UnmarshalText(text []byte) error { return setting.Parse(u, underlayWords, text) }
