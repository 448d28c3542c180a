package vtep

import "github.com/vxswitch/vxswitch/frame"

// Anybody who can send to the VTEP makes learned peers, of any address. When there are as many as
// Config.MaxPeers allows, a newcomer takes the place of another, and of no listed one:
//
//   - first of one that has sent few packets, and none for a while, unless the newcomer's prefix has
//     more than its quarter;
//   - else of one of the prefix that has the most peers, if these are more than a quarter of
//     all, and more than the newcomer's prefix has.
//
// A prefix is the first 24 bits of an IPv4 address, or 64 of an IPv6 one. So peers that are in use
// stay while their prefix has no more than its quarter, and one prefix cannot keep the peers of
// another out.
const (
	fewPackets = 8
	quarter    = 4
)

// yielding returns how many peers may be on their way out, until a Retire returns them.
func (v *VTEP) yielding() int { return min(max(v.cfg.MaxPeers/quarter, 16), 256) }

// shares is how many learned peers each prefix has.
type shares struct {
	of     map[[16]byte]int
	levels []int // how many prefixes have that many
	most   int
}

// prefixOf returns the prefix that a peer counts in.
func prefixOf(e frame.Endpoint) [16]byte {
	if e.Is4() {
		e.IP[15] = 0
	} else {
		clear(e.IP[8:])
	}
	return e.IP
}

// add counts n more peers, or fewer, at an address.
func (s *shares) add(e frame.Endpoint, n int) {
	if s.of == nil {
		s.of = map[[16]byte]int{}
	}
	key := prefixOf(e)
	old := s.of[key]
	now := old + n
	for len(s.levels) <= max(old, now) {
		s.levels = append(s.levels, 0)
	}
	s.levels[old]--
	s.levels[now]++
	if s.of[key] = now; now == 0 {
		delete(s.of, key)
	}
	s.most = max(s.most, now)
	for s.most > 0 && s.levels[s.most] == 0 {
		s.most--
	}
}

// count keeps the number of learned peers. v.mu is held.
func (v *VTEP) count(h *hop, n int) {
	if h.learnable() {
		v.learned += n
		v.shares.add(h.to.Load()[0], n)
	}
}

// room reports whether a peer at src may be learned, for which another may have to give way.
// v.mu is held.
func (v *VTEP) room(src frame.Endpoint) bool {
	if v.learned < v.cfg.MaxPeers {
		return true
	}
	if len(v.evicted) >= v.yielding() {
		return false
	}
	mine := v.shares.of[prefixOf(src)]
	var h *hop
	if mine < max(v.cfg.MaxPeers/quarter, 1) {
		h = v.spareOne()
	}
	if h == nil && v.shares.most > max(v.cfg.MaxPeers/quarter, mine+1) {
		h = v.least()
	}
	if h == nil {
		return false
	}
	v.retire(h)
	v.evicted = append(v.evicted, h.num)
	return true
}

// spareOne returns a peer that has sent little.
func (v *VTEP) spareOne() *hop {
	for len(v.evictable) > 0 {
		h := v.evictable[0]
		v.evictable = v.evictable[1:]
		if !h.listed() && !h.retired && h.rx.Load() == h.heard {
			return h
		}
	}
	return nil
}

// least returns the peer that is needed least of a prefix that has the most: one that no FDB
// entry names, or else that has sent the least.
func (v *VTEP) least() (least *hop) {
	for h := range v.hops.all {
		if !h.learnable() || h.listed() || h.retired || v.shares.of[prefixOf(h.to.Load()[0])] != v.shares.most {
			continue
		}
		if least == nil || h.idle && !least.idle || h.idle == least.idle && h.rx.Load() < least.rx.Load() {
			least = h
		}
	}
	return least
}
