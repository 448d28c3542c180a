package bgp

import "time"

// askPause is the least time between two requests to one peer: who says and withdraws many routes cannot have the others say all theirs
// time and again.
const askPause = 5 * time.Second

// spare returns how many more routes a peer may have. b.mu is held.
func (b *BGP) spare(p *peer) int {
	of := max(b.share-len(p.known), 0) + max(b.limit-b.taken, 0)
	return min(p.MaxRoutes-len(p.known), of)
}

// relieve asks peers for their routes when there is room for those that were left out, or for a sixteenth of the limit: not whenever
// a route goes. b.mu is held.
func (b *BGP) relieve() {
	if !b.short {
		return
	}
	b.short = false
	for _, p := range *b.peers.Load() {
		if p.missing == 0 {
			continue
		}
		if b.spare(p) < min(p.missing, max(min(p.MaxRoutes, b.limit)/16, 1)) || !p.ask() {
			b.short = true
		}
	}
}

// ask has the peer say its routes again (RFC 2918), and returns false if that has to wait. One that cannot is not asked: it says all in
// the next session. b.mu is held.
func (p *peer) ask() bool {
	p.mu.Lock()
	s := p.current
	able := s != nil && s.live && s.open.refresh
	p.mu.Unlock()
	if !able {
		return true
	}
	if wait := askPause - time.Since(p.asked); wait > 0 {
		if p.asking == nil {
			p.asking = time.AfterFunc(wait, func() {
				p.b.mu.Lock()
				defer p.b.mu.Unlock()
				p.asking = nil
				p.b.relieve()
			})
		}
		return false
	}
	p.missing, p.asked = 0, time.Now()
	s.ask.Store(true)
	s.queue.poke()
	return true
}
