package main

import (
	"context"
	"fmt"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// gateway is the address by which the guests know their hosts, where those route.
const gateway = "192.168.7.254"

// route makes a host the gateway of its guest. The other guest is behind a device, which
// how says more about.
func (l *lab) route(ctx context.Context, i int, dev, how string) error {
	if err := netns.IP(ctx, l.hosts[i],
		"addr add "+gateway+"/32 dev guest",
		"route add "+l.guestAddr(i)+"/32 dev guest",
		"link set "+dev+" up",
		fmt.Sprintf("route add %s/32 %s dev %s", l.guestAddr(1-i), how, dev)); err != nil {
		return err
	}
	if _, err := netns.Output(ctx, netns.Timeout, l.hosts[i], "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"); err != nil {
		return err
	}
	return netns.IP(ctx, l.guests[i], "route add "+l.guestAddr(1-i)+"/32 via "+gateway)
}

// tun is an end of p2p on a TUN, with the MTU that the guests have.
func tun(args ...string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := l.open(ctx, i, append([]string{"-mtu", fmt.Sprint(l.inner)}, args...)); err != nil {
			return err
		}
		return l.route(ctx, i, "vx0", "")
	}
}

// alone is an end of IP in IP that is built as p2p, without batches.
func alone(ctx context.Context, l *lab, i int) error {
	if err := l.tunnel(ctx, "ready", l.hosts[i], l.self, "lone", hostAddr(i), hostAddr(1-i), fmt.Sprint(l.inner)); err != nil {
		return err
	}
	return l.route(ctx, i, "vx0", "")
}

// kernelGPE is the kernel's VXLAN-GPE device, which carries IP without Ethernet: there is
// no other than the external one, whose routes say to whom.
func kernelGPE(ctx context.Context, l *lab, i int) error {
	if err := netns.IP(ctx, l.hosts[i], fmt.Sprintf("link add vx0 mtu %d type vxlan dstport 4790 external gpe local %s", l.inner, hostAddr(i))); err != nil {
		return err
	}
	return l.route(ctx, i, "vx0", "encap ip id "+vni+" dst "+hostAddr(1-i))
}
