package port

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	macLen  = wire.MACsLen
	ethLen  = wire.EthernetLen
	vlanLen = wire.VLANLen
)

// A Port has the methods of vswitch.Port.
type Port interface {
	Readers() []frame.Reader
	Writer(w int) frame.Writer
	MTU(peer uint16) int
	Close() error
}

// unfit returns why a Writer with these offloads cannot send the frame, or NotDropped. A switch does not
// give it such frames.
func unfit(o *frame.Out, takes frame.Offloads) frame.Reason {
	ip := o.F.Kind != frame.Ethernet
	switch {
	case ip != (takes&frame.IPOnly != 0), ip && o.Tag != 0, !takes.Take(o.F.GSO), o.Tag != 0 && takes&frame.OffloadVLAN == 0:
		return frame.BadKind
	case o.Tag != 0 && o.F.Len() < macLen:
		return frame.Short
	}
	return frame.NotDropped
}

// dropAll gives every frame the same reason.
func dropAll(out []frame.Out, r frame.Reason) {
	for i := range out {
		out[i].Drop = r
	}
}
