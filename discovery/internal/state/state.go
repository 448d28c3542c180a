package state

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	Hold       = 75 * time.Second // of an advertisement, when it is new
	Retransmit = time.Second      // until a neighbour has answered

	MaxOwners = 16384 // in the database
	MaxHosts  = 16384 // of an owner
	MaxSeq    = 1 << 62
)

// A State is the link state as one VTEP knows it. Times are since any one moment, and never go back.
type State struct {
	self    netip.Addr
	db      map[netip.Addr]*held
	peers   map[netip.Addr]*peer
	epoch   uint64
	refresh time.Duration
	out     []Send
	refused uint64
}

// held is an advertisement and when it ages out.
type held struct {
	Advert
	until time.Duration
}

type peer struct {
	epoch   uint64                       // of a summary without answer, 0 if it has come
	summary time.Duration                // when to send it
	pending map[netip.Addr]time.Duration // by owner, when to send
}

// New returns the state of a VTEP that has no hosts. The epoch differs from those of its former lives.
func New(self netip.Addr, epoch uint64) *State {
	return &State{self: self, epoch: epoch, db: map[netip.Addr]*held{}, peers: map[netip.Addr]*peer{}}
}

// Refused counts the messages that broke a rule or a limit.
func (s *State) Refused() uint64 { return s.refused }

// Set says which hosts this VTEP has, at most [MaxHosts]; it reports whether they can be advertised.
func (s *State) Set(now time.Duration, hosts []Host) bool {
	if len(hosts) > MaxHosts {
		return false
	}
	s.originate(now, slices.Clone(hosts), 0)
	return true
}

// originate advertises hosts anew, above a sequence number.
func (s *State) originate(now time.Duration, hosts []Host, above uint64) {
	if h := s.db[s.self]; h != nil {
		above = max(above, h.Seq)
	}
	s.refresh = now + Hold/3
	s.install(now, Advert{s.self, Head{above + 1, sum(hosts)}, Hold, hosts}, netip.Addr{})
}

// install keeps an advertisement and floods it to all but the neighbour it came from.
func (s *State) install(now time.Duration, a Advert, from netip.Addr) {
	s.db[a.Owner] = &held{a, now + a.Hold}
	for addr, p := range s.peers {
		if delete(p.pending, a.Owner); addr != from {
			p.pending[a.Owner] = now
		}
	}
}

// Adjacent adds a neighbour, or begins anew with it.
func (s *State) Adjacent(now time.Duration, addr netip.Addr) {
	s.epoch++
	s.peers[addr] = &peer{s.epoch, now, map[netip.Addr]time.Duration{}}
}

// Lost forgets a neighbour. What it advertised stays until it ages out, since there may be another way to it.
func (s *State) Lost(addr netip.Addr) { delete(s.peers, addr) }

// Receive takes a message of a neighbour.
func (s *State) Receive(now time.Duration, from netip.Addr, m Message) {
	s.age(now)
	p := s.peers[from]
	if p == nil {
		s.refused++
		return
	}
	switch m := m.(type) {
	case Update:
		s.update(now, from, p, m.Advert)
	case Ack:
		if h := s.db[m.Owner]; h != nil && h.Head == m.Head {
			delete(p.pending, m.Owner)
		}
	case Summary:
		s.compare(now, from, p, m)
	case Want:
		if m.Epoch != p.epoch {
			return
		}
		p.epoch = 0
		for _, owner := range m.Owners {
			s.queue(now, p, owner)
		}
	}
}

// queue has the advertisement of an owner sent to a neighbour, if there is one.
func (s *State) queue(now time.Duration, p *peer, owner netip.Addr) {
	if _, ok := p.pending[owner]; !ok && s.db[owner] != nil {
		p.pending[owner] = now
	}
}

func (s *State) update(now time.Duration, from netip.Addr, p *peer, a Advert) {
	if !a.Owner.IsValid() || a.Seq > MaxSeq || a.Hold <= 0 || a.Hold > Hold || len(a.Hosts) > MaxHosts || a.Sum != sum(a.Hosts) {
		s.refused++
		return
	}
	h := s.db[a.Owner]
	switch {
	case h != nil && h.newer(a.Head):
		s.queue(now, p, a.Owner)
		return
	case h != nil && h.Head == a.Head:
		delete(p.pending, a.Owner)
	case a.Owner == s.self:
		var hosts []Host
		if h != nil {
			hosts = h.Hosts
		}
		s.originate(now, hosts, a.Seq)
		return
	case h == nil && len(s.db) >= MaxOwners:
		s.refused++ // acknowledged all the same: it would be sent for ever
	default:
		s.install(now, a, from)
	}
	s.send(from, Ack{a.Owner, a.Head})
}

// compare answers a summary.
func (s *State) compare(now time.Duration, from netip.Addr, p *peer, m Summary) {
	if len(m.Heads) > MaxOwners {
		s.refused++
		return
	}
	w := Want{Epoch: m.Epoch}
	for owner, there := range m.Heads {
		if h := s.db[owner]; h == nil || there.newer(h.Head) {
			w.Owners = append(w.Owners, owner)
		}
	}
	slices.SortFunc(w.Owners, netip.Addr.Compare)
	for owner, h := range s.db {
		if there, ok := m.Heads[owner]; !ok || h.newer(there) {
			s.queue(now, p, owner)
		}
	}
	s.send(from, w)
}

func (s *State) send(to netip.Addr, m Message) { s.out = append(s.out, Send{to, m}) }

// age drops what is too old, and advertises our hosts again before they are.
func (s *State) age(now time.Duration) {
	if h := s.db[s.self]; h != nil && now >= s.refresh {
		s.originate(now, h.Hosts, 0)
	}
	for owner, h := range s.db {
		if now < h.until {
			continue
		}
		delete(s.db, owner)
		for _, p := range s.peers {
			delete(p.pending, owner)
		}
	}
}

// Poll returns what is to be sent now, in order. It is called after Set, Adjacent and Receive, and each [Retransmit].
func (s *State) Poll(now time.Duration) []Send {
	s.age(now)
	for _, addr := range slices.SortedFunc(maps.Keys(s.peers), netip.Addr.Compare) {
		p := s.peers[addr]
		if p.epoch != 0 && now >= p.summary {
			heads := make(map[netip.Addr]Head, len(s.db))
			for owner, h := range s.db {
				heads[owner] = h.Head
			}
			p.summary = now + Retransmit
			s.send(addr, Summary{p.epoch, heads})
		}
		for _, owner := range slices.SortedFunc(maps.Keys(p.pending), netip.Addr.Compare) {
			if now < p.pending[owner] {
				continue
			}
			h := s.db[owner]
			a := h.Advert
			a.Hold = h.until - now
			p.pending[owner] = now + Retransmit
			s.send(addr, Update{a})
		}
	}
	out := s.out
	s.out = nil
	return out
}

// Hosts returns which VTEP has each MAC of a segment, ourselves too. Static hosts go before learned ones, then the lower address.
func (s *State) Hosts(vni frame.VNI) map[frame.MAC]netip.Addr {
	at := map[frame.MAC]netip.Addr{}
	for _, kind := range []Kind{Learned, Static} {
		for _, owner := range slices.Backward(slices.SortedFunc(maps.Keys(s.db), netip.Addr.Compare)) {
			for _, h := range s.db[owner].Hosts {
				if h.VNI == vni && h.Kind == kind {
					at[h.MAC] = owner
				}
			}
		}
	}
	return at
}
