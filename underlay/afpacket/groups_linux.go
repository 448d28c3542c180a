package afpacket

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A membership is a socket that makes the kernel join a multicast group on the interface, so that it sends
// reports and the interface accepts frames to the group's MAC. Nothing is read from it.
type membership struct {
	fd    int
	users int
}

// member makes the kernel a member of a group. It runs in the sockets' namespace.
func (p *Underlay) member(group [16]byte) (*membership, error) {
	a := netip.AddrFrom16(group).Unmap()
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if a.Is4() {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: a.As4(), Ifindex: int32(p.dev.Index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group, Interface: uint32(p.dev.Index)})
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return &membership{fd: fd, users: 1}, nil
}

// close ends a membership; m may be nil.
func (m *membership) close() error {
	if m == nil {
		return nil
	}
	return unix.Close(m.fd)
}

// joinSolicited joins the solicited-node group over IPv6. Snooping switches need a report (MLD), which the
// kernel sends. Where IPv6 is off it sends none, but the interface accepts the group's frames.
func (p *Underlay) joinSolicited() error {
	if p.is4 {
		return nil
	}
	group := wire.SolicitedNode(p.messenger.ip)
	if err := p.control.Accept(p.dev.Index, neighbour.GroupMAC(group)); err != nil {
		return fmt.Errorf("PACKET_ADD_MEMBERSHIP: %w", err)
	}
	if p.cfg.VLAN == 0 { // the report would have no tag
		p.solicited, _ = p.member(group)
	}
	return nil
}

// Join joins a multicast group on the interface, as [underlay.UDP.Join] does; IP-in-IP has none, nor has one with a VLAN. The kernel reports the
// membership (IGMP, MLD). If IPv4 or IPv6 is off for the interface, Join fails.
func (p *Underlay) Join(group netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ip, err := datagrams.Group("afpacket", group, p.is4)
	switch m := p.groups[ip]; {
	case p.raw:
		return fmt.Errorf("afpacket: multicast group %v: IP-in-IP has no groups: %w", group, errors.ErrUnsupported)
	case p.cfg.VLAN != 0:
		return fmt.Errorf("afpacket: multicast group %v: there are none in a VLAN: %w", group, errors.ErrUnsupported)
	case err != nil:
		return err
	case p.dev.Closed():
		return net.ErrClosed
	case m != nil:
		m.users++
		return nil
	}
	var m *membership
	if err := p.inNamespace(func() (err error) { m, err = p.member(ip); return err }); err != nil {
		return p.dev.Wrap(fmt.Errorf("joining %v: %w", group, err))
	}
	x := *p.rules.Load()
	all := map[[16]byte]bool{ip: true}
	maps.Copy(all, x.groups)
	x.groups = all
	if err := p.setRules(&x); err != nil {
		m.close()
		return p.dev.Wrap(err)
	}
	p.groups[ip] = m
	return nil
}

// Leave undoes one Join.
func (p *Underlay) Leave(group netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ip := group.Unmap().As16()
	m := p.groups[ip]
	switch {
	case p.dev.Closed():
		return net.ErrClosed
	case m == nil:
		return datagrams.NotJoined("afpacket", group)
	}
	if m.users--; m.users > 0 {
		return nil
	}
	x := *p.rules.Load()
	x.groups = maps.Clone(x.groups)
	delete(x.groups, ip)
	p.rules.Store(&x)
	_ = p.filter(&x) // if it fails, the old filters pass more, which the rules refuse
	delete(p.groups, ip)
	return m.close()
}
