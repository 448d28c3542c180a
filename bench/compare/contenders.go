package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A contender is a way to join the two hosts.
type contender struct {
	name    string
	note    string // what a reader of its figures has to know
	need    string // a program it cannot do without, "" for none
	pkg     string // the Debian package of that
	join    func(ctx context.Context, l *lab) error
	special bool // takes part where a case names it only
}

func (c contender) String() string { return c.name }

func contenders() []contender {
	flows := direct("-id", vni, "-kind", "veth", "-datapath", "kernel")
	return []contender{
		{name: "kernel", join: both(kernel), note: "kernel vxlan device in a kernel bridge, both ends"},
		{name: "vxswitch", join: both(vxswitch()), note: "TAP device of examples/p2p in a kernel bridge, both ends"},
		{name: "vxswitch-flows", join: both(flows), note: "veth device of examples/p2p in the guest without a bridge, both ends; the kernel carries what p2p has decided"},
		{name: "kernel-vxswitch", join: ends(kernel, vxswitch()), note: "the sender is behind the kernel"},
		{name: "vxswitch-kernel", join: ends(vxswitch(), kernel), note: "the sender is behind p2p"},
		{name: "kernel-flows", join: ends(kernel, flows), note: "as vxswitch-flows, and the sender is behind the kernel"},
		{name: "flows-kernel", join: ends(flows, kernel), note: "as vxswitch-flows, and the receiver is behind the kernel"},
		{name: "veth", join: both(untunnelled), note: "bridge to bridge without a tunnel, the ceiling"},
		{name: "ovs", join: both(ovs("tx")), need: "ovs-vswitchd", pkg: "openvswitch-switch",
			note: "Open vSwitch, user-space datapath, both ends; the guests have ethtool -K eth0 tx off, since it takes no unfinished checksums"},
		{name: "ovs-vxswitch", special: true, join: ends(ovs("tso", "gso"), singly()), need: "ovs-vswitchd", pkg: "openvswitch-switch",
			note: "the sender is behind Open vSwitch and has ethtool -K eth0 tso off gso off, p2p has -udpcsum off: Open vSwitch takes no superframes, neither of its guest nor of the kernel that p2p sends by"},
		{name: "vxswitch-ovs", special: true, join: ends(singly(), ovs("tso", "gso")), need: "ovs-vswitchd", pkg: "openvswitch-switch",
			note: "as ovs-vxswitch, and the sender is behind p2p"},
		{name: "kernel-host", special: true, join: both(kernelDirect), note: "kernel vxlan device without a bridge: the hosts themselves are the guests, both ends"},
		{name: "vxswitch-host", special: true, join: both(direct("-id", vni)), note: "TAP device of examples/p2p, likewise"},
		{name: "vxswitch-flows-host", special: true, join: both(direct("-id", vni, "-datapath", "kernel")), note: "as vxswitch-host, with -datapath kernel: the kernel carries what p2p has decided"},
		{name: "flows-one", special: true, join: talking(1, flows), note: "as vxswitch-flows, with a host behind each guest"},
		{name: "flows-many", special: true, join: talking(talkPairs, flows), note: "likewise, with 500 hosts behind each guest, which talk in 5,000 pairs: two flow entries each at either end"},
		{name: "gpe", special: true, join: both(tap("-type", "gpe", "-id", vni)), note: "as vxswitch, with -type gpe"},
		{name: "kernel-gpe", special: true, join: both(kernelGPE), note: "kernel VXLAN-GPE device (external) that the hosts route to, both ends"},
		{name: "gpe-tun", special: true, join: both(tun("-type", "gpe", "-tun", "-id", vni)), note: "TUN device of examples/p2p -type gpe that the hosts route to, both ends"},
		{name: "udp", special: true, join: both(over("udp", hostAddr)), note: "as vxswitch, in the program of packet"},
		{name: "packet", special: true, join: both(over("packet", packetAddr)), note: "as udp, over packet sockets (underlay/afpacket) with an address that the host does not have"},
		{name: "portable", special: true, join: both(over("portable", hostAddr)), note: "as udp, on underlay.Portable: the underlay of macOS, Windows and the BSDs, here with several datagrams a call"},
		{name: "ipip-lone", special: true, join: both(alone), note: "as ipip-plain, without batches: one packet a system call all the way, but for what waits in the receiving socket"},
		{name: "ipip-plain", special: true, join: both(tun("-type", "ipip", "-offload=false")), note: "as ipip, with -offload=false: no superframes, but the sockets still have batches (sendmmsg, recvmmsg)"},
		{name: "ipip", special: true, join: both(tun("-type", "ipip")), note: "TUN device of examples/p2p -type ipip that the hosts route to, both ends"},
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

// both joins the hosts by equal ends.
func both(e end) func(ctx context.Context, l *lab) error { return ends(e, e) }

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
	return netns.IP(ctx, l.hosts[i],
		"link add br0 type bridge",
		"link set br0 up",
		"link set guest master br0",
		"link set "+dev+" master br0 up")
}

func kernel(ctx context.Context, l *lab, i int) error {
	if err := l.kernelDevice(ctx, i); err != nil {
		return err
	}
	return l.bridge(ctx, i, "vx0")
}

// kernelDevice makes the kernel's vxlan device vx0 of a host.
func (l *lab) kernelDevice(ctx context.Context, i int) error {
	return netns.IP(ctx, l.hosts[i], fmt.Sprintf("link add vx0 mtu %d type vxlan id %s local %s remote %s dstport 4789",
		l.inner, vni, hostAddr(i), hostAddr(1-i)))
}

// vxswitch is an end of p2p with its default flags.
func vxswitch() end { return tap("-id", vni) }

// singly is an end of p2p that sends one packet at a time.
func singly() end { return tap("-id", vni, "-udpcsum", "off") }

// tap is an end of p2p on a TAP in the bridge.
func tap(args ...string) end {
	return func(ctx context.Context, l *lab, i int) error {
		if err := l.open(ctx, i, args); err != nil {
			return err
		}
		return l.bridge(ctx, i, "vx0")
	}
}

// open starts p2p, with the device vx0.
func (l *lab) open(ctx context.Context, i int, args []string) error {
	all := append([]string{l.p2p, "-dev", "vx0", "-local", hostAddr(i), "-remote", hostAddr(1 - i)}, args...)
	return l.tunnel(ctx, "ready", l.hosts[i], all...)
}

func untunnelled(ctx context.Context, l *lab, i int) error { return l.bridge(ctx, i, "under") }
