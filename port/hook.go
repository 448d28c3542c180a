package port

import (
	"fmt"
	"net"
)

// A Hook is where in the kernel the frames of a Device come by, for those who carry frames past it.
type Hook struct {
	Kind      HookKind
	Index     int    // of the network device
	Namespace uint64 // number of the network namespace it is in (SO_NETNS_COOKIE), 0 if the kernel does not say
}

// HookKind says what the network device of a Hook is.
type HookKind uint8

// Kinds of hooks.
const (
	HookTAP       HookKind = iota // a TAP: the host sends on it what Readers return, and receives on it what Writers write
	HookInterface                 // an interface: it receives what Readers return, and sends what Writers write
	HookPair                      // an end of a veth pair of [OpenVeth]: it receives what Readers return; what Writers write, the other end receives; what others send on it too, segments joined (GRO)
)

// Hook returns where the frames of the device come by now, and has MTU return the present one. Programs that are to see those
// before the port does come first there (tcx, BPF_F_BEFORE). It fails for a TUN, and after Close.
func (d *Device) Hook() (Hook, error) {
	switch {
	case d.closed.Load():
		return Hook{}, net.ErrClosed
	case d.tun:
		return Hook{}, fmt.Errorf("port: TUN %q: its packets have no MACs", d.name)
	}
	h := Hook{Kind: HookTAP}
	var err error
	switch g := d.glue; {
	case g == nil:
		h.Index, h.Namespace, err = d.link.Place()
	case g.hidden == nil:
		h.Kind, h.Index = HookInterface, g.host.Index
		h.Namespace, err = g.home.Namespace()
	default:
		h.Kind, h.Index = HookPair, g.host.Index
		h.Namespace, err = g.home.Namespace()
	}
	if err != nil {
		return Hook{}, fmt.Errorf("port: %s %q: looking for the device: %w", d.kind(), d.name, err)
	}
	d.update()
	return h, nil
}
