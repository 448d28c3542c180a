package datapath

import (
	"fmt"
	"io"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Attach attaches a program to a device, in the network namespace of the calling thread. Close of the result detaches it, and is
// idempotent.
func (d *Datapath) Attach(ifindex int, which Program) (io.Closer, error) {
	p, at := d.objects.PortIn, ebpf.AttachTCXIngress
	switch which {
	case PortOut:
		p, at = d.objects.PortOut, ebpf.AttachTCXEgress
	case TunnelIn:
		p = d.objects.TunnelIn
	}
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
