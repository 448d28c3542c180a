package model

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// Ports of a node in the model. Hosts are numbered from firstHost on, over all nodes.
const (
	ownPort   = 0
	vtepPort  = 1
	firstHost = 2
)

// dest is where a MAC is: a port, and behind the VTEP an address.
type dest struct {
	port int
	peer netip.Addr
}

// golden is the whole fabric in the model.
type golden struct {
	port    uint16 // UDP destination port of the fabric
	nodes   []*gnode
	outside map[netip.AddrPort]int // other members of the network, by number
	cut     map[[2]netip.Addr]bool
	net     memory.NetworkStats
	queue   []datagram
	turn    time.Duration // when the housekeeping turned last

	// What has come out since the last comparison.
	got  map[int][][]byte
	wire map[int][]string
}

// datagram is a tunnel packet under way to a node.
type datagram struct {
	src     netip.Addr
	to      *gnode
	payload []byte
}

type gnode struct {
	name       string
	addrs      []netip.Addr // at most one of each family
	listedOnly bool
	tick       int
	vsis       map[frame.VNI]*gvsi
	ports      map[int]*gport
	own        tally

	// The VTEP, whether it is attached or not.
	listening bool
	added     map[netip.Addr]bool
	flood     map[frame.VNI][]netip.Addr
	waiting   []datagram // came while it was paused

	events []string
}

// tally is what vswitch.PortStats counts.
type tally struct {
	rx, tx, forwarded uint64
	flood             vswitch.Flooded
	rxDrops, txDrops  frame.Drops
}

type gport struct {
	id      int
	mtu     int // of a host's port
	keep    bool
	members []*gatt
	tally
}

func (p *gport) tagged(tag uint32) *gatt {
	for _, a := range p.members {
		if a.tag == tag {
			return a
		}
	}
	return nil
}

// gatt is an attachment.
type gatt struct {
	vsi  *gvsi
	port *gport
	tag  uint32
	cfg  vswitch.AttachConfig
}

func (a *gatt) group() uint8 {
	if a.port.id == vtepPort && a.cfg.Group == 0 && !a.cfg.Hub {
		return vswitch.GroupTunnel
	}
	return a.cfg.Group
}

type gvsi struct {
	vni     frame.VNI
	cfg     vswitch.VSIConfig
	members []*gatt
	fdb     map[frame.MAC]*gentry
	flood   vswitch.Flooded
	drops   frame.Drops

	learned, moved, aged, full uint64
}

func (v *gvsi) on(port int) *gatt {
	for _, a := range v.members {
		if a.port.id == port {
			return a
		}
	}
	return nil
}

type origin string

const (
	learned origin = "learned"
	static  origin = "static"
	control origin = "control"
)

type gentry struct {
	at                      dest
	origin                  origin
	sticky, filter, anycast bool
	seen                    int
}

func (n *gnode) listed(a netip.Addr) bool {
	if n.added[a] {
		return true
	}
	for _, l := range n.flood {
		if slices.Contains(l, a) {
			return true
		}
	}
	return false
}

// addr returns the node's address of the family of a.
func (n *gnode) addr(a netip.Addr) (netip.Addr, bool) {
	for _, x := range n.addrs {
		if x.Is4() == a.Is4() {
			return x, true
		}
	}
	return netip.Addr{}, false
}

// mtu returns the longest frame that fits an IP packet of 1500 bytes, without the
// outer IP, UDP and VXLAN headers: to nobody in particular, one that fits all families.
func (n *gnode) mtu(peer netip.Addr) int {
	v4, v6 := 1500-20-8-8, 1500-40-8-8
	switch {
	case peer.IsValid() && peer.Is4():
		return v4
	case peer.IsValid():
		return v6
	case slices.ContainsFunc(n.addrs, netip.Addr.Is6):
		return v6
	}
	return v4
}

func (n *gnode) event(format string, args ...any) {
	n.events = append(n.events, fmt.Sprintf(format, args...))
}

// name returns what a dest is called in dumps.
func (g *golden) name(d dest) string {
	switch {
	case d.peer.IsValid():
		return netip.AddrPortFrom(d.peer, g.port).String()
	case d.port == ownPort:
		return "switch"
	case d.port == vtepPort:
		return "vtep"
	}
	return hostName(d.port)
}

func hostName(id int) string { return fmt.Sprintf("host%d", id) }
