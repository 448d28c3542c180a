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
	HookPair                      // an end of a veth pair: it receives what Readers return; what Writers write, the other end receives
)

// Hook returns where the frames of the device come by now. It fails for a TUN, and after Close.
func (d *Device) Hook() (Hook, error) {
	switch {
	case d.closed.Load():
		return Hook{}, net.ErrClosed
	case d.tun:
		return Hook{}, fmt.Errorf("port: TUN %q: its packets have no MACs", d.name)
	}
	index, ns, err := d.link.Place()
	if err != nil {
		return Hook{}, fmt.Errorf("port: TAP %q: looking for the device: %w", d.name, err)
	}
	return Hook{HookTAP, index, ns}, nil
}
