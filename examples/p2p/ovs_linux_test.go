package main

import (
	"os/exec"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Open vSwitch in user space is the other end: ping, TCP and UDP both ways between guests
// behind p2p and behind it, with all checksums right. It takes no superframes and no
// unfinished checksums: its guest sends none, and our underlay is a plain network card.
func TestOpenVSwitchPeer(t *testing.T) {
	netns.RequireRoot(t)
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Skipf("%v: install the package openvswitch-switch", err)
	}
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	ga, inA := guest(n, "ga", a, 1, 1450)
	gb, inB := guest(n, "gb", b, 2, 1450)
	near, under := n.Link(a, "10.0.0.1/24", b, "")
	a.TxOff(near)
	gb.TxOff("eth0")
	b.OVS(netns.OVS{ID: 9, Local: "10.0.0.2/24", Remote: "10.0.0.1", Under: under, Inside: inB, MTU: 1500})
	p := start(t, a, families[0].ready("vxs0", 9, 1450), "-local", "10.0.0.1", "-remote", "10.0.0.2", "-id", "9")
	a.Bridge("br0", inA, "vxs0")
	wantChecksums(t, ga, gb, 1450)
	l := stop(t, p)
	l.wantDrops(t, "port-full")
}
