package state

import (
	"net/netip"
	"slices"
	"time"
)

// A peer is a neighbour.
type peer struct {
	addr netip.Addr
	mesh bool

	due    map[ID]time.Duration // what it has not acknowledged, and when to send it again, 0 = not sent yet
	wait   []ID                 // what is not sent yet, and perhaps others
	flying int                  // what is sent
	ready  bool                 // it is in State.ready

	epoch   uint64        // of a summary without answer, 0 = there is none
	from    ID            // where that begins
	to      ID            // and ends
	summary time.Duration // when to send it again
}

// retry is something to send again, unless it has been acknowledged.
type retry struct {
	at time.Duration
	p  *peer
	id ID
}

// Adjacent adds a neighbour, or begins anew with it. One of the mesh has links to all others of the mesh.
func (s *State) Adjacent(now time.Duration, addr netip.Addr, mesh bool) {
	s.Lost(addr)
	p := &peer{addr: addr, mesh: mesh, due: map[ID]time.Duration{}}
	s.peers[addr] = p
	i, _ := slices.BinarySearchFunc(s.sorted, addr, byAddr)
	s.sorted = slices.Insert(s.sorted, i, p)
	if !mesh {
		s.summarise(now, p, First)
		return
	}
	for _, id := range s.db.within(ID{s.self, 0}, ID{s.self, MaxParts - 1}) {
		s.queue(p, id)
	}
}

func byAddr(p *peer, a netip.Addr) int { return p.addr.Compare(a) }

// Lost forgets a neighbour. What it advertised stays until it ages out, since there may be another way to it.
func (s *State) Lost(addr netip.Addr) {
	if s.peers[addr] == nil {
		return
	}
	delete(s.peers, addr)
	i, _ := slices.BinarySearchFunc(s.sorted, addr, byAddr)
	s.sorted = slices.Delete(s.sorted, i, i+1)
}

// queue has an advertisement sent to a neighbour, unless it is under way.
func (s *State) queue(p *peer, id ID) {
	if _, ok := p.due[id]; ok || s.db.held[id] == nil {
		return
	}
	p.due[id] = 0
	p.wait = append(p.wait, id)
	if len(p.wait) > 2*len(p.due)+64 {
		p.tidy()
	}
	s.wake(p)
}

// tidy forgets what waits twice, or no more.
func (p *peer) tidy() {
	seen := map[ID]bool{}
	p.wait = slices.DeleteFunc(p.wait, func(id ID) bool {
		due, ok := p.due[id]
		void := !ok || due != 0 || seen[id]
		seen[id] = true
		return void
	})
}

// wake has Poll look at a neighbour.
func (s *State) wake(p *peer) {
	if !p.ready {
		p.ready = true
		s.ready = append(s.ready, p)
	}
}

// done notes that nothing needs to be sent of an ID any more.
func (s *State) done(p *peer, id ID) {
	if p.due[id] != 0 {
		if p.flying--; len(p.wait) > 0 {
			s.wake(p)
		}
	}
	delete(p.due, id)
}

// flood queues an advertisement for all neighbours but the one it came from, and those that have it from there.
func (s *State) flood(id ID, from *peer) {
	for _, p := range s.sorted {
		if s.done(p, id); from == nil || p != from && !(p.mesh && from.mesh) {
			s.queue(p, id)
		}
	}
}

// fill sends to a neighbour until [Window] advertisements are not acknowledged.
func (s *State) fill(now time.Duration, p *peer) {
	for len(p.wait) > 0 && p.flying < Window {
		id := p.wait[0]
		p.wait = p.wait[1:]
		if due, ok := p.due[id]; ok && due == 0 {
			p.flying++
			s.update(now, p, id)
		}
	}
}

// Leave takes back all that this VTEP advertises, and is Poll for the last time: it sends also what would wait for acknowledgements,
// for none will be heard.
func (s *State) Leave(now time.Duration) []Send {
	s.own.clear()
	s.out = s.Poll(now)
	for _, p := range s.sorted {
		for _, id := range p.wait {
			if due, ok := p.due[id]; ok && due == 0 {
				s.update(now, p, id)
			}
		}
		p.wait = nil
	}
	out := s.out
	s.out = nil
	return out
}

// update sends an advertisement to a neighbour, and again after [Retransmit].
func (s *State) update(now time.Duration, p *peer, id ID) {
	h := s.db.held[id]
	a := h.Advert
	a.Hold = h.until - now
	p.due[id] = now + Retransmit
	s.retries = append(s.retries, retry{now + Retransmit, p, id})
	s.send(p.addr, Update{a})
}

// summarise tells a neighbour what there is from an ID on.
func (s *State) summarise(now time.Duration, p *peer, from ID) {
	s.epoch++
	p.epoch, p.from, p.to, p.summary = s.epoch, from, Last, now
	if ids := s.db.within(from, Last); len(ids) > MaxEntries {
		p.to = ids[MaxEntries-1]
	}
	s.summing[p] = true
}

// answered has the next range follow.
func (s *State) answered(now time.Duration, p *peer) {
	p.epoch = 0
	delete(s.summing, p)
	if p.to == Last {
		return
	}
	from := p.to // the one after it
	if from.Part++; from.Part == 0 {
		from.Owner = from.Owner.Next()
	}
	if !from.Owner.IsValid() { // the last IPv4 address
		from.Owner = netip.IPv6Unspecified()
	}
	s.summarise(now, p, from)
}

// gossip has one neighbour of the mesh hear what there is.
func (s *State) gossip(now time.Duration) {
	if now < s.gossips || len(s.sorted) == 0 {
		return
	}
	s.gossips = now + Gossip
	i, ok := slices.BinarySearchFunc(s.sorted, s.turn, byAddr)
	if ok {
		i++
	}
	for n := range s.sorted {
		if p := s.sorted[(i+n)%len(s.sorted)]; p.mesh {
			if s.turn = p.addr; p.epoch == 0 {
				s.summarise(now, p, First)
			}
			return
		}
	}
}
