package fuzz

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A dest is where a MAC is: a port, and behind the VTEP an address.
type dest struct {
	port int
	peer netip.Addr
}

// golden is the model of a rig: what must happen, in maps and lists, in the order a reader of
// the rules would have it happen. It has no workers, batches, generations or numbers of peers. It
// knows bridging in VXLAN, and follows rigs that have no more: see plain.
type golden struct {
	addrs      []netip.Addr // of the VTEP, at most one of each family
	mtu        int          // of the underlay
	listedOnly bool
	tick       int
	turn       time.Duration // when the housekeeping turned last
	vsis       map[frame.VNI]*gvsi
	ports      map[int]*gport
	own        tally

	// The VTEP, whether it is attached or not.
	listening bool
	added     map[netip.Addr]bool
	flooded   map[frame.VNI][]vtep.FloodPeer // by tag

	// Since the last comparison.
	out    map[int][]string // of each port
	events []string
}

func newGolden(s *settings) *golden {
	return &golden{
		mtu: s.underMTU, listedOnly: s.tunnel.Peers == vtep.ListedOnly,
		vsis: map[frame.VNI]*gvsi{}, ports: map[int]*gport{}, out: map[int][]string{},
	}
}

// open is a new VTEP.
func (g *golden) open(addrs []netip.Addr) {
	g.addrs, g.listening, g.added, g.flooded = addrs, true, map[netip.Addr]bool{}, map[frame.VNI][]vtep.FloodPeer{}
}

// tally is what vswitch.PortStats counts.
type tally struct {
	rx, tx, forwarded uint64
	flood             vswitch.Flooded
	rxDrops, txDrops  frame.Drops
}

type gport struct {
	id      int
	mtu     int // of a local port
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
	if a.port.id == farPort && a.cfg.Group == 0 && !a.cfg.Hub {
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

func (g *golden) listed(a netip.Addr) bool {
	if g.added[a] {
		return true
	}
	for _, l := range g.flooded {
		if slices.ContainsFunc(l, func(p vtep.FloodPeer) bool { return p.Addr.Addr() == a }) && !slices.Contains(g.addrs, a) {
			return true
		}
	}
	return false
}

// longestTo returns the longest frame that fits a packet to a peer, without the outer IP, UDP
// and VXLAN headers: to nobody in particular, one that fits all families.
func (g *golden) longestTo(peer netip.Addr) int {
	if peer.Is6() || !peer.IsValid() && slices.ContainsFunc(g.addrs, netip.Addr.Is6) {
		return g.mtu - 40 - 8 - 8
	}
	return g.mtu - 20 - 8 - 8
}

func (g *golden) event(format string, args ...any) {
	g.events = append(g.events, fmt.Sprintf(format, args...))
}

// String is what a dest is called in dumps.
func (d dest) String() string {
	if d.peer.IsValid() {
		return netip.AddrPortFrom(d.peer, 4789).String()
	}
	return portName(d.port)
}

func portName(port int) string {
	switch port {
	case noPort:
		return "switch"
	case farPort:
		return "vtep"
	}
	return fmt.Sprint("port", port)
}
