package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
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
	MaxMACs  int       `json:"maxMACs,omitempty"` // learned MACs in all; 0 = only each segment's limit counts
	Control  Control   `json:"control,omitzero"`
}

// Control is how a running node is asked and told.
type Control struct {
	Socket string `json:"socket,omitempty"` // path of the Unix socket; none without
	Mode   string `json:"mode,omitempty"`   // its permissions in octal, default "0600"
}

// A Tunnel is a VTEP.
type Tunnel struct {
	Name     string        `json:"name"`
	Type     Type          `json:"type,omitempty"`     // vxlan, gpe, ipip; default vxlan
	Underlay Underlay      `json:"underlay,omitempty"` // udp, packet; default udp
	Local    netip.Addr    `json:"local"`              // outer source, an address of this host, of packet best one that it has not
	Port     uint16        `json:"port,omitempty"`     // UDP destination port; default 4789, gpe 4790
	SrcPorts Range         `json:"srcPorts,omitzero"`
	Mark     uint32        `json:"mark,omitempty"`
	Bind     string        `json:"bind,omitempty"`   // interface the sockets are bound to
	Prefix   netip.Prefix  `json:"prefix,omitzero"`  // packet only: who is on the link; default that of the interface
	Gateway  netip.Addr    `json:"gateway,omitzero"` // packet only: router to all others
	MAC      frame.MAC     `json:"mac,omitzero"`     // packet only; default that of the interface
	Queues   int           `json:"queues,omitempty"`
	MTU      int           `json:"mtu,omitempty"` // longest outer packet; default that of the interface
	Offload  *bool         `json:"offload,omitempty"`
	Checksum Checksum      `json:"udpChecksum,omitempty"` // auto, on, off
	ZeroSum6 bool          `json:"udp6ZeroChecksumRx,omitempty"`
	TTL      Inherit       `json:"ttl,omitempty"`
	TOS      Inherit       `json:"tos,omitempty"`
	DF       DF            `json:"df,omitempty"`    // set, unset, inherit
	ECN      ECN           `json:"ecn,omitempty"`   // normal, compat, rfc3168
	Peers    Peers         `json:"peers,omitempty"` // any, listed, listed-per-vni
	MaxPeers int           `json:"maxPeers,omitempty"`
	Reserved vtep.Reserved `json:"reserved,omitempty"` // rfc, strict, or a mask; default rfc
	GBP      bool          `json:"gbp,omitempty"`

	MulticastDevice string `json:"multicastDevice,omitempty"` // interface of multicast groups; default that of the local address
	GroupTTL        int    `json:"groupTTL,omitempty"`        // towards multicast groups; default 1
}

// A Port is a device.
type Port struct {
	Name        string    `json:"name"`
	Type        PortType  `json:"type,omitempty"` // tap, tun, packet; default tap
	MTU         int       `json:"mtu,omitempty"`  // of the device; not of a packet port
	MAC         frame.MAC `json:"mac,omitzero"`   // of the device; tap only
	Queues      int       `json:"queues,omitempty"`
	Offload     *bool     `json:"offload,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Promiscuous bool      `json:"promiscuous,omitempty"` // packet only
}

// A Policy is rules under a name.
type Policy struct {
	Name string `json:"name"`
	policy.Config
}

// A Segment is one VSI.
type Segment struct {
	VNI        frame.VNI       `json:"vni"`
	Tunnel     string          `json:"tunnel,omitempty"` // that it is in; none for a segment of this node only
	Flood      []netip.Addr    `json:"flood,omitempty"`  // peers, or multicast groups, that get what is flooded
	Hub        bool            `json:"hub,omitempty"`
	Tunnels    []SegmentTunnel `json:"tunnels,omitempty"` // instead of these three, where there are several
	Members    []Member        `json:"members,omitempty"`
	NoLearning bool            `json:"noLearning,omitempty"`
	Ageing     Duration        `json:"ageing,omitempty"` // default 300s, 0s is never
	MaxMACs    int             `json:"maxMACs,omitempty"`
	Evict      *bool           `json:"evict,omitempty"`   // default true; false: a full table learns nothing new
	NoFlood    []Class         `json:"noFlood,omitempty"` // broadcast, multicast, unknown
	Storm      Storm           `json:"storm,omitzero"`    // of all that is flooded
	Freeze     uint8           `json:"freeze,omitempty"`  // moves in 180 s after which a MAC stays where it was, for 180 s; 0 is never
	InnerVLAN  InnerVLAN       `json:"innerVLAN,omitempty"`

	ForwardBridgeGroup bool     `json:"forwardBridgeGroup,omitempty"` // 01:80:c2:00:00:00-0f as other multicast, so that STP sees loops
	Flaps              uint8    `json:"flaps,omitempty"`              // moves of a MAC in a second, beyond which it is told of; default 10
	FlapHold           Duration `json:"flapHold,omitempty"`           // a member that it moves to is taken out so long; default never

	RouteIsolated bool `json:"routeIsolated,omitempty"` // isolated members reach each other through the gateway

	FDB        []FDB       `json:"fdb,omitempty"`
	Neighbours *Neighbours `json:"neighbours,omitempty"`
	Gateway    *Gateway    `json:"gateway,omitempty"`
	Policy     string      `json:"policy,omitempty"` // what comes in, on members and from the tunnel
}

// A Member is a port in a segment.
type Member struct {
	Port       string  `json:"port"`
	VLAN       int     `json:"vlan,omitempty"`     // 0: untagged
	Isolated   bool    `json:"isolated,omitempty"` // from other such members, through the gateway too
	NoLearning bool    `json:"noLearning,omitempty"`
	MaxMACs    int     `json:"maxMACs,omitempty"`
	NoFlood    []Class `json:"noFlood,omitempty"`
	Storm      Storm   `json:"storm,omitzero"`   // of what comes in there and is flooded; default vswitch.DefaultStorm
	Locked     bool    `json:"locked,omitempty"` // only MACs of the segment's fdb may send
	GBP        uint16  `json:"gbp,omitempty"`    // group policy id of what comes in

	Guard *policy.GuardConfig `json:"guard,omitempty"` // what it may say it is
}

// Storm is rates of flooded frames, by class.
type Storm struct {
	Broadcast Rate `json:"broadcast,omitzero"`
	Multicast Rate `json:"multicast,omitzero"`
	Unknown   Rate `json:"unknown,omitzero"`
}

// A Rate is in a second. Both 0 are the default of the place, one of them is no limit.
type Rate struct {
	Packets uint64 `json:"packets,omitempty"`
	Bits    uint64 `json:"bits,omitempty"`
}

// An FDB entry is static.
type FDB struct {
	MAC    frame.MAC  `json:"mac"`
	Remote netip.Addr `json:"remote,omitzero"`  // behind that peer,
	Tunnel string     `json:"tunnel,omitempty"` // of that tunnel, where the segment is in several,
	Port   string     `json:"port,omitempty"`   // or on that port
	Sticky bool       `json:"sticky,omitempty"`
}

// Neighbours is ARP and ND of a segment.
type Neighbours struct {
	Mode    Mode        `json:"mode,omitempty"` // off, suppress, proxy, access
	Static  []Neighbour `json:"static,omitempty"`
	Limit   int         `json:"limit,omitempty"`   // of what is heard, default 8192
	PerDest int         `json:"perDest,omitempty"` // on one port, or from one peer of a tunnel; default half of limit
}

// A Neighbour is a static one.
type Neighbour struct {
	IP  netip.Addr `json:"ip"`
	MAC frame.MAC  `json:"mac"`
}

// A Gateway is an interface of a VRF in a segment.
type Gateway struct {
	VRF       string         `json:"vrf"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	MAC       frame.MAC      `json:"mac,omitzero"` // none where the segment is IP only
	Own       frame.MAC      `json:"own,omitzero"`
	Anycast   bool           `json:"anycast,omitempty"`
}

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
	Mode    PoolMode       `json:"mode"`              // always, cross-subnet, never
	Subnets []netip.Prefix `json:"subnets,omitempty"` // of this node
	Blocks  []Block        `json:"blocks,omitempty"`
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

// Words of the configuration.
type (
	Type      uint8
	PortType  uint8
	Checksum  uint8
	Underlay  uint8
	DF        uint8
	ECN       uint8
	Peers     uint8
	Class     uint8
	InnerVLAN uint8
	Mode      uint8
	PoolMode  l3.Encapsulation
)

var (
	types     = []string{encap.TypeVXLAN: "vxlan", encap.TypeGPE: "gpe", encap.TypeIPIP: "ipip"}
	portTypes = []string{"tap", "tun", "packet"}
	checksums = []string{"auto", "on", "off"}
	underlays = []string{"udp", "packet"}
	dfs       = []string{"set", "unset", "inherit"}
	ecns      = []string{"normal", "compat", "rfc3168"}
	policies  = []string{vtep.AnyPeer: "any", vtep.ListedOnly: "listed", vtep.ListedPerVNI: "listed-per-vni"}
	classes   = []string{"broadcast", "multicast", "unknown"}
	vlanModes = []string{vswitch.VLANDiscard: "discard", vswitch.VLANStrip: "strip", vswitch.VLANPass: "pass"}
	modes     = []string{"off", "suppress", "proxy", "access"}
	poolModes = []string{l3.Always: "always", l3.CrossSubnet: "cross-subnet", l3.Never: "never"}
)

const (
	portTAP PortType = iota
	portTUN
	portPacket
)

const underlayPacket Underlay = 1

func word[T ~uint8](to *T, words []string, v any) error {
	s, _ := v.(string)
	i := slices.Index(words, s)
	if i < 0 {
		return errors.New("allowed are " + strings.Join(words, ", "))
	}
	*to = T(i)
	return nil
}

func (t *Type) choose(v any) error      { return word(t, types, v) }
func (t *PortType) choose(v any) error  { return word(t, portTypes, v) }
func (t *Checksum) choose(v any) error  { return word(t, checksums, v) }
func (t *Underlay) choose(v any) error  { return word(t, underlays, v) }
func (t *DF) choose(v any) error        { return word(t, dfs, v) }
func (t *ECN) choose(v any) error       { return word(t, ecns, v) }
func (t *Peers) choose(v any) error     { return word(t, policies, v) }
func (t *Class) choose(v any) error     { return word(t, classes, v) }
func (t *InnerVLAN) choose(v any) error { return word(t, vlanModes, v) }
func (t *Mode) choose(v any) error      { return word(t, modes, v) }
func (t *PoolMode) choose(v any) error  { return word(t, poolModes, v) }

// MarshalText writes the word.
func (t Type) MarshalText() ([]byte, error)      { return []byte(types[t]), nil }
func (t PortType) MarshalText() ([]byte, error)  { return []byte(portTypes[t]), nil }
func (t Checksum) MarshalText() ([]byte, error)  { return []byte(checksums[t]), nil }
func (t Underlay) MarshalText() ([]byte, error)  { return []byte(underlays[t]), nil }
func (t DF) MarshalText() ([]byte, error)        { return []byte(dfs[t]), nil }
func (t ECN) MarshalText() ([]byte, error)       { return []byte(ecns[t]), nil }
func (t Peers) MarshalText() ([]byte, error)     { return []byte(policies[t]), nil }
func (t Class) MarshalText() ([]byte, error)     { return []byte(classes[t]), nil }
func (t InnerVLAN) MarshalText() ([]byte, error) { return []byte(vlanModes[t]), nil }
func (t Mode) MarshalText() ([]byte, error)      { return []byte(modes[t]), nil }
func (t PoolMode) MarshalText() ([]byte, error)  { return []byte(poolModes[t]), nil }

// Inherit is a number, or the word inherit. 0 is the default of the field.
type Inherit int

func (n *Inherit) choose(v any) error {
	switch v := v.(type) {
	case string:
		if v == "inherit" {
			*n = vtep.Inherit
			return nil
		}
	case json.Number:
		if i, err := strconv.ParseUint(v.String(), 10, 8); err == nil {
			*n = Inherit(i)
			return nil
		}
	}
	return errors.New("allowed are 0 to 255, and inherit")
}

// MarshalJSON writes what choose reads.
func (n Inherit) MarshalJSON() ([]byte, error) {
	if n == vtep.Inherit {
		return []byte(`"inherit"`), nil
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

// Duration is written as 300s. The zero value is the default of the field; 0s, as written,
// is never.
type Duration time.Duration

func (d *Duration) choose(v any) error {
	s, _ := v.(string)
	x, err := time.ParseDuration(s)
	switch {
	case err != nil || x < 0 || x > 0 && x < time.Second || x > math.MaxInt32*time.Second:
		return errors.New("allowed are durations of 1s to 596523h, such as 300s, and 0s for never")
	case x == 0:
		x = -1
	}
	*d = Duration(x)
	return nil
}

// MarshalText writes what choose reads.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(max(time.Duration(d), 0).String()), nil
}

// Range is ports, written as "49152-65535".
type Range struct{ Lo, Hi uint16 }

func (r *Range) choose(v any) error {
	s, _ := v.(string)
	if n, err := fmt.Sscanf(s, "%d-%d", &r.Lo, &r.Hi); err != nil || n != 2 || r.Lo == 0 || r.Lo > r.Hi {
		return errors.New(`allowed are "LO-HI" with 1 <= LO <= HI <= 65535`)
	}
	return nil
}

// MarshalText writes what choose reads.
func (r Range) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d-%d", r.Lo, r.Hi), nil }
