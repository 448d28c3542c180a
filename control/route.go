package control

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A Route is one row: a [MAC], a [Group], a [Flood] or a [Prefix], by value. All are comparable.
type Route interface {
	route()
	String() string
}

// A MAC says where a host is, as EVPN's route type 2 does (RFC 7432, section 7.2): one of VTEP,
// Group, Port and Filter. VNI, MAC and IP are its key: another row with the same key replaces it,
// and Del needs no more. A group MAC, of multicast, has one place too, and then is not flooded; it
// has no IP.
type MAC struct {
	VNI    frame.VNI
	MAC    frame.MAC
	IP     netip.Addr     // its address, for ARP and ND; invalid: none is known
	VTEP   netip.AddrPort // behind which it is; port 0 is the VTEP's own choice
	FarVNI frame.VNI      // with VTEP: what the far end calls the network; 0: what it is called here
	Group  string         // or the name of a [Group] of the same owner, VNI and Tunnel, behind any of whose VTEPs it is
	Tunnel string         // with VTEP or Group: the name of this end's VTEP, of several that the segment is in; empty: the first, see [Config]
	Port   string         // or the name of the attached port it is on
	Filter bool           // or nowhere: frames to and from it are dropped
	Sticky bool           // it does not move by learning (RFC 7432, section 15.2); a Filter never does
	Router bool           // with IP, IPv6: the R flag of its advertisements (RFC 9047)
}

// A Group says that a VTEP is one of several that hosts are behind, as those of an Ethernet segment
// are that is all-active (RFC 7432, sections 7.1 and 8.4; RFC 8365, section 8). The rows of an owner
// with one VNI, Tunnel and Name are one group, by which its MAC rows call it. Each flow takes one
// VTEP; when one comes or goes, only its own flows go elsewhere.
type Group struct {
	VNI    frame.VNI
	Name   string
	VTEP   netip.AddrPort
	FarVNI frame.VNI // as in MAC
	Tunnel string    // likewise
}

// A Flood says that a VTEP gets the broadcast, unknown unicast and multicast frames of a
// segment, as EVPN's route type 3 does (RFC 7432, section 7.3). Rows that name this VTEP
// itself do no harm. VTEP may be a multicast group, which stands for all that are in it.
// Tunnel is as in MAC.
type Flood struct {
	VNI    frame.VNI
	VTEP   netip.AddrPort
	Tunnel string
}

// A Prefix says where packets for a prefix go: EVPN's route type 5 (RFC 9136), the lease of a
// subnet, a block of addresses. Several rows with one VRF and prefix are several next hops.
type Prefix struct {
	VRF    string
	Prefix netip.Prefix
	Via    Via
}

// A Via is a next hop, of the kinds of l3.NextHop. VNI names the interface of the VRF.
//
//	VNI, IP          on a link: a gateway there, or the host itself
//	VNI, MAC, VTEP   a router behind a tunnel (RFC 9136, section 4.4); the FDB of VNI gets MAC -> VTEP
//	VNI, VTEP        the far end of a tunnel for IP; VTEP has no port
//	VNI              whatever is behind an IP port
//	zero             such packets are dropped, unless there are other rows for the prefix
type Via struct {
	VNI  frame.VNI
	IP   netip.Addr
	MAC  frame.MAC
	VTEP netip.AddrPort

	FarVNI frame.VNI // with MAC and VTEP, as in MAC
	Tunnel string    // with VTEP, likewise
}

// An Update changes the rows of one owner. First Del goes, then Add comes; a row in both is
// advertised anew, which counts for hosts that move. With Snapshot, Add is all there is: what
// else the owner has goes as well. Rows that do not change are not written again.
type Update struct {
	Snapshot bool
	Add, Del []Route
}

// A Programmer takes the rows of control planes.
type Programmer interface {
	// Program changes the rows of an owner, all of them or, on an error, none.
	// Withdrawing a row that is not there is no error, nor is adding one that is.
	Program(owner string, u Update) error
}

func (MAC) route()    {}
func (Group) route()  {}
func (Flood) route()  {}
func (Prefix) route() {}

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
	return fmt.Sprintf("flood vni %d vtep %v%s", r.VNI, r.VTEP, of(r.Tunnel))
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
func (r Prefix) String() string { return fmt.Sprintf("prefix %v vrf %s %v", r.Prefix, r.VRF, r.Via) }

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
	return s
}

// clean returns a row in the form rows are compared in, with IPv4 as such.
func clean(r Route) Route {
	switch r := r.(type) {
	case MAC:
		r.IP, r.VTEP = r.IP.Unmap(), unmap(r.VTEP)
		return r
	case Group:
		r.VTEP = unmap(r.VTEP)
		return r
	case Flood:
		r.VTEP = unmap(r.VTEP)
		return r
	case Prefix:
		r.Via.IP, r.Via.VTEP = r.Via.IP.Unmap(), unmap(r.Via.VTEP)
		return r
	}
	return r
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// keyOf returns what a row replaces, and is withdrawn by: a row itself, for MACs with its key
// alone.
func keyOf(r Route) Route {
	if m, ok := r.(MAC); ok {
		return MAC{VNI: m.VNI, MAC: m.MAC, IP: m.IP}
	}
	return r
}

// compare orders rows of one owner: MACs, groups, floods, prefixes, each by its key.
func compare(a, b Route) int {
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
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.VTEP.Compare(b.VTEP), cmp.Compare(a.Tunnel, b.Tunnel))
		}
	case Prefix:
		if b, ok := b.(Prefix); ok {
			return cmp.Or(cmp.Compare(a.VRF, b.VRF), a.Prefix.Addr().Compare(b.Prefix.Addr()),
				cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), compareVia(a.Via, b.Via))
		}
	}
	return cmp.Compare(order(a), order(b))
}

func order(r Route) int {
	switch r.(type) {
	case MAC:
		return 0
	case Group:
		return 1
	case Flood:
		return 2
	}
	return 3
}

func compareVia(a, b Via) int {
	return cmp.Or(cmp.Compare(a.VNI, b.VNI), a.IP.Compare(b.IP), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), a.VTEP.Compare(b.VTEP),
		cmp.Compare(a.FarVNI, b.FarVNI), cmp.Compare(a.Tunnel, b.Tunnel))
}
