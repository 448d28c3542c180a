package main

import (
	"context"
	"fmt"
	"os/exec"
)

// A contender is a way to join the bridges of the two hosts.
type contender struct {
	name string
	note string // what a reader of its figures has to know
	need string // a program it cannot do without, "" for none
	pkg  string // the Debian package of that
	join func(ctx context.Context, l *lab) error
}

func (c contender) String() string { return c.name }

func contenders() []contender {
	const txOff = "the kernel's side has ethtool -K under tx off: towards a user-space peer its vxlan device leaves the inner checksum to a network card, which veth has none of"
	return []contender{
		{name: "kernel", join: ends(kernel, kernel), note: "kernel vxlan device in a kernel bridge, both ends"},
		{name: "vxswitch", join: ends(vxswitch, vxswitch), note: "TAP device of examples/p2p in a kernel bridge, both ends"},
		{name: "kernel-vxswitch", join: ends(finished(kernel), vxswitch), note: "the sender is behind the kernel; " + txOff},
		{name: "vxswitch-kernel", join: ends(vxswitch, finished(kernel)), note: "the sender is behind p2p; " + txOff},
		{name: "veth", join: ends(untunnelled, untunnelled), note: "bridge to bridge without a tunnel, the ceiling"},
		{name: "ovs", join: ends(ovs, ovs), need: "ovs-vswitchd", pkg: "openvswitch-switch",
			note: "Open vSwitch, user-space datapath, both ends; the guests have ethtool -K eth0 tx off, since it takes no unfinished checksums"},
	}
}

// missing reports whether the contender's program is not installed.
func (c contender) missing() bool {
	if c.need == "" {
		return false
	}
	_, err := exec.LookPath(c.need)
	return err != nil
}

// An end connects the guest of host i with the underlay.
type end func(ctx context.Context, l *lab, i int) error

// ends joins the hosts by an end each. The guest of the first one sends.
func ends(a, b end) func(ctx context.Context, l *lab) error {
	return func(ctx context.Context, l *lab) error {
		if err := a(ctx, l, 0); err != nil {
			return err
		}
		return b(ctx, l, 1)
	}
}

// bridge makes the kernel bridge of a host, with the guest and a device in it.
func (l *lab) bridge(ctx context.Context, i int, dev string) error {
	return ip(ctx, l.hosts[i],
		"link add br0 type bridge",
		"link set br0 up",
		"link set guest master br0",
		"link set "+dev+" master br0 up")
}

func kernel(ctx context.Context, l *lab, i int) error {
	if err := ip(ctx, l.hosts[i], fmt.Sprintf("link add vx0 mtu %d type vxlan id %s local %s remote %s dstport 4789",
		l.inner, vni, l.addr(i), l.addr(1-i))); err != nil {
		return err
	}
	return l.bridge(ctx, i, "vx0")
}

func vxswitch(ctx context.Context, l *lab, i int) error {
	if err := l.tunnel(ctx, "ready", l.hosts[i], l.p2p, "-dev", "vx0", "-id", vni,
		"-local", l.addr(i), "-remote", l.addr(1-i)); err != nil {
		return err
	}
	return l.bridge(ctx, i, "vx0")
}

func untunnelled(ctx context.Context, l *lab, i int) error { return l.bridge(ctx, i, "under") }

// finished is an end whose packets leave the host with all checksums in them.
func finished(e end) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := offloads(ctx, l.hosts[i], "under", "tx"); err != nil {
			return err
		}
		return e(ctx, l, i)
	}
}
