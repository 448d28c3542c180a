package bgp

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/secret"
	"github.com/vxswitch/vxswitch/setting"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "bgp"

// Defaults of settings.
const (
	DefaultPort       = 179
	DefaultHold       = 90 * time.Second
	DefaultRetry      = 2 * time.Second
	DefaultDistance   = 20
	DefaultMaxRoutes  = 1 << 20
	DefaultPeerRoutes = 1 << 18
	DefaultMaxPaths   = 16
)

// Config says who the node is in BGP, whom it talks to, and which routes it takes and announces.
type Config struct {
	AS       uint32       `json:"as"`                // our autonomous system; needed
	RouterID netip.Addr   `json:"routerID"`          // BGP identifier, an IPv4 address that no other speaker has; needed
	Listen   []netip.Addr `json:"listen,omitempty"`  // addresses for sessions that peers open; default none
	Port     uint16       `json:"port,omitzero"`     // TCP port of listen; default 179
	Peers    []Peer       `json:"peers,omitempty"`   // other nodes, route reflectors and routers
	VRF      string       `json:"vrf"`               // of the routes; needed
	Segment  frame.VNI    `json:"segment,omitzero"`  // whose gateway in the VRF is on the network of the nodes, for ways without a tunnel; default none
	Distance uint8        `json:"distance,omitzero"` // administrative distance of routes of peers; default 20

	// Addresses are the node's own on the network of the nodes, at most one of each family: the next hop of what it announces.
	Addresses []netip.Addr `json:"addresses,omitempty"`

	// Routers, at most one of each family, get packets without a tunnel whose next hop is on no network of segment, such as a switch
	// between racks; default none.
	Routers []netip.Addr `json:"routers,omitempty"`

	// Links are several networks of nodes, such as the planes of a fabric, in place of segment, addresses and routers.
	Links []Link `json:"links,omitempty"`

	Pools []Pool   `json:"pools,omitempty"` // addresses of hosts, and how packets to them travel
	Nodes []Remote `json:"nodes,omitempty"` // MACs of other nodes, for pools with VXLAN

	Announce []netip.Prefix `json:"announce,omitempty"` // blocks and host routes of ours; what nobody has of a block is unreachable here
	Export   []Rule         `json:"export,omitempty"`   // which routes of the VRF are announced too, those that package bgp has made left out; default none
	Import   []Rule         `json:"import,omitempty"`   // which routes of peers are taken; those that no rule matches are if a pool has them
	Filters  []Filter       `json:"filters,omitempty"`  // for single peers, which name them

	DefaultRoute bool           `json:"defaultRoute,omitzero"` // takes 0.0.0.0/0 and ::/0 of peers, whatever import says
	Borrowed     bool           `json:"borrowed,omitzero"`     // takes host routes to addresses of our own blocks, which live on other nodes
	Underlay     []netip.Prefix `json:"underlay,omitempty"`    // networks of nodes besides those of links, to which no route of peers leads

	MaxRoutes int `json:"maxRoutes,omitzero"` // that all peers may have; what is beyond is left out, counted, and asked for again when there is room; default 1048576
	MaxPaths  int `json:"maxPaths,omitzero"`  // next hops of a route, 1 to 64; default 16

	// Lent are the addresses of our own blocks to which Borrowed takes host routes, if the program knows; nil = all of them.
	Lent []netip.Prefix `json:"-"`

	// Owner is that of the rows, "" for [DefaultOwner].
	Owner string `json:"-"`

	// Log, if not nil, gets what happens to sessions.
	Log *slog.Logger `json:"-"`
}

// A Peer is a BGP speaker that we have a session with, or all those of a prefix.
type Peer struct {
	Addr   netip.Addr   `json:"address,omitzero"` // of the peer; needed without prefix
	Prefix netip.Prefix `json:"prefix,omitzero"`  // in place of the address: whoever connects from it is a peer; needs listen

	AS       uint32        `json:"as"`                // its autonomous system; needed
	Port     uint16        `json:"port,omitzero"`     // its TCP port; default 179
	Local    netip.Addr    `json:"local,omitzero"`    // source address; default the system's choice
	Passive  bool          `json:"passive,omitzero"`  // waits for the peer to connect; needs listen
	Hold     time.Duration `json:"holdTime,omitzero"` // full seconds from 3s to 65535s; default "90s"
	Retry    time.Duration `json:"retry,omitzero"`    // pause between attempts, full seconds from 2s; default "2s"
	Password string        `json:"-"`                 // of TCP MD5 (RFC 2385), up to 80 bytes; Linux only; "" = none
	Hops     uint8         `json:"hops,omitzero"`     // to a peer that is not on our link, of another AS alone; default 1
	OwnAS    uint8         `json:"ownAS,omitzero"`    // how often our AS may be in the path of its routes, up to 10; default 0
	Client   bool          `json:"client,omitzero"`   // we are its route reflector (RFC 4456)
	Segment  frame.VNI     `json:"segment,omitzero"`  // of the link that it belongs to; default the first with its address or prefix on a network of the gateway, or else the first of all

	NextHopSelf bool `json:"nextHopSelf,omitzero"` // local is the next hop of what we announce to it, in place of an address of its link: for packets that the host gets, such as those of a tunnel over its sockets

	// Filters are the names of filters, whose rules are asked one after the other; default none.
	Filters []string `json:"filters,omitempty"`

	// AllPaths gives a client all paths of a prefix if it takes them (add-path, RFC 7911), in place of the best.
	AllPaths bool `json:"allPaths,omitzero"`

	PasswordFile string `json:"passwordFile,omitzero"` // file with the password of TCP MD5 in its first line; Linux only; default none

	GracefulRestart bool `json:"gracefulRestart,omitzero"` // keeps its routes while it restarts, if it asks for that (RFC 4724); set bfd too, for a peer that died looks like one that restarts
	BFD             *BFD `json:"bfd,omitzero"`             // probes the path to it; needs local; default none

	MaxRoutes int `json:"maxRoutes,omitzero"` // of each family that it may announce; with more the session ends and stays down until the settings of the peer change, but that a peer of a prefix may connect again; default 262144
}

// Check returns the errors in the settings as [setting.Errors]. Settings that are nil lack what is needed.
func (c *Config) Check() error {
	if c == nil {
		c = new(Config)
	}
	w := setting.Of("bgp: Config")
	if c.AS == 0 {
		w.Want("AS", c.AS, "1 to 4294967295")
	}
	switch {
	case !c.RouterID.IsValid():
		w.Wrong("RouterID", nil, "an IPv4 address is required")
	case !c.RouterID.Is4() || c.RouterID.IsUnspecified():
		w.Want("RouterID", c.RouterID, "an IPv4 address other than 0.0.0.0")
	}
	if c.VRF == "" {
		w.Want("VRF", c.VRF, "the name of a VRF")
	}
	for i, err := range hostaddr.Listeners(c.Listen) {
		w.Wrong(fmt.Sprintf("Listen[%d]", i), c.Listen[i], "%v", err)
	}
	c.checkLinks(w)
	c.checkPools(w)
	c.checkAnnounced(w)
	checkRules(w, "Export", c.Export)
	checkRules(w, "Import", c.Import)
	c.checkFilters(w)
	for i, p := range c.Underlay {
		checkPrefix(w, fmt.Sprintf("Underlay[%d]", i), p)
	}
	w.Limit("MaxRoutes", c.MaxRoutes)
	w.Number("MaxPaths", c.MaxPaths, 1, 64, DefaultMaxPaths)
	c.checkPeers(w)
	return w.Err()
}

// checkFamilies adds the errors of addresses of hosts, of which each family has at most one.
func checkFamilies(w *setting.Check, field string, list []netip.Addr) {
	for i, err := range hostaddr.Families(list) {
		w.Wrong(fmt.Sprintf("%s[%d]", field, i), list[i], "%v", err)
	}
}

func (c *Config) checkPools(w *setting.Check) {
	seen := map[netip.Prefix]int{}
	for i, p := range c.Pools {
		at := fmt.Sprintf("Pools[%d].", i)
		if !checkPrefix(w, at+"Prefix", p.Prefix) {
			continue
		}
		if first, ok := seen[p.Prefix]; ok {
			w.Wrong(at+"Prefix", p.Prefix, "pools[%d] has it already", first)
		} else if p.Prefix.Bits() == 0 {
			w.Want(at+"Prefix", p.Prefix, "a range of addresses of hosts, which the next hops of routes are not in")
		} else {
			seen[p.Prefix] = i
		}
		if p.Encapsulation > VXLAN {
			w.Want(at+"Encapsulation", p.Encapsulation, `"never", "ipip" or "vxlan"`)
		}
		if p.Mode > CrossSubnet {
			w.Want(at+"Mode", p.Mode, `"always" or "cross-subnet"`)
		}
		switch {
		case !p.Segment.Valid():
			w.Want(at+"Segment", p.Segment, "0 to %d", frame.MaxVNI)
		case p.Encapsulation != Never && p.Segment == 0:
			w.Wrong(at+"Segment", nil, "the segment of the tunnel is required with an encapsulation")
		case p.Encapsulation == Never && (p.Segment != 0 || p.Tunnel != ""):
			w.Wrong(at+"Encapsulation", p.Encapsulation, "a segment and a tunnel have no use without an encapsulation")
		case p.Encapsulation == Never && p.Mode == CrossSubnet:
			w.Wrong(at+"Encapsulation", p.Encapsulation, "a mode has no use without an encapsulation")
		}
		if c.Segment == 0 && len(c.Links) == 0 && (p.Encapsulation == Never || p.Mode == CrossSubnet) {
			w.Wrong("Segment", nil, "required for ways without a tunnel, which pools[%d] has", i)
		}
	}
	nodes := map[netip.Addr]int{}
	for i, n := range c.Nodes {
		at := fmt.Sprintf("Nodes[%d].", i)
		if !n.Address.IsValid() {
			w.Wrong(at+"Address", nil, "the address of the node is required")
		} else if err := hostaddr.Neighbour(n.Address); err != nil {
			w.Wrong(at+"Address", n.Address, "%v", err)
		} else if first, ok := nodes[n.Address]; ok {
			w.Wrong(at+"Address", n.Address, "nodes[%d] has it already", first)
		}
		nodes[n.Address] = i
		if n.MAC.IsZero() || n.MAC.IsGroup() {
			w.Want(at+"MAC", n.MAC, "the MAC of one host")
		}
	}
}

func (c *Config) checkAnnounced(w *setting.Check) {
	seen, ours, addresses := map[netip.Prefix]int{}, c.NextHops(), "Addresses"
	if len(c.Links) > 0 {
		addresses = "Links[0].Addresses"
	}
	for i, p := range c.Announce {
		at := fmt.Sprintf("Announce[%d]", i)
		if !checkPrefix(w, at, p) {
			continue
		}
		if err := hostaddr.Routed(p); err != nil {
			w.Wrong(at, p, "%v", err)
		}
		if p.Bits() == 0 {
			w.Want(at, p, "a block of hosts: a default route of the VRF is announced with export")
		}
		if first, ok := seen[p]; ok {
			w.Wrong(at, p, "announce[%d] is the same", first)
		}
		seen[p] = i
		if !engine.OfFamily(ours, p.Addr().Is4()).IsValid() {
			w.Wrong(addresses, nil, "an address of the family of announce[%d], %v, is required", i, p)
		}
	}
}

func (c *Config) checkPeers(w *setting.Check) {
	seen, ours := map[string]int{}, append(c.NextHops(), c.Listen...)
	for i := range c.Peers {
		p := &c.Peers[i]
		at := fmt.Sprintf("Peers[%d]", i)
		w.Add(at, p.Check())
		if first, ok := seen[p.name()]; ok && p.family().IsValid() {
			w.Wrong(at, p.name(), "peers[%d] is the same", first)
		}
		seen[p.name()] = i
		if p.Addr.IsValid() && (p.Addr == p.Local || slices.Contains(ours, p.Addr)) {
			w.Want(at+".Addr", p.Addr, "an address of another host; it is in local, listen or addresses")
		}
		if len(c.Listen) == 0 && (p.Passive || p.Prefix.IsValid()) {
			w.Wrong("Listen", nil, "an address is required: peers[%d] connects to us", i)
		}
		if p.Client && p.AS != c.AS {
			w.Wrong(at+".Client", p.Client, "clients of a route reflector are of our AS, %d", c.AS)
		}
		if p.Hops != 0 && p.AS == c.AS {
			w.Wrong(at+".Hops", p.Hops, "a peer of our AS, %d, may be any number of hops away", c.AS)
		}
		if p.AllPaths && !p.Client {
			w.Wrong(at+".AllPaths", p.AllPaths, "client is required: others get no routes but ours")
		}
		c.checkLink(w, at, p)
		c.checkFiltered(w, at, p)
	}
}

// Check returns the errors in the settings as [setting.Errors].
func (p *Peer) Check() error {
	w := setting.Of("bgp: Peer")
	switch {
	case p.Addr.IsValid() && p.Prefix.IsValid():
		w.Wrong("Prefix", p.Prefix, "the peer has an address already")
	case p.Prefix.IsValid():
		checkPrefix(w, "Prefix", p.Prefix)
		if p.BFD != nil {
			w.Wrong("BFD", nil, "needs an address in place of a prefix")
		}
	case !p.Addr.IsValid():
		w.Wrong("Addr", nil, "the address of the peer is required, or a prefix")
	case p.Addr.Is6() && p.Addr.IsLinkLocalUnicast():
		w.Wrong("Addr", p.Addr, "is link-local, and sessions are of no interface here; must be another address of the host")
	default:
		if err := hostaddr.Check(p.Addr); err != nil || p.Addr.Is4In6() || p.Addr.Zone() != "" {
			w.Want("Addr", p.Addr, "the address of a host")
		}
	}
	if p.AS == 0 {
		w.Want("AS", p.AS, "1 to 4294967295")
	}
	if p.Local.IsValid() && p.family().IsValid() && (p.Local.IsUnspecified() || p.Local.IsMulticast() || p.Local.Is4() != p.family().Is4()) {
		w.Want("Local", p.Local, "an address of the node, of the family of %s", p.name())
	}
	if p.Hold != 0 && (p.Hold < 3*time.Second || p.Hold > 65535*time.Second || p.Hold%time.Second != 0) {
		w.Want("Hold", p.Hold, "full seconds from 3s to 65535s, or 0 for 90s")
	}
	if p.Retry != 0 && (p.Retry < 2*time.Second || p.Retry > time.Hour || p.Retry%time.Second != 0) {
		w.Want("Retry", p.Retry, "full seconds from 2s to 1h, or 0 for 2s")
	}
	if len(p.Password) > 80 {
		w.Want("Password", len(p.Password), "at most 80 bytes")
	}
	if p.Password != "" && p.PasswordFile != "" {
		w.Wrong("PasswordFile", p.PasswordFile, "the peer has a password already")
	}
	if p.OwnAS > 10 {
		w.Want("OwnAS", p.OwnAS, "0 to 10")
	}
	w.Limit("MaxRoutes", p.MaxRoutes)
	p.checkBFD(w)
	if p.NextHopSelf && !p.Local.IsValid() {
		w.Wrong("Local", nil, "an address of the node is required with nextHopSelf")
	}
	return w.Err()
}

// name is what tells peers apart.
func (p *Peer) name() string {
	if p.Prefix.IsValid() {
		return p.Prefix.String()
	}
	return p.Addr.String()
}

// family is an address of the family of the peer.
func (p *Peer) family() netip.Addr {
	if p.Prefix.IsValid() {
		return p.Prefix.Addr()
	}
	return p.Addr
}

// Restarts reports whether [Speaker.Configure] refuses to change c into next.
func (c *Config) Restarts(next *Config) bool { return c.fixed(next) != "" }

// fixed returns the first field that is another one in next and cannot change.
func (c *Config) fixed(next *Config) string {
	switch {
	case c.AS != next.AS:
		return "AS"
	case c.RouterID != next.RouterID:
		return "RouterID"
	case !slices.Equal(c.Listen, next.Listen):
		return "Listen"
	case c.Port != next.Port:
		return "Port"
	case c.VRF != next.VRF:
		return "VRF"
	}
	return ""
}

// CheckFiles returns as [setting.Errors] which password files cannot be read, or have no password, as [New] and [Speaker.Configure] do.
func (c *Config) CheckFiles() error {
	_, err := c.peers()
	return err
}

// peers returns the settings of the peers for the engine, with passwords from files, and without what rules.peers adds.
func (c *Config) peers() (list []engine.Peer, err error) {
	w := setting.Of("bgp: Config")
	for i, p := range c.Peers {
		if p.PasswordFile != "" {
			if p.Password, err = secret.Password(p.PasswordFile); err != nil {
				w.Wrong(fmt.Sprintf("Peers[%d].PasswordFile", i), p.PasswordFile, "%v", err)
			}
		}
		list = append(list, engine.Peer{
			Addr: p.Addr, Prefix: p.Prefix, AS: p.AS, Port: cmp.Or(p.Port, DefaultPort), Local: p.Local, Passive: p.Passive, Hold: cmp.Or(p.Hold, DefaultHold),
			Retry: cmp.Or(p.Retry, DefaultRetry), Password: p.Password, Hops: p.Hops, OwnAS: p.OwnAS, Client: p.Client, Restarts: p.GracefulRestart,
			Limit:    uint32(min(cmp.Or(p.MaxRoutes, DefaultPeerRoutes), math.MaxInt32)),
			AllPaths: p.AllPaths,
		})
	}
	return list, w.Err()
}
