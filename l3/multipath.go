package l3

import (
	"math"
	"math/bits"
)

// A path is a next hop as one route uses it.
type path struct {
	hop    *nextHop
	weight uint8 // at least 1
}

// pick chooses a flow's next hop by rendezvous hashing: one that goes, goes down or gets another weight moves only
// its own flows. Those that are down are chosen only if all are. It returns nil for a route without next hops.
func (r *route) pick(flow uint64) *nextHop {
	if r.one != nil {
		return r.one
	}
	h, ask := r.choose(flow)
	if ask != nil {
		ask.out.vrf.nextHops.mark(ask, unresolved, 0)
	}
	return h
}

// choose is pick for a route with paths, without an effect. ask is the flow's own next hop if it is passed over since its neighbour did
// not answer a packet that had no other way, and nobody asks it again yet: pick marks it, so that housekeep does.
func (r *route) choose(flow uint64) (h, ask *nextHop) {
	h = r.best(flow, false)
	if h == nil || h.down.Load() == 0 {
		return h, nil
	}
	up := r.best(flow, true)
	if up == nil {
		return h, nil
	}
	if h.down.Load()&(silent|unresolved) == silent {
		ask = h
	}
	return up, ask
}

// best returns the next hop with the highest score for a flow, of all or of those that are up.
func (r *route) best(flow uint64, up bool) (h *nextHop) {
	var most, least uint64 // the hash, and the weighted logarithm, of h
	var weight uint64
	for _, p := range r.paths {
		if up && p.hop.down.Load() != 0 {
			continue
		}
		x := (flow ^ p.hop.seed) * 0x9e3779b97f4a7c15
		x = (x ^ x>>32) * 0xd6e8feb86659fd93
		if !r.weighted {
			if h == nil || x > most {
				most, h = x, p.hop
			}
			continue
		}
		// The smallest -log(x) / weight belongs to each in proportion to its weight, since -log of a uniform
		// number is exponentially distributed.
		l, w := negLog2(x), uint64(p.weight)
		if a, b := l*weight, least*w; h == nil || a < b || a == b && x > most {
			most, least, weight, h = x, l, w, p.hop
		}
	}
	return h
}

// logs are the logarithms to base 2 of 1 to 2 in steps of 1/256, with 24 fractional bits.
var logs = func() (t [257]uint64) {
	for i := range t {
		t[i] = uint64(math.Round(math.Log2(1+float64(i)/256) * (1 << 24)))
	}
	return t
}()

// negLog2 returns -log2(x/2^64) with 24 fractional bits, by linear interpolation.
func negLog2(x uint64) uint64 {
	lz := bits.LeadingZeros64(x)
	m := x << (lz + 1) // what follows the first one bit
	i, rest := m>>56, m<<8>>40
	return uint64(1+lz)<<24 - logs[i] - (logs[i+1]-logs[i])*rest>>24
}
