package control

// Empty reports whether nothing is left of rows that were.
func (p *Plane) Empty() bool {
	return len(p.owners)+len(p.slots)+len(p.lists)+len(p.peers)+len(p.users) == 0
}
