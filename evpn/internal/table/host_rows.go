package table

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
)

// rows are those of the claim that counts, if it is a peer's, or those of a host whose link here has failed.
func (h *host) rows() (rows []control.Row) {
	if h.absent && h.claimed {
		return h.absentRows()
	}
	best := h.best()
	if best == nil || h.claimed {
		return nil
	}
	r := control.MAC{VNI: h.s.VNI, MAC: h.mac,
		Sticky: best.Fixed() || h.moves != nil && h.moves.Duplicate() || best.Communities.DefaultGateway()}
	switch g := h.group; {
	case g == nil:
		r.VTEP = netip.AddrPortFrom(best.NextHop.Netip(), 0)
		r.FarVNI, _ = label(best.Labels[0], h.s.VNI)
	case g.port != "":
		r.Port = g.port
	default:
		r.Group = g.name
	}
	if r.Port == "" {
		r.Tunnel = h.s.Tunnel
	}
	for _, p := range h.claims {
		if !p.beside(best) || p.IP.Bits() == 0 {
			continue
		}
		r.IP = p.IP.Netip()
		r.Router, _ = p.Communities.NDFlags()
		r.Router = r.Router && r.IP.Is6()
		if !slices.ContainsFunc(rows, func(x control.Row) bool { return x.(control.MAC).IP == r.IP }) {
			rows = append(rows, r)
		}
	}
	if rows == nil {
		r.IP, r.Router = netip.Addr{}, false
		rows = append(rows, r)
	}
	return rows
}

// absentRows are those of an absent host: it is behind its Ethernet segment.
func (h *host) absentRows() (rows []control.Row) {
	if h.group == nil {
		return nil
	}
	r := control.MAC{VNI: h.s.VNI, MAC: h.mac}
	if r.Port = h.group.port; r.Port == "" {
		r.Group, r.Tunnel = h.group.name, h.s.Tunnel
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
