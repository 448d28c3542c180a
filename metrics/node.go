package metrics

import (
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A Node has what a Collector exports of a whole node. *node.Node implements it.
type Node interface {
	Switch() *vswitch.Switch
	Tunnels() map[string]*vtep.VTEP
	Policies() map[string]*policy.Policy
	Guards() map[frame.VNI]map[string]*policy.Guard
	Neighbours(vni frame.VNI) *arp.Responder
	Snooper(vni frame.VNI) *snoop.Snooper
	Interfaces() []*l3.Interface
	Capture() *capture.Capture
	PortsUp() map[string]bool
}

// OfNode returns the Config of a Collector for a whole node, with the parts that it has at each
// scrape.
func OfNode(n Node) *Config {
	return &Config{Switch: n.Switch(), Sources: func() Sources {
		s := Sources{
			VTEPs: n.Tunnels(), Policies: n.Policies(), Guards: n.Guards(),
			Neighbours: map[frame.VNI]*arp.Responder{}, Snoopers: map[frame.VNI]*snoop.Snooper{}, Interfaces: map[frame.VNI]*l3.Interface{},
			Captures: map[string]*capture.Capture{"node": n.Capture()}, Ports: n.PortsUp(),
		}
		for _, v := range n.Switch().VSIs() {
			s.Neighbours[v.VNI()] = n.Neighbours(v.VNI())
			s.Snoopers[v.VNI()] = n.Snooper(v.VNI())
		}
		for _, i := range n.Interfaces() {
			s.Interfaces[i.VNI()] = i
		}
		return s
	}}
}
