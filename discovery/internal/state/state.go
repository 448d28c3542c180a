package state

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	Hold       = 75 * time.Second // of an advertisement, when it is new
	Retransmit = time.Second      // until a neighbour has answered
	Gossip     = 10 * time.Second // between summaries in the mesh
	Window     = 64               // advertisements that a neighbour has not acknowledged

	PartHosts  = 80    // of an advertisement
	MaxParts   = 256   // of an owner
	MaxHosts   = 16384 // of an owner that is us, with its segments
	MaxOwners  = 16384 // in the database
	MaxAdverts = 32768 // in the database
	MaxEntries = 32    // of a summary, so that it and its answer fit a datagram
	MaxSeq     = 1 << 62
)

// A State is the link state as one VTEP knows it. Times are since any one moment, and never go back.
type State struct {
	self netip.Addr
	db   database
	own  own

	peers   map[netip.Addr]*peer
	sorted  []*peer // by address
	ready   []*peer // that have room for what waits
	retries []retry // in order of time
	summing map[*peer]bool
	gossips time.Duration // when the next neighbour of the mesh hears what there is
	turn    netip.Addr    // that heard it last
	epoch   uint64
	out     []Send
}

// New returns the state of a VTEP that has no hosts. The epoch differs from those of its former lives.
func New(self netip.Addr, epoch uint64) *State {
	return &State{self: self, epoch: epoch, db: newDatabase(), own: own{in: map[Key]uint8{}},
		peers: map[netip.Addr]*peer{}, summing: map[*peer]bool{}, turn: self}
}

// Adverts returns how many advertisements and owners there are.
func (s *State) Adverts() (adverts, owners int) { return len(s.db.held), len(s.db.owners) }

// install keeps an advertisement and floods it.
func (s *State) install(now time.Duration, a Advert, from *peer) {
	s.db.put(a, now+a.Hold)
	s.flood(a.ID, from)
}

// Errors of messages.
var (
	ErrRefused = errors.New("discovery: a message breaks a rule, or comes from nobody we are adjacent to")
	ErrFull    = errors.New("discovery: no room for an advertisement")
)

// Receive takes a message of a neighbour, or returns why not.
func (s *State) Receive(now time.Duration, from netip.Addr, m Message) error {
	s.age(now)
	p := s.peers[from]
	if p == nil {
		return ErrRefused
	}
	switch m := m.(type) {
	case Update:
		return s.take(now, p, m.Advert)
	case Ack:
		if h := s.db.held[m.ID]; h != nil && h.Head == m.Head {
			s.done(p, m.ID)
		}
	case Summary:
		return s.compare(p, m)
	case Want:
		if m.Epoch != p.epoch || len(m.IDs) > MaxEntries {
			return ErrRefused // a late answer, perhaps
		}
		for _, id := range m.IDs {
			s.queue(p, id)
		}
		s.answered(now, p)
	}
	return nil
}

func (s *State) take(now time.Duration, p *peer, a Advert) (err error) {
	if !a.valid() || a.Owner == s.self && a.Seq > MaxSeq/2 { // no life of ours gets there, and above MaxSeq there is nothing
		return ErrRefused
	}
	h := s.db.held[a.ID]
	switch {
	case h != nil && h.newer(a.Head):
		s.queue(p, a.ID)
		return nil
	case h != nil && h.Head == a.Head:
		s.done(p, a.ID)
	case a.Owner == s.self: // from a former life
		s.own.parts[a.Part].seq = a.Seq
		s.advertise(now, a.Part)
		return nil
	case s.db.full(a.ID):
		err = ErrFull // acknowledged all the same: it would be sent for ever
	default:
		s.install(now, a, p)
	}
	s.send(p.addr, Ack{Entry{a.ID, a.Head}})
	return err
}

// compare answers a summary.
func (s *State) compare(p *peer, m Summary) error {
	if !m.valid() {
		return ErrRefused
	}
	w, there := Want{Epoch: m.Epoch}, m.Entries
	for _, id := range s.db.within(m.From, m.To) {
		for len(there) > 0 && there[0].Compare(id) < 0 {
			w.IDs = append(w.IDs, there[0].ID)
			there = there[1:]
		}
		if len(there) == 0 || there[0].ID != id {
			s.queue(p, id)
			continue
		}
		if here := s.db.held[id].Head; there[0].newer(here) {
			w.IDs = append(w.IDs, id)
		} else if here.newer(there[0].Head) {
			s.queue(p, id)
		}
		there = there[1:]
	}
	for _, e := range there {
		w.IDs = append(w.IDs, e.ID)
	}
	s.send(p.addr, w)
	return nil
}

func (s *State) send(to netip.Addr, m Message) { s.out = append(s.out, Send{to, m}) }

// age drops what is too old.
func (s *State) age(now time.Duration) {
	for len(s.db.ages) > 0 && now >= s.db.ages[0].until {
		h := s.db.ages[0]
		s.db.drop(h)
		for _, p := range s.sorted {
			s.done(p, h.ID)
		}
	}
}

// Poll returns what is to be sent now, in order. It is called after any other method, and every [Retransmit].
func (s *State) Poll(now time.Duration) []Send {
	s.age(now)
	s.originate(now)
	s.gossip(now)
	s.summaries(now)
	s.again(now)
	for _, p := range s.ready {
		if p.ready = false; s.peers[p.addr] == p {
			s.fill(now, p)
		}
	}
	s.ready = s.ready[:0]
	out := s.out
	s.out = nil
	return out
}

// summaries sends those that are due.
func (s *State) summaries(now time.Duration) {
	if len(s.summing) == 0 {
		return
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.summing), func(a, b *peer) int { return a.addr.Compare(b.addr) }) {
		if s.peers[p.addr] != p {
			delete(s.summing, p)
			continue
		}
		if now < p.summary {
			continue
		}
		p.summary = now + Retransmit
		m := Summary{Epoch: p.epoch, From: p.from, To: p.to}
		for _, id := range s.db.within(p.from, p.to) {
			if len(m.Entries) == MaxEntries { // more have come since
				m.To = m.Entries[MaxEntries-1].ID
				break
			}
			m.Entries = append(m.Entries, Entry{id, s.db.held[id].Head})
		}
		p.to = m.To
		s.send(p.addr, m)
	}
}

// again sends again what was not acknowledged.
func (s *State) again(now time.Duration) {
	for len(s.retries) > 0 && now >= s.retries[0].at {
		r := s.retries[0]
		s.retries = s.retries[1:]
		if s.peers[r.p.addr] == r.p && r.p.due[r.id] == r.at {
			s.update(now, r.p, r.id)
		}
	}
}

// Changes returns what has changed since it was called last, in no order.
func (s *State) Changes() []Change {
	if len(s.db.changed) == 0 {
		return nil
	}
	list := slices.Collect(maps.Keys(s.db.changed))
	clear(s.db.changed)
	return list
}

// Best returns the claim of a host that counts. Static ones go before learned ones, then the one that moved most often, then the
// lower address.
func (s *State) Best(vni frame.VNI, mac frame.MAC) (Claim, bool) {
	if list := s.db.claims[vni][mac]; len(list) > 0 {
		return list[0], true
	}
	return Claim{}, false
}

// Has reports whether an owner has a segment.
func (s *State) Has(vni frame.VNI, owner netip.Addr) bool {
	list := s.db.claims[vni][frame.MAC{}]
	i, _ := slices.BinarySearchFunc(list, Claim{Owner: owner}, Claim.compare)
	return i < len(list) && list[i].Owner == owner
}

// Segment returns all there is of a segment, as changes, in no order.
func (s *State) Segment(vni frame.VNI) (list []Change) {
	for mac, claims := range s.db.claims[vni] {
		if !mac.IsZero() {
			list = append(list, Change{Key: Key{vni, mac}})
			continue
		}
		for _, c := range claims {
			list = append(list, Change{Key{vni, mac}, c.Owner})
		}
	}
	return list
}

// VNIs returns the segments that anybody has, in no order.
func (s *State) VNIs() []frame.VNI { return slices.Collect(maps.Keys(s.db.claims)) }

// Changed reports whether Changes has something.
func (s *State) Changed() bool { return len(s.db.changed) > 0 }
