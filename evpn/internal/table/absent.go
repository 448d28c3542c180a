package table

import (
	"time"

	"github.com/vxswitch/vxswitch/control"
)

// absence is how long hosts stay ours whose link here has failed: time for them to speak by another link of their Ethernet segment.
// Meanwhile we say them on the segment, where peers reach them by the VTEPs that still have it, and so do we.
const absence = 5 * time.Minute

// depart has the hosts at a port without a carrier be absent. Configured ones stay where they are.
func (m *homed) depart(now time.Duration) {
	for _, vni := range m.VNIs {
		s := m.t.segments[vni]
		if s == nil {
			continue
		}
		for _, h := range s.hosts {
			if h.here && h.dest == m.Dest && !h.static {
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

// absentRows are those of an absent host: it is behind its Ethernet segment.
func (h *host) absentRows() (rows []control.Row) {
	if h.group == nil {
		return nil
	}
	r := control.MAC{VNI: h.s.VNI, MAC: h.mac}
	if r.Port = h.group.port; r.Port == "" {
		r.Group = h.group.name
	}
	for _, a := range h.addresses() {
		r.IP, r.Router = a.ip.Netip(), a.router && a.ip.Bits() == 128
		rows = append(rows, r)
	}
	if rows == nil {
		rows = append(rows, r)
	}
	return rows
}
