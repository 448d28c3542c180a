package vtep

// pick chooses a member of a group by rendezvous hashing: the one whose number, mixed with the flow, is
// largest. If a member leaves or is down, only its own flows move.
func (h *hop) pick(flow uint32) *hop {
	best := h.best(flow, false)
	if best.down.Load() {
		if up := h.best(flow, true); up != nil {
			return up
		}
	}
	return best
}

// best returns the member for a flow, of all or of those that are up.
func (h *hop) best(flow uint32, up bool) (best *hop) {
	var most uint64
	for _, m := range h.members() {
		if up && m.down.Load() {
			continue
		}
		if x := scatter(uint64(flow)<<16 | uint64(m.num)); best == nil || x > most {
			best, most = m, x
		}
	}
	return best
}

// scatter is the finalizer of SplitMix64. Each bit of x changes each bit of the result with probability
// one half, so the members of a group get equal shares of its flows.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
