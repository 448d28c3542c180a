package calico

import (
	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// otherwise names the VNI and the port of FelixConfigurations that tunnels of the segment for VXLAN do not have: other nodes would not hear us.
func (p *Plane) otherwise(segment frame.VNI, plan *model.Plan) []model.Problem {
	var list model.NotDone
	for _, s := range p.node.Switch().VSIs() {
		if segment == 0 || s.VNI() != segment {
			continue
		}
		for _, a := range s.Attachments() {
			t, ok := a.Port().(*vtep.VTEP)
			if !ok {
				continue
			}
			if x := plan.VNI; x.By != "" && x.Value != a.Tag() {
				list.Note(x.By, "spec.vxlanVNI %d is not carried: tunnel %q has VNI %d", x.Value, t.Name(), a.Tag())
			}
			if x := plan.Port; x.By != "" && x.Value != uint32(t.PeerPort()) {
				list.Note(x.By, "spec.vxlanPort %d is not carried: tunnel %q has port %d", x.Value, t.Name(), t.PeerPort())
			}
		}
	}
	return list.Problems
}
