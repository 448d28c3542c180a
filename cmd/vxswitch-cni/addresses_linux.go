package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setSysctl sets what a device has in /proc/sys of the namespace of the thread.
func setSysctl(family, ifname, key, value string) error {
	return os.WriteFile(filepath.Join("/proc/sys/net", family, "conf", ifname, key), []byte(value), 0)
}

const leastMTU6 = 1280 // RFC 8200, section 5: with less, Linux has no IPv6 on a device

// setAddresses gives the interface its addresses, while it is down. It announces them when it comes up: the segment may know them
// with the MAC of an earlier container. They are of no other host, as the IPAM plugin says, so that nobody is asked.
func (d *device) setAddresses(ips []*current.IPConfig) error {
	setSysctl("ipv4", d.ifname, "arp_notify", "1") // without it, others ask sooner or later
	for i, ip := range ips {
		a := &netlink.Addr{IPNet: &ip.Address}
		if ip.Address.IP.To4() == nil {
			if d.mtu < leastMTU6 {
				return fmt.Errorf("ips[%d].address: %v: IPv6 requires an mtu of at least %d, and %s has %d", i, &ip.Address, leastMTU6, d.ifname, d.mtu)
			}
			for _, dev := range []string{"lo", d.ifname} {
				if err := setSysctl("ipv6", dev, "disable_ipv6", "0"); err != nil {
					return fmt.Errorf("%v: %w", &ip.Address, err)
				}
			}
			setSysctl("ipv6", d.ifname, "ndisc_notify", "1")
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(d.made, a); err != nil {
			return fmt.Errorf("ips[%d].address: %v: %w", i, &ip.Address, err)
		}
	}
	return nil
}

// up brings the interface up and adds its routes. The container's end comes last: what it announces then gets through, while the
// queue of an end that is up before there is a carrier drops packets until the kernel's worker has found it (Linux 6.18).
func (d *device) up(r *current.Result) error {
	if d.host != nil {
		if err := netlink.LinkSetUp(d.host); err != nil {
			return fmt.Errorf("%s: up: %w", d.port, err)
		}
	}
	return inside(d.netns, func() error {
		if err := netlink.LinkSetUp(d.made); err != nil {
			return fmt.Errorf("%s: up: %w", d.ifname, err)
		}
		return d.setRoutes(r)
	})
}

func (d *device) setRoutes(r *current.Result) error {
	for i, x := range r.Routes {
		if err := netlink.RouteAdd(kernelRoute(d.made, x, r.IPs)); err != nil {
			return fmt.Errorf("routes[%d]: %s: %w", i, describe(x), err)
		}
	}
	return nil
}

// kernelRoute returns a route of a result for the kernel. Without a gateway of its own it is by that of an address.
func kernelRoute(l netlink.Link, x *types.Route, ips []*current.IPConfig) *netlink.Route {
	k := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: &x.Dst, Gw: gateway(x, ips), MTU: x.MTU, AdvMSS: x.AdvMSS, Priority: x.Priority}
	if x.Table != nil {
		k.Table = *x.Table
	}
	switch {
	case x.Scope != nil:
		k.Scope = netlink.Scope(*x.Scope)
	case k.Gw == nil:
		k.Scope = netlink.SCOPE_LINK
	}
	return k
}

func gateway(x *types.Route, ips []*current.IPConfig) net.IP {
	if x.GW != nil {
		return x.GW
	}
	is4 := func(ip net.IP) bool { return ip.To4() != nil }
	i := slices.IndexFunc(ips, func(ip *current.IPConfig) bool { return ip.Gateway != nil && is4(ip.Gateway) == is4(x.Dst.IP) })
	if i < 0 {
		return nil
	}
	return ips[i].Gateway
}

func describe(x *types.Route) string {
	if x.GW == nil {
		return x.Dst.String()
	}
	return x.Dst.String() + " via " + x.GW.String()
}
