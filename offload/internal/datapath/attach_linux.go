package datapath

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// AttachPort attaches a program to the device of a port. Close of the result detaches it, and is idempotent.
func (d *Datapath) AttachPort(ifindex int, dir Direction) (io.Closer, error) {
	if dir == Out {
		return attach(ifindex, d.objects.PortOut, ebpf.AttachTCXEgress)
	}
	return attach(ifindex, d.objects.PortIn, ebpf.AttachTCXIngress)
}

// AttachUnderlay attaches a program to a device on which tunnel packets arrive. Close of the result detaches it, and is
// idempotent.
func (d *Datapath) AttachUnderlay(ifindex int) (io.Closer, error) {
	return attach(ifindex, d.objects.TunnelIn, ebpf.AttachTCXIngress)
}

func attach(ifindex int, p *ebpf.Program, at ebpf.AttachType) (io.Closer, error) {
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: at})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil, fmt.Errorf("datapath: device %d: tcx is not supported; must be Linux 6.6 or later", ifindex)
	}
	if err != nil {
		return nil, fmt.Errorf("datapath: device %d: attaching by tcx: %w", ifindex, err)
	}
	return l, nil
}
