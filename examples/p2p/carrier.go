package main

import (
	"io"

	"github.com/vxswitch/vxswitch/offload"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A carrier opens what carries flows in the kernel when the node asks for it, which it does with -datapath kernel or auto.
type carrier struct {
	carries *offload.Offload
	why     error // why there is none
}

func (c *carrier) open(sw *vswitch.Switch) (io.Closer, error) {
	if c.carries, c.why = offload.New(sw, nil); c.why != nil {
		return nil, c.why
	}
	return c.carries, nil
}
