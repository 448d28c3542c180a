package snoop

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	countReports = iota
	countLeaves
	countQueries
	countRouters
	countOther
	countMalformed
	countRefused
	countFull
	countSent
	numCounts
)

// Stats counts messages, and what is known.
type Stats struct {
	Reports   uint64 `json:"reports"`   // messages of hosts that listen
	Leaves    uint64 `json:"leaves"`    // messages of hosts that have stopped
	Queries   uint64 `json:"queries"`   // of other queriers
	Routers   uint64 `json:"routers"`   // PIM hellos and router advertisements (MRD)
	Other     uint64 `json:"other"`     // IGMP of other types
	Malformed uint64 `json:"malformed"` // dropped
	Refused   uint64 `json:"refused"`   // queries and messages of routers from ports for hosts, dropped
	Full      uint64 `json:"full"`      // listeners without room, whose port or peer gets all groups
	Sent      uint64 `json:"sent"`      // queries

	IPv4 bool `json:"ipv4"` // frames go only to who listens: there is a querier, and hosts have answered
	IPv6 bool `json:"ipv6"`

	Groups    int `json:"groups"`    // with listeners
	Listeners int `json:"listeners"` // groups at ports and peers
	Crowded   int `json:"crowded"`   // ports and peers that get all groups, for lack of room
}

// Stats returns the counters of all stages of the segment.
func (s *Snooper) Stats() Stats {
	n := func(i int) uint64 { return s.counts[i].Load() }
	st := Stats{
		Reports: n(countReports), Leaves: n(countLeaves), Queries: n(countQueries), Routers: n(countRouters), Other: n(countOther),
		Malformed: n(countMalformed), Refused: n(countRefused), Full: n(countFull), Sent: n(countSent), Groups: s.joined.Len(),
		IPv4: s.on[v4].Load(), IPv6: s.on[v6].Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Listeners, st.Crowded = len(s.rows), len(s.crowded)
	return st
}

// A Listener is a port, or the peer of a tunnel, behind which a host listens to a group. Without a Group it is one that gets all
// groups.
type Listener struct {
	Group netip.Addr
	Dest  frame.Dest
}

// All iterates over the listeners, sorted by group, first those that get all groups.
func (s *Snooper) All() iter.Seq[Listener] {
	var list []Listener
	for _, p := range [...]*[]frame.Dest{s.all[v4].Load(), s.all[v6].Load()} {
		for _, d := range *p {
			list = append(list, Listener{Dest: d})
		}
	}
	s.mu.Lock()
	for k := range maps.Keys(s.rows) {
		list = append(list, Listener{netip.AddrFrom16(k.group).Unmap(), k.place})
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Listener) int { return cmp.Or(a.Group.Compare(b.Group), cmp.Compare(a.Dest, b.Dest)) })
	return slices.Values(slices.Compact(list))
}
