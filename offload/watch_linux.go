package offload

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// watch has a VTEP say when a Path has changed.
func (o *Offload) watch(v *vtep.VTEP) {
	if o.vteps[v] == nil {
		o.vteps[v] = v.Watch(func() { o.Changed(0, frame.MAC{}) })
	}
}

// unwatch ends that for the VTEPs that no flow uses.
func (o *Offload) unwatch() {
	used := map[*vtep.VTEP]bool{}
	for _, e := range o.entries {
		used[e.plan.rx], used[e.plan.tx] = true, true
	}
	for v, stop := range o.vteps {
		if !used[v] {
			stop()
			delete(o.vteps, v)
		}
	}
}
