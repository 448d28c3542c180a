package ovsdb

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// heeded are the events that tell which hosts are here.
var heeded = []frame.EventKind{
	frame.EventMACLearned, frame.EventMACMoved, frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted, frame.EventFlushed,
	frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached,
	frame.EventNeighbourLearned, frame.EventNeighbourMoved, frame.EventNeighbourAged, frame.EventNeighbourDeleted,
}

type macKey struct {
	vni frame.VNI
	mac frame.MAC
}

type ipKey struct {
	vni frame.VNI
	ip  netip.Addr
}

// hosts are those on ports of the switch.
type hosts struct {
	macs  map[macKey]bool
	ips   map[ipKey]frame.MAC
	again bool // events do not suffice: all is to be read
}

// carry carries out an event.
func (h *hosts) carry(e *frame.Event) {
	if h.again {
		return
	}
	m, ip := macKey{e.VNI, e.MAC}, ipKey{e.VNI, e.IP}
	switch e.Kind {
	case frame.EventOverflow, frame.EventFlushed, frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached:
		h.again = true
	case frame.EventMACLearned, frame.EventMACMoved:
		if delete(h.macs, m); e.Dest.Local() {
			h.macs[m] = true
		}
	case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
		delete(h.macs, m)
	case frame.EventNeighbourLearned, frame.EventNeighbourMoved:
		if delete(h.ips, ip); e.Dest.Local() {
			h.ips[ip] = e.MAC
		}
	case frame.EventNeighbourAged, frame.EventNeighbourDeleted:
		delete(h.ips, ip)
	}
}

// read reads all from a switch, if events have not sufficed.
func (h *hosts) read(sw *vswitch.Switch) {
	if !h.again {
		return
	}
	*h = hosts{macs: map[macKey]bool{}, ips: map[ipKey]frame.MAC{}}
	for e := range sw.State() {
		switch e.Kind {
		case frame.EventMACLearned, frame.EventNeighbourLearned:
			h.carry(&e)
		}
	}
}

// in returns the hosts of segments: each MAC with each of its addresses, or with none.
func (h *hosts) in(segments []table.Segment) map[table.Host]bool {
	ids := map[frame.VNI]string{}
	for _, s := range segments {
		ids[s.VNI] = s.ID
	}
	all, named := map[table.Host]bool{}, map[macKey]bool{}
	for k, mac := range h.ips {
		m := macKey{k.vni, mac}
		if id := ids[k.vni]; id != "" && h.macs[m] {
			named[m] = true
			all[table.Host{Segment: id, MAC: mac.String(), IP: k.ip}] = true
		}
	}
	for m := range h.macs {
		if id := ids[m.vni]; id != "" && !named[m] {
			all[table.Host{Segment: id, MAC: m.mac.String()}] = true
		}
	}
	return all
}
