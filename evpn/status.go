package evpn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/frame"
)

// Status is what a Speaker knows, in short.
type Status struct {
	Peers      []PeerStatus      // by address
	Segments   []SegmentStatus   // by VNI
	Duplicates []Duplicate       // by VNI and MAC
	Ethernets  []EthernetStatus  // Ethernet segments, by ESI
	Advertised int               // routes of ours
	LeftOut    map[string]int    // routes of peers that are used nowhere, by reason
	Malformed  map[string]uint64 // routes and UPDATEs that were not taken, by reason
}

// PeerStatus is how a session is.
type PeerStatus struct {
	Addr      netip.Addr // none while no router is known at Interface
	Interface string     // that leads to the peer, if its settings have no address
	Link      string     // what is to say of Interface: why no router is known, or that there is another; "" = nothing
	AS        uint32     // 0 = external, while there is no session

	State   string        // idle, connect, active, openconfirm or established
	Since   time.Time     // of State
	Hold    time.Duration // agreed on, while there is a session
	Routes  int           // that it has advertised
	Stale   bool          // routes of a session before may be among them
	Missing int           // left out at a limit since it said all; those said twice count twice
	BFD     string        // of the path: unknown, alive or dead; "" = not probed
	In      uint64        // messages
	Out     uint64        // messages
	Err     error         // of the last session that failed
}

// SegmentStatus is what is known of a segment.
type SegmentStatus struct {
	VNI    frame.VNI
	VTEP   netip.Addr // ours
	RD     string
	VRF    string // of its gateway
	Hosts  int    // MACs that are here
	Remote int    // MACs of peers
	VTEPs  int    // in its flood list
}

// A Duplicate is a MAC that has moved too often.
type Duplicate struct {
	VNI frame.VNI
	MAC frame.MAC
	At  netip.Addr // where it stays; none = here
}

// BFD returns the sessions that probe the paths to peers.
func (s *Speaker) BFD() []bfd.Session { return s.prober.Sessions() }

// Status returns a snapshot.
func (s *Speaker) Status() Status {
	var st Status
	if e, ok := s.engine.(*bgp.BGP); ok {
		for _, p := range e.Status() {
			st.Peers = append(st.Peers, PeerStatus{Addr: p.Addr, Interface: p.Interface, Link: p.Link, AS: p.AS, State: p.State, Since: p.Since, Hold: p.HoldTime, Routes: p.Routes, Stale: p.Stale, Missing: p.Missing,
				In: p.In, Out: p.Out, Err: p.Last, BFD: s.prober.Status(p.Addr)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.table.Networks() {
		st.Segments = append(st.Segments, SegmentStatus{VNI: n.VNI, VTEP: n.VTEP.Netip(), RD: n.RD.String(), VRF: n.VRF, Hosts: n.Hosts, Remote: n.Far, VTEPs: n.VTEPs})
	}
	slices.SortFunc(st.Segments, func(a, b SegmentStatus) int { return cmp.Compare(a.VNI, b.VNI) })
	for at, d := range s.table.Duplicates() {
		st.Duplicates = append(st.Duplicates, Duplicate{d.VNI, d.MAC, at})
	}
	slices.SortFunc(st.Duplicates, func(a, b Duplicate) int {
		return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()))
	})
	st.Ethernets = s.ethernetStatus()
	st.Advertised = s.table.Advertised()
	st.LeftOut, st.Malformed = s.table.Left(), maps.Clone(s.malformed)
	return st
}
