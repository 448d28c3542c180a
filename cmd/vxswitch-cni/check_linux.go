package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// check reports what is not as ADD has left it. It repairs nothing: vxswitchd itself opens a port again whose device is back.
func check(ctx context.Context, a *skel.CmdArgs) error {
	c, err := checkedConfig(a.StdinData)
	if err != nil {
		return err
	}
	r, err := c.prev()
	if err == nil && r == nil {
		err = invalid("prevResult: required for CHECK")
	}
	if err != nil {
		return err
	}
	if err := c.ipam(a, invoke.DelegateCheck); err != nil {
		return err
	}
	d := c.device(a)
	if err := c.daemon().check(ctx, c, d.port); err != nil {
		return err
	}
	return inside(a.Netns, func() error { return d.check(r) })
}

// check reports what is wrong with a port.
func (d daemon) check(ctx context.Context, c *config, name string) error {
	ports, err := again(ctx, func() ([]api.Port, error) { return d.Ports(ctx) })
	if err != nil {
		return failed(err)
	}
	i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == name })
	vni := frame.VNI(*c.VNI)
	switch {
	case i < 0:
		return fmt.Errorf("vxswitchd has no port %s", name)
	case ports[i].State == "down":
		return fmt.Errorf("port %s of vxswitchd is down: %s", name, ports[i].Error)
	case !slices.ContainsFunc(ports[i].Members, func(m api.Member) bool { return m.VNI == vni }):
		return fmt.Errorf("port %s of vxswitchd is not in vni %d", name, vni)
	}
	return nil
}

// check reports what the container does not have of a result.
func (d *device) check(r *current.Result) error {
	at := slices.IndexFunc(r.Interfaces, func(i *current.Interface) bool { return i.Name == d.ifname && i.Sandbox != "" })
	if at < 0 {
		return invalid("prevResult.interfaces: must have CNI_IFNAME, %s, with a sandbox", d.ifname)
	}
	want := r.Interfaces[at]
	l, err := netlink.LinkByName(d.ifname)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ifname, err)
	}
	is := l.Attrs()
	switch {
	case !strings.EqualFold(is.HardwareAddr.String(), want.Mac):
		return fmt.Errorf("%s: MAC %v: must be %s", d.ifname, is.HardwareAddr, want.Mac)
	case want.Mtu != 0 && is.MTU != want.Mtu:
		return fmt.Errorf("%s: MTU %d: must be %d", d.ifname, is.MTU, want.Mtu)
	case is.RawFlags&unix.IFF_UP == 0:
		return fmt.Errorf("%s: is down", d.ifname)
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ifname, err)
	}
	var mine []*current.IPConfig
	for _, ip := range r.IPs {
		if ip.Interface == nil || *ip.Interface != at {
			continue
		}
		mine = append(mine, ip)
		if !slices.ContainsFunc(addrs, func(x netlink.Addr) bool { return x.IPNet.String() == ip.Address.String() }) {
			return fmt.Errorf("%s: has no address %v", d.ifname, &ip.Address)
		}
	}
	return d.checkRoutes(l, r.Routes, mine)
}

// checkRoutes looks for routes. Those of other plugins in the chain may be on other interfaces.
func (d *device) checkRoutes(l netlink.Link, routes []*types.Route, ips []*current.IPConfig) error {
	for _, x := range routes {
		want := kernelRoute(l, x, ips)
		family := netlink.FAMILY_V6
		if x.Dst.IP.To4() != nil {
			family = netlink.FAMILY_V4
		}
		mask := netlink.RT_FILTER_DST
		if want.Table != 0 {
			mask |= netlink.RT_FILTER_TABLE
		}
		if ones, _ := x.Dst.Mask.Size(); ones == 0 {
			want.Dst = nil // as the kernel lists a default route
		}
		list, err := netlink.RouteListFiltered(family, want, mask)
		if err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		if !slices.ContainsFunc(list, func(k netlink.Route) bool { return want.Gw == nil || k.Gw.Equal(want.Gw) }) {
			return fmt.Errorf("%s: has no route %s", d.ifname, describe(x))
		}
	}
	return nil
}
