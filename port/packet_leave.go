package port

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/filter"
	"github.com/vxswitch/vxswitch/setting"
)

// An Address is what an underlay of packet sockets receives on: what a [Packet] leaves to it.
type Address struct {
	MAC  frame.MAC
	IP   netip.Addr
	Port uint16 // of UDP; 0 for IP-in-IP, protocols 4 and 41
}

// Leave makes the port leave to underlays on the same interface (package underlay/afpacket) what is for these
// addresses: from the next frame on it does not read such frames without a VLAN tag. So a gateway behind the port can
// have the MAC and the IP address of an underlay. Everything else comes to the port: ARP, ICMP, what is to be
// forwarded. The list replaces that of the previous call, and has at most 64 addresses. What waits in the receive
// buffers is still read.
//
// The kernel divides the frames, by filters of both sockets that never take the same frame. Only the first fragment of a
// datagram has ports: all fragments of UDP over IPv4 to the address go to the underlay, which drops them as
// [frame.Fragment]; a gateway would refuse UDP in any case. So do packets with UDP behind an IPv6 extension header.
// Fragments of ICMP, such as of a long ping, come to the port. An underlay also reads ICMP errors, without
// taking them away, as it does datagrams to multicast groups that it has joined.
//
// Before the underlay is opened, and until it is closed, the port should leave its packets: a gateway answers them
// with ICMP errors.
func (p *Packet) Leave(list []Address) error {
	w := setting.Of("port: Packet")
	if checkLeave(w, list); w.Err() != nil {
		return w.Err()
	}
	if err := p.leave(list); err != nil {
		return p.dev.Ended(err)
	}
	return nil
}

func (p *Packet) leave(list []Address) error {
	left := make([]filter.Address, len(list))
	for i, a := range list {
		left[i] = filter.Address{MAC: a.MAC, IP: a.IP.As16(), Port: a.Port}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		if err := q.Filter(filter.Not(left)); err != nil {
			return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
		}
	}
	return nil
}

func checkLeave(w *setting.Check, list []Address) {
	if len(list) > filter.MaxAddresses {
		w.Want("Leave", len(list), "at most %d addresses", filter.MaxAddresses)
		return
	}
	for i, a := range list {
		if !a.IP.IsValid() {
			w.Wrong(fmt.Sprintf("Leave[%d].IP", i), nil, "required")
		}
	}
}
