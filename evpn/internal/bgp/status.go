package bgp

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Status is how a peer is.
type Status struct {
	Addr     netip.Addr
	AS       uint32
	State    string // idle, connect, active, openconfirm or established
	Since    time.Time
	Last     error // of the last session that failed, or nil
	In, Out  uint64
	Routes   int               // of the peer, stale ones too
	Missing  int               // left out at a limit since it said all; those said twice count twice
	LeftOut  map[string]uint64 // routes and UPDATEs by reason
	Stale    bool              // routes of a session before may be among them
	HoldTime time.Duration     // agreed on, while there is a session
}

// Status returns the peers by address.
func (b *BGP) Status() (all []Status) {
	for _, p := range *b.peers.Load() {
		b.mu.Lock()
		s := Status{Addr: p.Addr, AS: p.AS, Routes: len(p.known), Missing: p.missing, Stale: p.stale != nil, In: p.in.Load(), Out: p.sent.Load()}
		b.mu.Unlock()
		p.mu.Lock()
		s.State, s.Since, s.Last, s.LeftOut = p.state, p.since, p.last, maps.Clone(p.left)
		if p.current != nil {
			s.HoldTime = p.current.hold
		}
		p.mu.Unlock()
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Status) int { return x.Addr.Compare(y.Addr) })
	return all
}
