package main

import (
	"context"
	"fmt"
	"os"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// ovs is an end of Open vSwitch with its user-space datapath. Its bridge "phy" has the
// underlay device and its address, since the datapath sends tunnel packets by the
// addresses of its own bridges; bridge "br0" has the guest, without some of its offloads, and
// the tunnel.
func ovs(without ...string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := offloads(ctx, l.guests[i], "eth0", without...); err != nil {
			return err
		}
		return l.openVSwitch(ctx, i)
	}
}

func (l *lab) openVSwitch(ctx context.Context, i int) error {
	dir, err := os.MkdirTemp(l.dir, "ovs")
	if err != nil {
		return err
	}
	ns := l.hosts[i]
	start := func(text string, args ...string) error {
		_, err := l.start(ctx, text, ns, args...)
		return err
	}
	if err := netns.StartOVS(ctx, ns, dir, "under", "guest", start); err != nil {
		return err
	}
	l.tunnels = append(l.tunnels, l.procs[len(l.procs)-1]) // the switch; its database carries no packets
	if err := netns.SetOVS(ctx, ns, dir, "--", "add-port", "br0", "vx0", "--", "set", "interface", "vx0", "type=vxlan",
		"options:remote_ip="+hostAddr(1-i), "options:key="+vni, "options:dst_port=4789"); err != nil {
		return err
	}
	return netns.IP(ctx, ns,
		"addr flush dev under",
		fmt.Sprintf("link set phy mtu %d up", l.inner+overhead),
		"addr add "+hostAddr(i)+"/24 dev phy",
		"link set br0 up")
}
