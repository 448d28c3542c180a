package evpn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/frame"
)

// Status is what a Speaker knows, in short.
type Status struct {
	Peers      []PeerStatus      `json:"peers"`      // by address
	Segments   []SegmentStatus   `json:"segments"`   // by VNI
	Duplicates []Duplicate       `json:"duplicates"` // by VNI and MAC
	LeftOut    map[string]int    `json:"leftOut"`    // routes of peers that are used nowhere, by reason
	Malformed  map[string]uint64 `json:"malformed"`  // routes and UPDATEs that were not taken, by reason
}

// PeerStatus is how a session is.
type PeerStatus struct {
	Addr   netip.Addr    `json:"address"`
	AS     uint32        `json:"as"`
	State  string        `json:"state"` // idle, connect, active, openconfirm or established
	Since  time.Time     `json:"since,omitzero"`
	Hold   time.Duration `json:"holdTime,omitzero"` // agreed on, while there is a session
	Routes int           `json:"routes"`            // that it has advertised
	Stale  bool          `json:"stale,omitzero"`    // routes of a session before may be among them
	In     uint64        `json:"received"`          // messages
	Out    uint64        `json:"sent"`              // messages
	Error  string        `json:"error,omitzero"`    // of the last session that failed
}

// SegmentStatus is what is known of a segment.
type SegmentStatus struct {
	VNI    frame.VNI  `json:"vni"`
	VTEP   netip.Addr `json:"vtep,omitzero"` // ours
	RD     string     `json:"rd"`
	VRF    string     `json:"vrf,omitzero"`
	Hosts  int        `json:"hosts"`  // MACs that are here
	Remote int        `json:"remote"` // MACs of peers
	VTEPs  int        `json:"vteps"`  // in its flood list
}

// A Duplicate is a MAC that has moved too often.
type Duplicate struct {
	VNI frame.VNI  `json:"vni"`
	MAC frame.MAC  `json:"mac"`
	At  netip.Addr `json:"vtep,omitzero"` // where it stays; none = here
}

// Status returns a snapshot.
func (s *Speaker) Status() Status {
	var st Status
	if e, ok := s.engine.(*bgp.BGP); ok {
		for _, p := range e.Status() {
			x := PeerStatus{Addr: p.Addr, AS: p.AS, State: p.State, Since: p.Since, Hold: p.HoldTime, Routes: p.Routes, Stale: p.Stale, In: p.In, Out: p.Out}
			if p.Last != nil {
				x.Error = p.Last.Error()
			}
			st.Peers = append(st.Peers, x)
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
	st.LeftOut, st.Malformed = s.table.Left(), maps.Clone(s.left)
	return st
}
