package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/control"
)

// Status is what a Speaker knows, in short.
type Status struct {
	Peers     []PeerStatus   // by address; those of a prefix while they are connected
	Announced []netip.Prefix // sorted
	Refused   map[Reason]int // routes of all peers that are not taken, but for TooMany as they are now
	RowErr    error          // of the last rows that the node refused
}

// PeerStatus is how a session is.
type PeerStatus struct {
	Addr netip.Addr
	AS   uint32

	State string        // idle, connect, active, opensent, openconfirm or established
	Since time.Time     // of an established session
	Hold  time.Duration // agreed on, while there is a session
	BFD   string        // of the path: unknown, alive or dead; "" = not probed
	In    uint64        // messages
	Out   uint64        // messages
	Why   string        // the last session ended, or there is none yet; or ""

	Received int            // routes that it has announced
	Accepted int            // of them: taken; others may have better ones for the rest
	Refused  map[Reason]int // of them: not taken, though no other peer has a better one; of PeerFiltered all
}

// A Route is one of the best ways to a prefix that a peer has announced.
type Route struct {
	Prefix  netip.Prefix
	Peer    netip.Addr
	PathID  uint32 // of add-path (RFC 7911)
	NextHop netip.Addr

	Bandwidth float32 // that the path says the link to the next hop has, relative to those of others; 0 = nothing

	Refused Reason      // None if it is taken
	Via     control.Via // if it is
}

// String returns the route in one line.
func (r Route) String() string {
	s := r.Prefix.String() + " next hop " + r.NextHop.String() + " of " + r.Peer.String()
	if r.Bandwidth != 0 {
		s += fmt.Sprint(" bandwidth ", r.Bandwidth)
	}
	if r.Refused != None {
		return s + " refused: " + r.Refused.String()
	}
	return s + " " + r.Via.String()
}

// BFD returns the sessions that probe the paths to peers.
func (s *Speaker) BFD() []bfd.Session { return s.prober.Sessions() }

// Status returns a snapshot.
func (s *Speaker) Status() Status {
	st := Status{Refused: map[Reason]int{}}
	filtered := map[netip.Addr]int{}
	for _, e := range s.engine.Status() {
		filtered[e.Addr] = e.Filtered
		st.Peers = append(st.Peers, PeerStatus{
			Addr: e.Addr, AS: e.AS, State: e.State, Since: e.Since, Hold: e.Hold, In: e.In, Out: e.Out, Why: e.Why, Received: e.Received, Refused: map[Reason]int{},
			BFD: s.prober.Status(e.Addr),
		})
	}
	s.lock()
	defer s.mu.Unlock()
	for i := range st.Peers {
		if n := filtered[st.Peers[i].Addr]; n > 0 {
			st.Peers[i].Refused[PeerFiltered] += n
			st.Refused[PeerFiltered] += n
		}
		if n := s.table.peers[st.Peers[i].Addr]; n != nil {
			st.Peers[i].Accepted = n[None]
			n.refused(st.Peers[i].Refused)
		}
	}
	for _, n := range s.table.peers {
		n.refused(st.Refused)
	}
	if n := s.table.gone; n > 0 {
		st.Refused[TooMany] += n
	}
	slices.SortFunc(st.Peers, func(a, b PeerStatus) int { return a.Addr.Compare(b.Addr) })
	for p := range s.said {
		st.Announced = append(st.Announced, p)
	}
	slices.SortFunc(st.Announced, netip.Prefix.Compare)
	st.RowErr = s.rowErr
	return st
}

// refused adds what is not taken.
func (n *tally) refused(to map[Reason]int) {
	for r := None + 1; r < reasons; r++ {
		if n[r] > 0 {
			to[r] += n[r]
		}
	}
}

// Routes returns the best routes of peers, sorted by prefix, then next hop.
func (s *Speaker) Routes() []Route {
	s.lock()
	defer s.mu.Unlock()
	list := slices.Collect(s.table.routes())
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(a.Prefix.Compare(b.Prefix), a.NextHop.Compare(b.NextHop), a.Peer.Compare(b.Peer), cmp.Compare(a.PathID, b.PathID))
	})
	return list
}
