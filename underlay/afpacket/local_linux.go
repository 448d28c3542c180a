package afpacket

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// SetLocal gives the underlay another local address of the same family, on the same port,
// while it is in use, as [underlay.UDP.SetLocal] does. The underlay answers for the new address, and not
// for the old one any more. Unless Config.Prefix is set, the address must be in the prefix
// of one of the interface's; what is on the link is then that prefix.
func (p *Underlay) SetLocal(addr netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dev.Closed() {
		return net.ErrClosed
	}
	old := p.place.Load()
	addr, err := datagrams.Another("afpacket", old.local.Addr(), addr)
	if err != nil {
		return err
	}
	local, err := checkLocal(netip.AddrPortFrom(addr, old.local.Port()))
	if err != nil || local.Addr() == old.local.Addr().WithZone("") {
		return err
	}
	if err := p.inNamespace(func() error { return p.move(old, local) }); err != nil {
		return p.dev.Wrap(err)
	}
	p.announce()
	return nil
}

func (p *Underlay) move(old *place, local netip.AddrPort) error {
	at, err := p.placeAt(local)
	if err != nil {
		return err
	}
	at.rules.groups = old.rules.groups
	if err := p.enter(at); err != nil {
		return err
	}
	if err := p.moveTo(at); err != nil {
		p.quit(at)
		return err
	}
	p.quit(old)
	return nil
}

// enter has a place be asked for its address: over IPv6 by the solicited-node group. Switches
// that look out for it want a report (MLD), which the kernel sends for a member of its own; where
// IPv6 is off for this host there is none, and the interface takes the group's frames even so.
func (p *Underlay) enter(at *place) error {
	if at.rules.is4 {
		return nil
	}
	group := wire.SolicitedNode(at.rules.ip)
	if err := p.control.Accept(p.dev.Index, neighbour.GroupMAC(group)); err != nil {
		return fmt.Errorf("PACKET_ADD_MEMBERSHIP: %w", err)
	}
	at.asked, _ = p.member(group)
	return nil
}

// quit ends enter.
func (p *Underlay) quit(at *place) {
	if at.rules.is4 {
		return
	}
	_ = p.control.Refuse(p.dev.Index, neighbour.GroupMAC(wire.SolicitedNode(at.rules.ip)))
	at.asked.close()
}
