package table

import "time"

// absence is how long hosts stay ours whose link here has failed: time for them to speak by another link of their Ethernet segment.
// Meanwhile we say them on the segment, where peers reach them by the VTEPs that still have it, and so do we.
const absence = 5 * time.Minute

// depart has the hosts at a port without a carrier be absent. Configured ones stay where they are.
func (m *homed) depart(now time.Duration) {
	for i, vni := range m.VNIs {
		s := m.t.segments[vni]
		if s == nil {
			continue
		}
		for _, h := range s.hosts {
			if h.here && h.dest == m.Dests[i] && !h.static {
				h.absent, m.t.absent[h] = true, now
				m.t.touch(h)
			}
		}
	}
}

// back ends the absence of a host.
func (h *host) back(t *Table) {
	if h.absent {
		h.absent = false
		delete(t.absent, h)
		t.touch(h)
	}
}
