package vtep

import "github.com/vxswitch/vxswitch/frame"

// Any sender can create learned peers, with any address. When there are Config.MaxPeers of
// them, a new peer replaces a learned one:
//
//   - one that has sent few packets, and none for a while, unless the prefix of the new peer has more than a
//     quarter of all peers;
//   - otherwise one of the prefix with the most peers, if that has more than a quarter of all, and more than the
//     prefix of the new peer.
//
// A prefix is the first 24 bits of an IPv4 address, or the first 64 of an IPv6 address. So peers in use stay as
// long as their prefix has at most a quarter, and one prefix cannot keep out peers of another.
const (
	fewPackets = 8
	quarter    = 4
)

// maxEvicted returns how many peers may be replaced until the next Retire returns them.
func (v *VTEP) maxEvicted() int { return min(max(v.cfg.MaxPeers/quarter, 16), 256) }

// shares counts the learned peers of each prefix.
type shares struct {
	of     map[[16]byte]int
	levels []int // number of prefixes by their number of peers
	most   int
}

// prefixOf returns the prefix of an address.
func prefixOf(e frame.Endpoint) [16]byte {
	if e.Is4() {
		e.IP[15] = 0
	} else {
		clear(e.IP[8:])
	}
	return e.IP
}

// add changes the number of peers of an address's prefix by n.
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

// count changes the number of learned peers by n, if h counts as one. v.mu is held.
func (v *VTEP) count(h *hop, n int) {
	if h.learnable() {
		v.learned += n
		v.shares.add(h.to.Load()[0], n)
	}
}

// room reports whether a peer at src may be learned. It may evict another one. v.mu is held.
func (v *VTEP) room(src frame.Endpoint) bool {
	if v.learned < v.cfg.MaxPeers {
		return true
	}
	if len(v.evicted) >= v.maxEvicted() {
		return false
	}
	mine := v.shares.of[prefixOf(src)]
	var h *hop
	if mine < max(v.cfg.MaxPeers/quarter, 1) {
		h = v.nextEvictable()
	}
	if h == nil && v.shares.most > max(v.cfg.MaxPeers/quarter, mine+1) {
		h = v.leastUsed()
	}
	if h == nil {
		return false
	}
	v.retire(h)
	v.evicted = append(v.evicted, h.num)
	return true
}

// nextEvictable returns a peer that has sent little, or nil.
func (v *VTEP) nextEvictable() *hop {
	for len(v.evictable) > 0 {
		h := v.evictable[0]
		v.evictable = v.evictable[1:]
		if !h.listed() && !h.retired && v.heard(h) == h.heard {
			return h
		}
	}
	return nil
}

// leastUsed returns a peer of a prefix with the most peers: one without FDB entries, if there is any,
// and of these the one that has sent the least.
func (v *VTEP) leastUsed() (least *hop) {
	var fewest uint64
	for h := range v.hops.all {
		if !h.learnable() || h.listed() || h.retired || v.shares.of[prefixOf(h.to.Load()[0])] != v.shares.most {
			continue
		}
		if n := v.heard(h); least == nil || h.idle && !least.idle || h.idle == least.idle && n < fewest {
			least, fewest = h, n
		}
	}
	return least
}
