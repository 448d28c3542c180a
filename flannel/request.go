package flannel

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
)

// Complete returns the attributes that a node writes for a request: a MAC where one is needed is the first that its former
// leases have for the VNI, or a random one. The error says what is wrong with the request in the network. It is for those who
// make a [Store].
func (r Request) Complete(n *Network, former ...Lease) (Attrs, error) {
	if err := n.check(r.Attrs); err != nil {
		return Attrs{}, err
	}
	a := r.Attrs.withMACs(former)
	if r.OneMAC && a.IPv4.MAC.IsHost() && a.IPv6.MAC.IsHost() {
		a.IPv6.MAC = a.IPv4.MAC
	}
	return a, nil
}

// check returns what is wrong with the attributes of a node's own lease.
func (n *Network) check(a Attrs) error {
	for _, f := range families {
		if !n.subnets(f).IsValid() {
			continue
		}
		e := *a.end(f)
		if e.MAC.IsZero() {
			e.MAC[0] = 2 // it will be chosen
		}
		if r := f.check(a.Type, &e); r != nil {
			return fmt.Errorf("flannel: request: %s", r.Detail)
		}
	}
	return nil
}

// withMACs returns attributes with a MAC where one is needed: the first that the leases have for the VNI, or a random one.
func (a Attrs) withMACs(leases []Lease) Attrs {
	for _, f := range families {
		e := a.end(f)
		if a.Type != "vxlan" || !e.PublicIP.IsValid() || !e.MAC.IsZero() {
			continue
		}
		for _, l := range leases {
			if x := l.end(f); x.VNI == e.VNI && x.MAC.IsHost() {
				e.MAC = x.MAC
				break
			}
		}
		if e.MAC.IsZero() {
			e.MAC = frame.RandomMAC()
		}
	}
	return a
}
