package bgp

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Status is how a peer is.
type Status struct {
	Addr      netip.Addr // none while nobody is known at the interface
	Interface string
	Link      string // what is to say of the interface, or ""
	AS        uint32 // 0: any that is allowed, while there is no session

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
		s := Status{Addr: p.id, Interface: p.Interface, Routes: len(p.known), Missing: p.missing, Stale: p.stale != nil, In: p.in.Load(), Out: p.sent.Load()}
		b.mu.Unlock()
		p.mu.Lock()
		s.State, s.Since, s.Last, s.LeftOut = p.state, p.since, p.last, maps.Clone(p.left)
		switch {
		case p.current != nil:
			s.HoldTime, s.AS = p.current.hold, p.current.open.as
		case p.AS == Internal:
			s.AS = b.conf.AS
		case p.AS > 0:
			s.AS = uint32(p.AS)
		}
		if p.Interface != "" && (p.at.addr.IsValid() || !s.Stale) {
			s.Addr = p.at.addr
		}
		p.mu.Unlock()
		if p.link != nil {
			s.Link = p.link.Status()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Status) int { return cmp.Or(x.Addr.Compare(y.Addr), cmp.Compare(x.Interface, y.Interface)) })
	return all
}
