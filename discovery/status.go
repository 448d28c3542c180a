package discovery

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/frame"
)

// Status is what a Speaker knows, in short.
type Status struct {
	Servers    []ServerStatus    // by address
	Clients    int               // that are registered with us, of all networks; 0 if we are no server
	Registry   *RegistryStatus   // nil without one
	Neighbours []NeighbourStatus // by address
	Segments   []SegmentStatus   // by VNI

	Owners         int // VTEPs that advertise something, with us
	Advertisements int // of all of them

	Received, ReceivedBytes uint64 // datagrams
	Sent, SentBytes         uint64
	Refused                 map[string]uint64 // datagrams, and hosts without room, by reason
	RowErr                  error             // rows that the node refused last
}

// ServerStatus is what is known of a server.
type ServerStatus struct {
	Addr    netip.Addr
	Up      bool // it has answered within 15 s
	Clients int  // in its list
}

// NeighbourStatus is what is known of a neighbour.
type NeighbourStatus struct {
	Addr   netip.Addr
	Name   string // that it has registered with
	Listed bool   // by a server or the registry
	Up     bool   // each has heard the other within 15 s
	Since  time.Time
}

// SegmentStatus is what is known of a segment that we have.
type SegmentStatus struct {
	VNI    frame.VNI
	VTEPs  int // others that have it
	Hosts  int // MACs that are here
	Remote int // MACs of others
}

// Kinds of hosts.
const (
	Static     = "static"     // set by the configuration of its VTEP, or the MAC of a gateway
	Learned    = "learned"    // here, by a frame
	Advertised = "advertised" // of another VTEP, which has learned it
)

// A Host is a MAC that a VTEP advertises in a segment that we have.
type Host struct {
	VNI   frame.VNI
	MAC   frame.MAC
	VTEP  netip.Addr // we, too
	Kind  string     // static, learned or advertised
	Moves int        // how often it has moved
}

// Status returns a snapshot.
func (s *Speaker) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Received: s.counts.in, ReceivedBytes: s.counts.bytesIn, Sent: s.counts.out, SentBytes: s.counts.bytesOut,
		Refused: maps.Clone(s.counts.refused), RowErr: s.counts.rowErr}
	for _, x := range s.member.Servers() {
		st.Servers = append(st.Servers, ServerStatus(x))
	}
	if s.server != nil {
		st.Clients = s.server.Clients()
	}
	st.Registry = s.registry.status()
	for _, x := range s.hello.Status() {
		st.Neighbours = append(st.Neighbours, NeighbourStatus{x.Addr, s.names[x.Addr], x.Mesh, x.Up, s.begun.Add(x.Since)})
	}
	for _, vni := range slices.Sorted(maps.Keys(s.here.segments)) {
		st.Segments = append(st.Segments, s.segment(vni))
	}
	st.Advertisements, st.Owners = s.state.Adverts()
	return st
}

func (s *Speaker) segment(vni frame.VNI) SegmentStatus {
	x := SegmentStatus{VNI: vni}
	for _, c := range s.state.Segment(vni) {
		best, _ := s.state.Best(vni, c.MAC)
		switch {
		case c.MAC.IsZero() && c.Owner == s.cfg.Local:
		case c.MAC.IsZero():
			x.VTEPs++
		case best.Owner == s.cfg.Local:
			x.Hosts++
		default:
			x.Remote++
		}
	}
	return x
}

// Hosts iterates over the hosts of our segments as they are now, by VNI and MAC.
func (s *Speaker) Hosts() iter.Seq[Host] {
	s.mu.Lock()
	var all []Host
	for vni := range s.here.segments {
		for _, c := range s.state.Segment(vni) {
			if best, _ := s.state.Best(vni, c.MAC); !c.MAC.IsZero() {
				all = append(all, Host{vni, c.MAC, best.Owner, s.kind(best), int(best.Moves)})
			}
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()))
	})
	return slices.Values(all)
}

func (s *Speaker) kind(c state.Claim) string {
	switch {
	case c.Kind == state.Static:
		return Static
	case c.Owner == s.cfg.Local:
		return Learned
	}
	return Advertised
}
