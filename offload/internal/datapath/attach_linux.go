package datapath

import (
	"fmt"
	"io"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// AttachPort attaches a program to the device of a port, in the network namespace of the calling thread. Close of the
// result detaches it, and is idempotent.
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
	dev, err := net.InterfaceByIndex(ifindex)
	if err != nil {
		return nil, fmt.Errorf("datapath: device %d: %w", ifindex, err)
	}
	if len(dev.HardwareAddr) != 6 {
		return nil, fmt.Errorf("datapath: device %s has no MAC; it must be an Ethernet device", dev.Name)
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: at, Anchor: link.Head()})
	if err != nil {
		return nil, fmt.Errorf("datapath: device %s: attaching by tcx: %w", dev.Name, err)
	}
	return l, nil
}
