package control

import (
	"slices"
)

// Origin returns the owner of what a table contains for a key, nil if no row of an owner is there:
//
//	MAC{VNI, MAC}              the FDB entry, also that of a router behind prefixes
//	MAC{VNI, IP}               the neighbour
//	Flood{VNI, VTEP, MAC, Tunnel}   the entry of the flood list, perhaps of several owners; Tunnel "" = on any VTEP
//	Prefix{VRF, Prefix}        the route
//
// It looks at no other field. A host may have taken the place of an entry since; the table says so.
func (p *Plane) Origin(key Row) (owners []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch x := clean(key).(type) {
	case MAC:
		if x.IP.IsValid() {
			return p.neighbourOwner(ipKey{x.VNI, x.IP.As16()})
		}
		k := macKey{x.VNI, x.MAC}
		for c := range p.claims(k) {
			if (c.row != 0 && p.at(c.row).flags&written != 0 || c.row == 0 && c.place.routes) && !p.gave[k] {
				return []string{c.place.owner.name}
			}
		}
	case Flood:
		for n, r := range p.floods.all(&p.store, x.VNI) {
			row := r.place.row.(Flood)
			if _, failed := p.failed[n]; failed || r.place.err != nil || row.VTEP.Addr() != x.VTEP.Addr() || row.MAC != x.MAC ||
				x.Tunnel != "" && p.cfg.Switch.Name(r.place.port) != x.Tunnel {
				continue
			}
			if o := r.place.owner.name; !slices.Contains(owners, o) {
				owners = append(owners, o)
			}
		}
	case Prefix:
		if !x.Prefix.IsValid() {
			return nil
		}
		for _, r := range p.routes.all(&p.store, routeKey{x.VRF, x.Prefix}) {
			if r.flags&written != 0 {
				return []string{r.place.owner.name}
			}
		}
	}
	return owners
}

func (p *Plane) neighbourOwner(k ipKey) []string {
	for _, r := range p.ips.all(&p.store, k) {
		if r.flags&taught != 0 && r.place.arp != nil && !p.gaveIP[k] {
			return []string{r.place.owner.name}
		}
	}
	return nil
}
