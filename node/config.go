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
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// Config is the complete configuration of a node. The zero value is a node that does nothing. Segments refer to tunnels
// and ports by name, gateways to VRFs.
//
// docs/settings.md lists all fields in the order of a file.
type Config struct {
	Tunnels  []Tunnel  `json:"tunnels,omitempty"`  // VTEPs
	Ports    []Port    `json:"ports,omitempty"`    // devices and existing interfaces
	Policies []Policy  `json:"policies,omitempty"` // rules for segments and members
	Segments []Segment `json:"segments,omitempty"` // networks
	VRFs     []VRF     `json:"vrfs,omitempty"`     // routing tables of gateways

	vswitch.Config // without Log, which is in Options

	Gateway l3.GatewayConfig `json:"gateway,omitzero"` // limits of all gateways
	Capture capture.Config   `json:"capture,omitzero"` // packet capture, from its next start on
	Control Control          `json:"control,omitzero"` // control socket

	Datapath Datapath `json:"datapath,omitzero"` // where flows are carried that the switch has decided
}

// Control configures the control socket of a running node.
type Control struct {
	Socket string `json:"socket,omitempty"` // path of the Unix socket, whose directory is made if it is missing; default none
	Mode   string `json:"mode,omitempty"`   // permissions in octal; default "0600"
}

// A Tunnel is a VTEP with its sockets. The underlays are "udp" and "packet"; a tunnel of type "ipip" has raw sockets
// instead of UDP sockets, called ipip below.
type Tunnel struct {
	vtep.Config // Name: needed, unique; Port: UDP port of the node and of its peers; default 4789, for type "gpe" 4790, needed for type "fou"

	Underlay Underlay   `json:"underlay,omitzero"` // type of its sockets
	Local    netip.Addr `json:"local"`             // needed: outer source address, IPv4 or IPv6, of this host; over "packet" preferably one that no host has, which may be that of a gateway in a segment with the port of type "packet" on the same device: both share it, with the gateway's MAC and prefix
	Local6   netip.Addr `json:"local6,omitzero"`   // IPv6 address beside an IPv4 Local, for peers of both families

	PeerSettings []PeerSetting `json:"peerSettings,omitempty"` // settings of single peers, listed or learned

	BFD *BFD `json:"bfd,omitzero"` // probes the listed peers; default none

	underlay.UDPConfig

	// Those of afpacket.Config:

	Prefix  netip.Prefix `json:"prefix,omitzero"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	MAC     frame.MAC    `json:"mac,omitzero"`
	VLAN    uint16       `json:"vlan,omitzero"`

	Prefix6  netip.Prefix `json:"prefix6,omitzero"`  // over "packet": the Prefix of Local6
	Gateway6 netip.Addr   `json:"gateway6,omitzero"` // over "packet": the Gateway of Local6

	shared bool // the addresses are those of a gateway: see share.go
}

// A PeerSetting has the settings of one peer of a tunnel. What is left out or 0 is as the tunnel has it.
type PeerSetting struct {
	vtep.PeerConfig
	underlay.TxConfig
}

// Check returns the errors in the settings for any tunnel.
func (p *PeerSetting) Check() error {
	w := setting.Of("node: PeerSetting")
	w.Add("", p.PeerConfig.Check())
	w.Add("", p.TxConfig.Check())
	return w.Err()
}

// A Port is a device that the node makes or opens; with type "interface" or "packet" it is an existing interface.
type Port struct {
	Name string   `json:"name"`          // needed: name of the device
	Type PortType `json:"type,omitzero"` // type of the port

	port.DeviceConfig // MTU: longest IP packet in bytes, as in "ip link set mtu"; default what fits the tunnels of its segments, without tunnels and for an existing interface the MTU of the device

	// Those of port.PacketConfig:

	Promiscuous bool `json:"promiscuous,omitzero"`
	RecvBuffer  int  `json:"recvBuffer,omitzero"`
	SendBuffer  int  `json:"sendBuffer,omitzero"`

	IP bool `json:"ip,omitzero"` // for type PortOwn: it carries IP without Ethernet, as a TUN does

	Owner string `json:"owner,omitzero"` // program that has made the device and added the port: the node makes none and brings none up, and a port whose device is missing is down, also a new one; not in files
}

// bare reports whether the port carries IP without Ethernet.
func (p *Port) bare() bool { return p.Type == PortTUN || p.Type == PortOwn && p.IP }

// A Policy is a named set of rules.
type Policy struct {
	Name string `json:"name"` // needed: for segments and members
	policy.Config
}

// A Segment is an Ethernet network (a VSI), or an IP network without Ethernet.
type Segment struct {
	VNI     frame.VNI       `json:"vni"`               // needed: 0 to 16777215
	Tunnel  string          `json:"tunnel,omitzero"`   // name of its tunnel; none for a segment of this node only
	Flood   []netip.Addr    `json:"flood,omitempty"`   // peers that get broadcast, multicast and unknown unicast; the node joins a multicast group, which stands for its members
	Hub     bool            `json:"hub,omitzero"`      // forwards between peers
	Tunnels []SegmentTunnel `json:"tunnels,omitempty"` // several tunnels, instead of Tunnel, Flood and Hub
	Members []Member        `json:"members,omitempty"` // its ports

	vswitch.VSIConfig

	vtep.Marking // TOS: outer TOS or traffic class without its two ECN bits: 4 to 252 in steps of 4, vtep.Inherit, vtep.FromPriority, or vtep.TOSZero; 0 = as the peer or the tunnel has it

	CrossConnect netip.Addr      `json:"crossConnect,omitzero"` // peer, in a tunnel of type "ipip", "fou" or "gpe", to connect with the only port, an IP port: packets pass unchanged, with their TTL, and the hosts route
	FDB          []FDB           `json:"fdb,omitempty"`         // static entries
	Neighbours   *Neighbours     `json:"neighbours,omitzero"`   // ARP and ND suppression and proxy; default none, but a gateway resolves its own next hops
	Gateway      *SegmentGateway `json:"gateway,omitzero"`      // gateway of the segment; default none
	Multicast    *snoop.Config   `json:"multicast,omitzero"`    // IGMP and MLD snooping; default none: multicast is flooded. Isolated members, and others with a Group, may not act as queriers or multicast routers

	// MulticastRouters are the members and tunnels behind which there are multicast routers that do not say so: they get the frames of
	// all groups, and the reports of hosts. A member has the name that a static FDB entry calls it by. It needs Multicast.
	MulticastRouters []string `json:"multicastRouters,omitempty"`

	Policy string `json:"policy,omitzero"` // name of the policy for frames in and out, on members and tunnels
}

// A Member is a port in a segment, or what comes there with a tag, or matches.
type Member struct {
	Port     string `json:"port"`              // needed: name of the port, which may have several members in a segment, with different tags
	VLAN     int    `json:"vlan,omitzero"`     // VLAN ID on the port, 1 to 4094; 0 = untagged, and frames with a priority tag only
	Service  bool   `json:"service,omitzero"`  // VLAN is that of a service tag (IEEE 802.1ad, EtherType 0x88a8), the outer one of Q-in-Q; frames with another tag behind it need innerVLAN "pass" in the segment
	Isolated bool   `json:"isolated,omitzero"` // cannot reach other isolated members, also not through the gateway; it is in Group 2

	// AttachConfig.Match is a Matcher of the program's own, instead of Match.

	vswitch.AttachConfig // Hub: for tunnels only; Group: members of the same group, 1 to 255, cannot reach each other; tunnels are in 1, isolated members in 2; 0 = none

	Guard    *policy.GuardConfig `json:"guard,omitzero"`    // MACs and addresses that hosts behind it may use; default any
	Policy   string              `json:"policy,omitzero"`   // name of the policy for frames in and out here; applies before that of the segment
	MSSClamp int                 `json:"mssClamp,omitzero"` // MTU for which the MSS of TCP connections from here is clamped, 68 to 65535; 0 = off

	Match *policy.Match `json:"match,omitzero"` // takes only these of the frames that come with the tag; members of other segments may match others, and one without a match takes the rest; of several that match, the one with the lowest VNI takes a frame; default all

	NeighbourMode *arp.Mode `json:"neighbourMode,omitzero"` // ARP and ND mode of the member; default that of the segment, which must have neighbours or a gateway with a MAC
}

// FDB is a static FDB entry: a MAC behind a peer, behind several peers or behind a port, or a MAC that is dropped. One
// of Remote, Remotes, Port and Filter is needed.
type FDB struct {
	MAC     frame.MAC    `json:"mac"`               // needed: the MAC of one host, or of a multicast group to send to one destination instead of flooding
	Remote  netip.Addr   `json:"remote,omitzero"`   // peer with the MAC
	Remotes []netip.Addr `json:"remotes,omitempty"` // two or more peers with the MAC; each flow uses one (RFC 8365, section 8)
	VNI     frame.VNI    `json:"vni,omitzero"`      // VNI at Remote or Remotes, 1 to 16777215; 0 = the VNI of the tunnel here
	Tunnel  string       `json:"tunnel,omitzero"`   // name of the tunnel of Remote or Remotes, if the segment has several
	Port    string       `json:"port,omitzero"`     // name of the member with the MAC: its port, eth0; where the segment has several members of that port, eth0.20 for VLAN 20, eth0.s20 for service tag 20, eth0.0 for untagged frames. A port that has such a name itself comes first
	Filter  bool         `json:"filter,omitzero"`   // drops frames to and from the MAC
	Sticky  bool         `json:"sticky,omitzero"`   // has no effect here: learning never moves an entry of the file (RFC 7432, section 15.2)
}

// Neighbours configures ARP and ND of a segment. With a gateway, only senders in its prefixes are learned.
type Neighbours struct {
	arp.Config // MAC: source of the node's own requests, in mode arp.Proxy and for Refresh; default that of the gateway
	arp.TableConfig
	Static []Neighbour `json:"static,omitempty"` // static neighbours, which learning does not change
}

// A Neighbour is a static neighbour.
type Neighbour struct {
	IP  netip.Addr `json:"ip"`  // needed
	MAC frame.MAC  `json:"mac"` // needed
}

// A SegmentGateway is the interface of a VRF in a segment. Without a MAC it is for IP without Ethernet.
type SegmentGateway struct {
	VRF string `json:"vrf"`          // needed: name of the VRF
	BFD *BFD   `json:"bfd,omitzero"` // probes the next hops of routes on the interface; default none

	// Policy is the name of the policy for packets that are routed: Ingress for those from the segment, Egress for those to it. It
	// does not see what stays in the segment, or packets for the gateway itself; its rules have no MACs.
	Policy string `json:"policy,omitempty"`
	Gateway
}

// Gateway configures the interface of a gateway.
type Gateway = l3.InterfaceConfig

// A VRF is a routing table. It has the prefixes of its gateways without Routes.
type VRF struct {
	Name   string  `json:"name"`             // needed
	Routes []Route `json:"routes,omitempty"` // routes to prefixes
	Pools  []Pool  `json:"pools,omitempty"`  // addresses that are assigned to nodes in blocks
}

// A Route is a route to a prefix.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`        // needed: the longest match applies
	Via    []Hop        `json:"via,omitempty"` // next hops; flows are spread over them; without any, packets are dropped
}

// A Hop is a next hop: a neighbour in a segment (IP), a router behind a tunnel (MAC and Remote), a node of an IP
// tunnel (Remote), or the TUN of the segment (none of them).
type Hop struct {
	Segment frame.VNI  `json:"segment"`          // needed: its VNI
	IP      netip.Addr `json:"ip,omitzero"`      // address of a neighbour
	MAC     frame.MAC  `json:"mac,omitzero"`     // MAC of a router behind Remote
	Remote  netip.Addr `json:"remote,omitzero"`  // peer of the tunnel
	VNI     frame.VNI  `json:"vni,omitzero"`     // with MAC: VNI at the router, 1 to 16777215; 0 = the VNI of the tunnel here
	Tunnel  string     `json:"tunnel,omitempty"` // name of the tunnel of Remote, if the segment has several
	Weight  uint8      `json:"weight,omitzero"`  // its share of the route's flows, relative to those of the others, 1 to 255; 0 = 1
}

// A Pool is a range of addresses whose blocks are assigned to nodes.
type Pool struct {
	Mode    l3.Encapsulation `json:"mode"`              // when packets to another node use the tunnel; default "always"
	Subnets []netip.Prefix   `json:"subnets,omitempty"` // subnets of this node
	Blocks  []Block          `json:"blocks,omitempty"`  // blocks and their nodes
}

// A Block is a prefix of a pool.
type Block struct {
	Prefix netip.Prefix `json:"prefix"`          // needed
	Nodes  []BlockNode  `json:"nodes,omitempty"` // nodes with the block; default this node
}

// A BlockNode is a node with a block. The mode of the pool selects Tunnel or Direct.
type BlockNode struct {
	Address netip.Addr `json:"address"`          // needed: address of the node, to compare with the subnets of the pool
	Tunnel  *Hop       `json:"tunnel,omitempty"` // next hop through the tunnel
	Direct  *Hop       `json:"direct,omitempty"` // next hop without the tunnel
}

// PortType is the type of a [Port].
type PortType uint8

// Types of ports.
const (
	PortTAP       PortType = iota // Ethernet device (port.OpenTAP)
	PortTUN                       // IP device (port.OpenTUN)
	PortVeth                      // veth pair, whose end with the name is for a guest in another network namespace (port.OpenVeth); an existing veth is the node's end
	PortInterface                 // existing interface, taken from the host's network stack (port.OpenInterface)
	PortPacket                    // existing interface, bypassing the host's network stack, which receives the same frames (port.OpenPacket)
	PortOwn                       // port of the program (VSI.Add); not in files
)

var portWords = []string{PortTAP: "tap", PortTUN: "tun", PortVeth: "veth", PortInterface: "interface", PortPacket: "packet", PortOwn: "own"}

// String returns the type as settings call it.
func (t PortType) String() string { return setting.Name(portWords, t) }

// MarshalText implements [encoding.TextMarshaler].
func (t PortType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what String writes.
func (t *PortType) UnmarshalText(text []byte) error {
	if string(text) == portWords[PortOwn] {
		*t = PortOwn
		return nil
	}
	return setting.Parse(t, portWords[:PortOwn], text) // names the words for files
}

// Underlay is the type of the sockets of a [Tunnel].
type Underlay uint8

// Underlays.
const (
	UnderlayUDP    Underlay = iota // UDP sockets (underlay.ListenUDP), for IP-in-IP raw sockets
	UnderlayPacket                 // the interface that bind names, bypassing the host's network stack (afpacket.Listen)
)

var underlayWords = []string{UnderlayUDP: "udp", UnderlayPacket: "packet"}

// String returns the underlay as settings call it.
func (u Underlay) String() string { return setting.Name(underlayWords, u) }

// MarshalText implements [encoding.TextMarshaler].
func (u Underlay) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what String writes.
func (u *Underlay) UnmarshalText(text []byte) error { return setting.Parse(u, underlayWords, text) }
