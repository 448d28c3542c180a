package node

// Carrier reports whether the device of a port is up and has a carrier. A port without a device always has one, and a port that the node
// does not have has none.
func (n *Node) Carrier(port string) bool {
	n.mu.Lock()
	p := n.ports[port]
	n.mu.Unlock()
	if p == nil {
		return false
	}
	c, ok := p.raw.(interface{ Carrier() bool })
	return !ok || c.Carrier()
}
