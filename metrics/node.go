package metrics

import (
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// OfNode returns the Config of a Collector that shows a whole node, whatever it is made of at
// the time of a scrape.
func OfNode(n *node.Node) Config {
	return Config{Switch: n.Switch(), Sources: func() Sources {
		s := Sources{
			VTEPs: n.Tunnels(), Policies: n.Policies(), Guards: n.Guards(),
			Neighbours: map[frame.VNI]*arp.Responder{}, Interfaces: map[frame.VNI]*l3.Interface{},
			Captures: map[string]*port.Capture{"node": n.Capture()},
		}
		for _, v := range n.Switch().VSIs() {
			s.Neighbours[v.VNI()] = n.Neighbours(v.VNI())
		}
		for _, i := range n.Interfaces() {
			s.Interfaces[i.VNI()] = i
		}
		return s
	}}
}
