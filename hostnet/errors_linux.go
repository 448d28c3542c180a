package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// explain says why the kernel refused a route: it only gives a number.
func (h *Host) explain(r Route, err error) error {
	dev := h.cfg.Device
	switch {
	case err == nil:
		return nil
	case r.Via.IsValid() && (errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH)):
		return fmt.Errorf("no route leads to the gateway %v through %s; OnLink says that it is there: %w", r.Via, dev, err)
	case errors.Is(err, unix.EINVAL) && r.Source.IsValid() && !h.isLocal(r.Source):
		return fmt.Errorf("the source %v is not an address of this host: %w", r.Source, err)
	case errors.Is(err, unix.EINVAL) && r.Via.IsValid() && h.isLocal(r.Via):
		return fmt.Errorf("the gateway %v is an address of this host: %w", r.Via, err)
	case errors.Is(err, unix.EINVAL) && r.Via.IsValid():
		return fmt.Errorf("the gateway %v is not reached through %s, or not directly: %w", r.Via, dev, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("there is no device %s: %w", dev, err)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("the device %s is down: %w", dev, err)
	case !r.Prefix.Addr().Is4() && h.noIPv6():
		return fmt.Errorf("IPv6 is off on %s (disable_ipv6=1): %w", dev, err)
	}
	return h.allowed(err)
}

// allowed explains a lack of rights.
func (h *Host) allowed(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("it takes CAP_NET_ADMIN: %w", err)
	}
	return err
}

func (h *Host) explainAddress(a netip.Addr, err error) error {
	if a.Is6() && h.noIPv6() {
		return fmt.Errorf("IPv6 is off on %s (disable_ipv6=1): %w", h.cfg.Device, err)
	}
	return h.allowed(err)
}

// taken is the error of a route whose place foreign ones have.
func (h *Host) taken(others []netlink.Route) error {
	if len(others) == 0 {
		return fmt.Errorf("another route came and went: %w", unix.EEXIST)
	}
	return fmt.Errorf("the place is taken by %s: %w", h.foreign(&others[0]), unix.EEXIST)
}

// foreign describes a route of somebody else as "ip route" does.
func (h *Host) foreign(n *netlink.Route) string {
	s := prefixOf(n).String()
	if n.Type != unix.RTN_UNICAST {
		s = map[int]string{unix.RTN_BLACKHOLE: "blackhole ", unix.RTN_UNREACHABLE: "unreachable ", unix.RTN_PROHIBIT: "prohibit "}[n.Type] + s
	}
	if n.Gw != nil {
		s += " via " + n.Gw.String()
	}
	if n.LinkIndex != 0 {
		if link, err := h.nl.LinkByIndex(n.LinkIndex); err == nil {
			s += " dev " + link.Attrs().Name
		}
	}
	for _, hop := range n.MultiPath {
		s += " nexthop via " + hop.Gw.String()
	}
	s += " proto " + n.Protocol.String()
	if n.Priority != 0 {
		s += fmt.Sprint(" metric ", n.Priority)
	}
	if n.Table != DefaultTable {
		s += fmt.Sprint(" table ", n.Table)
	}
	return s
}

// isLocal reports whether the host has an address.
func (h *Host) isLocal(ip netip.Addr) bool {
	list, _ := whole(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_ALL) })
	return slices.ContainsFunc(list, func(a netlink.Addr) bool { return a.IPNet != nil && prefix(a.IPNet).Addr() == ip })
}

func (h *Host) noIPv6() (off bool) {
	h.inside(func() { off = sysctl("net/ipv6/conf/"+h.cfg.Device+"/disable_ipv6") == "1" })
	return off
}
