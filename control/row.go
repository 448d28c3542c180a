package control

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A Row is a [MAC], a [Group], a [Flood] or a [Prefix], by value. Rows are comparable.
type Row interface {
	isRow()
	String() string
}

// A MAC says where a host is, like route type 2 of EVPN (RFC 7432, section 7.2). One of VTEP, Group, Port
// and Filter must be set. The key is VNI, MAC and IP: a row replaces another with the same key, and Del
// looks at nothing else. Frames to a multicast MAC go there only and are not flooded; it has no IP.
type MAC struct {
	VNI    frame.VNI
	MAC    frame.MAC
	IP     netip.Addr     // address of the host, for ARP and ND; invalid = unknown
	VTEP   netip.AddrPort // VTEP of the host; port 0 = the default port
	FarVNI frame.VNI      // with VTEP: the VNI of the network at the far end; 0 = the same as here
	Group  string         // or the name of a [Group] with the same owner, VNI and Tunnel: the host is behind all its VTEPs
	Tunnel string         // with VTEP or Group: the name of the local VTEP, if the segment has several; "" = the first, see [Config]
	Port   string         // or the name of the attached port of the host, or of one of several attachments of a port (vswitch.Named)
	Filter bool           // or nowhere: frames to and from it are dropped
	Sticky bool           // learning does not move it (RFC 7432, section 15.2), as it never moves a Filter
	Router bool           // with an IPv6 address: the R flag of its advertisements (RFC 9047); otherwise it has no effect
}

// A Group says that a VTEP is one of several that lead to the same hosts, for instance of an all-active
// Ethernet segment (RFC 7432, sections 7.1 and 8.4; RFC 8365, section 8). All rows of an owner with the
// same VNI, Tunnel and Name form a group, which MAC rows of the owner refer to by name. Each flow uses one
// VTEP. When a VTEP is added or removed, only its own flows move, and the group is written once, however many MACs
// refer to it (mass withdrawal: RFC 7432, section 8.2). Without the last one they wait. A group takes a peer number of its VTEP.
type Group struct {
	VNI    frame.VNI
	Name   string
	VTEP   netip.AddrPort
	FarVNI frame.VNI // as in MAC
	Tunnel string    // as in MAC
}

// A Flood says that a VTEP gets the broadcast, unknown unicast and multicast frames of a segment, like
// route type 3 of EVPN (RFC 7432, section 7.3). Rows for the local VTEP have no effect. VTEP may be a
// multicast group, which stands for all its members. Tunnel is as in MAC. The key is VNI, VTEP, MAC and Tunnel, as for a MAC.
//
// With the MAC of a group it is for the frames to this MAC alone, and these go to no VTEP of the tunnel without such a row,
// whoever owns it: a frame goes to nobody if all rows of its MAC have NoBroadcast or are for the local VTEP. Members on ports get
// them as without rows. A [MAC] row for the group comes first. A tunnel takes rows for 4096 MACs of a segment; those for others
// are refused with [vtep.ErrGroups].
//
// A VTEP with NoBroadcast and NoUnknown gets no frames, but may send in the segment, where its VTEP only accepts peers
// that are listed for the VNI. Of rows of several owners, each frame goes to a VTEP that one of them sends it to.
type Flood struct {
	VNI         frame.VNI
	VTEP        netip.AddrPort
	MAC         frame.MAC // of a group; zero = all frames that are flooded
	Tunnel      string
	NoBroadcast bool // it gets no broadcast and multicast frames (RFC 9574, flag BM)
	NoUnknown   bool // it gets no unknown unicast (flag U); not allowed with MAC
}

// A Prefix is a route: like route type 5 of EVPN (RFC 9136), the lease of a subnet, or a block of
// addresses. Several rows of an owner with the same VRF, prefix and Distance are several next hops.
//
// Of rows with the same VRF and prefix, those with the lowest Distance count, and of these those of the first owner: it is
// what routers call administrative distance. If they all wait, the next ones count. An owner that prefers
// some of its rows to others gives these a higher distance, and an owner whose routes come after those of another, whatever
// Config.Owners says of MACs, gives it to all.
type Prefix struct {
	VRF      string // required
	Prefix   netip.Prefix
	Via      Via
	Distance uint8
}

// A Via is a next hop of one of the kinds of l3.NextHop. VNI selects the interface of the VRF.
//
//	VNI, IP          a neighbour on a link: a router, or the host itself
//	VNI, MAC, VTEP   a router behind a tunnel (RFC 9136, section 4.4); the FDB of VNI gets MAC -> VTEP
//	VNI, VTEP        the far end of a tunnel for IP; VTEP has no port
//	VNI              whatever is behind a port for IP
//	zero             none: packets are dropped, unless the prefix has other rows
type Via struct {
	VNI  frame.VNI
	IP   netip.Addr
	MAC  frame.MAC
	VTEP netip.AddrPort

	FarVNI frame.VNI // with MAC and VTEP: as in MAC
	Tunnel string    // with VTEP: as in MAC

	// Weight is the share of flows that the next hop gets, relative to the others of the prefix; 0 = 1. Of rows that
	// differ in it alone, the largest counts.
	Weight uint8
}

func (MAC) isRow()    {}
func (Group) isRow()  {}
func (Flood) isRow()  {}
func (Prefix) isRow() {}

// String returns the row in one line.
func (r MAC) String() string {
	s := fmt.Sprintf("mac %v vni %d", r.MAC, r.VNI)
	if r.IP.IsValid() {
		s += " ip " + r.IP.String()
	}
	if r.VTEP.IsValid() {
		s += " vtep " + behind(r.VTEP, r.FarVNI, r.Tunnel)
	}
	if r.Group != "" {
		s += " group " + r.Group + of(r.Tunnel)
	}
	if r.Port != "" {
		s += " port " + r.Port
	}
	if r.Filter {
		s += " filter"
	}
	if r.Sticky {
		s += " sticky"
	}
	if r.Router {
		s += " router"
	}
	return s
}

// String returns the row in one line.
func (r Group) String() string {
	return fmt.Sprintf("group %s vni %d vtep %s", r.Name, r.VNI, behind(r.VTEP, r.FarVNI, r.Tunnel))
}

// String returns the row in one line.
func (r Flood) String() string {
	s := fmt.Sprintf("flood vni %d vtep %v%s", r.VNI, r.VTEP, of(r.Tunnel))
	if !r.MAC.IsZero() {
		s += " mac " + r.MAC.String()
	}
	if r.NoBroadcast {
		s += " no broadcast"
	}
	if r.NoUnknown {
		s += " no unknown"
	}
	return s
}

func behind(vtep netip.AddrPort, vni frame.VNI, tunnel string) string {
	s := vtep.String()
	if vni != 0 {
		s += fmt.Sprintf(" far vni %d", vni)
	}
	return s + of(tunnel)
}

func of(tunnel string) string {
	if tunnel == "" {
		return ""
	}
	return " tunnel " + tunnel
}

// String returns the row in one line.
func (r Prefix) String() string {
	s := fmt.Sprintf("prefix %v vrf %s %v", r.Prefix, r.VRF, r.Via)
	if r.Distance != 0 {
		s += fmt.Sprintf(" distance %d", r.Distance)
	}
	return s
}

// String returns "via" and what is set, or "blackhole".
func (v Via) String() string {
	if v == (Via{}) {
		return "blackhole"
	}
	s := fmt.Sprintf("via vni %d", v.VNI)
	if v.IP.IsValid() {
		s += " ip " + v.IP.String()
	}
	if !v.MAC.IsZero() {
		s += " mac " + v.MAC.String()
	}
	if v.VTEP.IsValid() {
		s += " vtep " + behind(v.VTEP, v.FarVNI, v.Tunnel)
	}
	if v.Weight != 0 {
		s += fmt.Sprint(" weight ", v.Weight)
	}
	return s
}

// clean returns a row in the form in which rows are compared: without IPv4-mapped addresses.
func clean(r Row) Row {
	switch x := r.(type) {
	case MAC:
		if mapped(x.IP, x.VTEP) {
			x.IP, x.VTEP = x.IP.Unmap(), unmap(x.VTEP)
			return x
		}
	case Group:
		if mapped(netip.Addr{}, x.VTEP) {
			x.VTEP = unmap(x.VTEP)
			return x
		}
	case Flood:
		if mapped(netip.Addr{}, x.VTEP) {
			x.VTEP = unmap(x.VTEP)
			return x
		}
	case Prefix:
		if mapped(x.Via.IP, x.Via.VTEP) {
			x.Via.IP, x.Via.VTEP = x.Via.IP.Unmap(), unmap(x.Via.VTEP)
			return x
		}
	}
	return r // not in a new interface
}

func mapped(ip netip.Addr, vtep netip.AddrPort) bool { return ip.Is4In6() || vtep.Addr().Is4In6() }

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// keyOf returns the key of a row: for a MAC or Flood a row with the key fields alone, for others the row itself.
func keyOf(r Row) Row {
	switch x := r.(type) {
	case MAC:
		return MAC{VNI: x.VNI, MAC: x.MAC, IP: x.IP}
	case Flood:
		if x.NoBroadcast || x.NoUnknown {
			return Flood{VNI: x.VNI, VTEP: x.VTEP, MAC: x.MAC, Tunnel: x.Tunnel}
		}
	}
	return r
}

// sameKey reports whether two rows have one key.
func sameKey(a, b Row) bool {
	switch a := a.(type) {
	case MAC:
		b, ok := b.(MAC)
		return ok && a.VNI == b.VNI && a.MAC == b.MAC && a.IP == b.IP
	case Flood:
		b, ok := b.(Flood)
		return ok && a.VNI == b.VNI && a.VTEP == b.VTEP && a.MAC == b.MAC && a.Tunnel == b.Tunnel
	}
	return a == b
}

// hashKey returns a hash of the key of a row.
func hashKey(seed maphash.Seed, r Row) uint64 {
	switch x := r.(type) {
	case MAC:
		return maphash.Comparable(seed, struct {
			vni frame.VNI
			mac frame.MAC
			ip  netip.Addr
		}{x.VNI, x.MAC, x.IP})
	case Flood:
		return maphash.Comparable(seed, struct {
			vni    frame.VNI
			vtep   netip.AddrPort
			mac    frame.MAC
			tunnel string
		}{x.VNI, x.VTEP, x.MAC, x.Tunnel})
	}
	return maphash.Comparable(seed, r)
}

// compare orders rows: MACs, groups, floods and prefixes, each by key.
func compare(a, b Row) int {
	switch a := a.(type) {
	case MAC:
		if b, ok := b.(MAC); ok {
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), a.IP.Compare(b.IP))
		}
	case Group:
		if b, ok := b.(Group); ok {
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.Tunnel, b.Tunnel), cmp.Compare(a.Name, b.Name),
				a.VTEP.Compare(b.VTEP), cmp.Compare(a.FarVNI, b.FarVNI))
		}
	case Flood:
		if b, ok := b.(Flood); ok {
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.VTEP.Compare(b.VTEP), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), cmp.Compare(a.Tunnel, b.Tunnel))
		}
	case Prefix:
		if b, ok := b.(Prefix); ok {
			return cmp.Or(cmp.Compare(a.VRF, b.VRF), a.Prefix.Addr().Compare(b.Prefix.Addr()),
				cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), cmp.Compare(a.Distance, b.Distance), compareVia(a.Via, b.Via))
		}
	}
	return cmp.Compare(order(a), order(b))
}

func order(r Row) int {
	switch r.(type) {
	case MAC:
		return 0
	case Group:
		return 1
	case Flood:
		return 2
	case Prefix:
		return 3
	}
	return 4 // is not a row
}

func compareVia(a, b Via) int {
	return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.IP.Compare(b.IP), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), a.VTEP.Compare(b.VTEP),
		cmp.Compare(a.FarVNI, b.FarVNI), cmp.Compare(a.Tunnel, b.Tunnel), cmp.Compare(a.Weight, b.Weight))
}
