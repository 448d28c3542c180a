package afpacket

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/internal/filter"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// setLocal sets the local address. It returns the rules for it, without multicast groups.
func (p *Underlay) setLocal(local netip.AddrPort) (*rules, error) {
	ifi, err := net.InterfaceByIndex(p.dev.Index)
	if err != nil {
		return nil, err
	}
	a, prefix := local.Addr(), p.cfg.Prefix
	if !prefix.IsValid() {
		if prefix, err = prefixOf(ifi, a); err != nil {
			return nil, err
		}
		if !prefix.IsValid() {
			return nil, fmt.Errorf("Config.Prefix: required, because no prefix of the interface contains %v", a)
		}
	}
	if err := hostaddr.In(prefix, a); err != nil {
		return nil, fmt.Errorf("local address %v: %w", a, err)
	}
	switch g := p.cfg.Gateway; {
	case !g.IsValid():
	case g == a:
		return nil, fmt.Errorf("Config.Gateway: %v: is the local address", g)
	case hostaddr.In(prefix, g) != nil:
		return nil, fmt.Errorf("Config.Gateway: %v: %w", g, hostaddr.In(prefix, g))
	case !onLink(prefix, g):
		return nil, fmt.Errorf("Config.Gateway: %v: is not in %v", g, prefix)
	}
	if a.Is6() && a.IsLinkLocalUnicast() {
		local = netip.AddrPortFrom(a.WithZone(strconv.Itoa(p.dev.Index)), local.Port())
	}
	p.local, p.messenger = local, messenger{is4: a.Is4(), raw: p.raw, mac: p.mac, ip: a.As16()}
	p.near, p.mask = words(prefix)
	return &rules{is4: a.Is4(), mac: p.mac, ip: a.As16(), port: local.Port(), zero6: p.cfg.ZeroChecksum6RX}, nil
}

// prefixOf returns the prefix of the interface's address a, else the prefix of one that contains a.
func prefixOf(ifi *net.Interface, a netip.Addr) (best netip.Prefix, err error) {
	addrs, err := ifi.Addrs()
	for _, x := range addrs {
		n, ok := x.(*net.IPNet)
		if !ok {
			continue
		}
		y, _ := netip.AddrFromSlice(n.IP)
		ones, _ := n.Mask.Size()
		if q := netip.PrefixFrom(y.Unmap(), ones); q.Contains(a) && (!best.IsValid() || q.Addr() == a) {
			best = q.Masked()
			if q.Addr() == a {
				break
			}
		}
	}
	return best, err
}

// words returns a prefix and its mask as two words each, IPv4 as IPv4-mapped.
func words(p netip.Prefix) (net, mask [2]uint64) {
	ones := p.Bits()
	if p.Addr().Is4() {
		ones += 96
	}
	mask[0] = ^uint64(0) << max(64-ones, 0)
	mask[1] = ^uint64(0) << min(max(128-ones, 0), 64)
	a := p.Addr().As16()
	net[0], net[1] = binary.BigEndian.Uint64(a[:])&mask[0], binary.BigEndian.Uint64(a[8:])&mask[1]
	return net, mask
}

// setRules replaces the rules and the filters of all sockets. On an error nothing has changed. mu is held.
func (p *Underlay) setRules(r *rules) error {
	old := p.rules.Swap(r)
	err := p.filter(r)
	if err != nil && old != nil {
		p.rules.Store(old)
		_ = p.filter(old)
	}
	return err
}

// filter attaches the filters for rules to all sockets.
func (p *Underlay) filter(x *rules) error {
	if err := p.control.Filter(filter.Control(x.ip, p.cfg.VLAN)); err != nil {
		return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
	}
	own := filter.For(filter.Address{MAC: x.mac, IP: x.ip, Port: x.port, VLAN: p.cfg.VLAN}, len(x.groups) > 0)
	for _, r := range p.queues {
		if err := r.sock.Filter(own); err != nil {
			return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
		}
	}
	return nil
}
