package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// direct is an end of p2p whose device is the guest's own, without a bridge. A TAP stays in the host, which is the guest then;
// with -kind veth the device goes into the guest.
func direct(args ...string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := l.open(ctx, i, args); err != nil {
			return err
		}
		return l.own(ctx, i, "vx0", slices.Contains(args, "veth"))
	}
}

// kernelDirect is the kernel's vxlan device of a host that is its own guest.
func kernelDirect(ctx context.Context, l *lab, i int) error {
	if err := l.kernelDevice(ctx, i); err != nil {
		return err
	}
	return l.own(ctx, i, "vx0", false)
}

// own makes a device of a host the only one of its guest: of the guest, to which it moves, or of the host as its own guest.
func (l *lab) own(ctx context.Context, i int, dev string, moves bool) error {
	if err := netns.IP(ctx, l.hosts[i], "link del guest"); err != nil { // and eth0
		return err
	}
	if moves {
		if err := netns.IP(ctx, l.hosts[i], "link set "+dev+" netns "+l.guests[i]); err != nil {
			return err
		}
	} else {
		if err := netns.Remove(l.guests[i]); err != nil {
			return err
		}
		l.guests[i] = l.hosts[i]
	}
	return netns.IP(ctx, l.guests[i], fmt.Sprintf("link set %s mtu %d up", dev, l.inner), fmt.Sprintf("addr add %s/24 dev %s", l.guestAddr(i), dev))
}
