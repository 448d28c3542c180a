package offload

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// follow has a VTEP say when a Path has changed.
func (o *Offload) follow(v *vtep.VTEP) {
	if _, ok := o.vteps[v]; ok {
		return
	}
	o.vteps[v] = struct{}{}
	v.Watch(func() { o.Changed(0, frame.MAC{}) })
}

func (o *Offload) unwatch() {
	for v := range o.vteps {
		v.Watch(nil)
	}
}
