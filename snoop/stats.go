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

// A Listener is a port, or the peer of a tunnel, behind which a host listens to a group.
type Listener struct {
	Group netip.Addr // not valid for one that gets the frames of all groups: of a Router, or else for lack of room
	Dest  frame.Dest
	Until frame.Tick // when it is forgotten; 0 if it is Permanent
	Router
}

// Router says for which groups a multicast router or a querier is at a place, and whether it is one that SetRouters has named.
type Router struct{ IPv4, IPv6, Permanent bool }

// All iterates over the listeners, sorted by group, first those that get all groups.
func (s *Snooper) All() iter.Seq[Listener] {
	var list []Listener
	s.mu.Lock()
	routers := map[frame.Dest]Listener{}
	for f, of := range s.from {
		for d, until := range of {
			r := routers[d]
			r.Dest, r.Until = d, max(r.Until, until)
			r.IPv4, r.IPv6 = r.IPv4 || f == v4, r.IPv6 || f == v6
			routers[d] = r
		}
	}
	for _, d := range s.always {
		routers[d] = Listener{Dest: d, Router: Router{true, true, true}}
	}
	list = slices.AppendSeq(list, maps.Values(routers))
	for d, until := range s.crowded {
		list = append(list, Listener{Dest: d, Until: until})
	}
	for k, r := range s.rows {
		list = append(list, Listener{Group: netip.AddrFrom16(k.group).Unmap(), Dest: k.place, Until: r.until})
	}
	s.mu.Unlock()
	slices.SortStableFunc(list, func(a, b Listener) int {
		return cmp.Or(a.Group.Compare(b.Group), cmp.Compare(a.Dest, b.Dest), cmp.Compare(b.Until, a.Until))
	})
	return slices.Values(list)
}
