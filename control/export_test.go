package control

// Empty reports whether nothing is left of rows that were.
func (p *Plane) Empty() bool {
	s := &p.store
	return len(p.owners)+len(p.failed)+len(p.lists)+len(p.targets)+len(p.peers)+len(p.gave)+len(p.gaveIP)+s.macs.live+s.ips.live+s.floods.live+
		s.groups.live+s.routes.live+s.places.live+len(s.routers)+len(s.named)+len(s.sorted)+int(s.last) == 0
}
