package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// ovsLab is a guest behind p2p, and one behind Open vSwitch in user space:
//
//	ga -- br0 -- vxs0: p2p == near ---- phy: OVS -- br0 -- gb
//
// It takes no superframes, and no unfinished checksums of its tunnel: its guest sends none of
// the former, and our underlay is a plain network card. What its guest leaves unfinished
// goes into the tunnel as it is.
type ovsLab struct {
	t        *testing.T
	a, b     *netns.Host
	ga, gb   *netns.Host
	ovs      *netns.OpenVSwitch
	near     string         // our underlay device
	onA, onB *netns.Capture // of the guests
	macA     string         // of the guests
	macB     string
	number   int // of packets
}

func newOVSLab(t *testing.T) *ovsLab {
	n := netns.New(t)
	l := &ovsLab{t: t, a: n.Host("a"), b: n.Host("b")}
	var inA, inB, under string
	l.ga, inA = guest(n, "ga", l.a, 1, 1450)
	l.gb, inB = guest(n, "gb", l.b, 2, 1450)
	l.near, under = n.Link(l.a, "10.0.0.1/24,fd00::1/64", l.b, "")
	l.a.TxOff(l.near)
	l.gb.Run("ethtool", "-K", "eth0", "tso", "off", "gso", "off", "tx-udp-segmentation", "off")
	if carry.Kernel() {
		l.gb.TxOff("eth0") // Open vSwitch passes on what is unfinished, which only p2p itself completes
	}
	l.a.IP("tuntap", "add", "vxs0", "mode", "tap") // stays in the bridge while p2p comes and goes
	l.a.Bridge("br0", inA, "vxs0")
	l.ovs = l.b.OVS(netns.OVS{Local: "10.0.0.2/24,fd00::2/64", Under: under, Inside: inB, MTU: 1500})
	return l
}

// tunnel starts p2p and OVS's tunnel; both have forgotten all.
func (l *ovsLab) tunnel(t *testing.T, f family, flags string, options ...string) *netns.Proc {
	t.Helper()
	l.ovs.VXLAN("vx0", f.local, 9, options...)
	p := start(t, l.a, f.ready("vxs0", 9, f.mtu), strings.Fields("-id 9 -local "+f.local+" -remote "+f.remote+" "+flags)...)
	l.forget()
	return p
}

// joined is tunnel, and waits until it carries frames both ways: for a moment OVS keeps flows
// of the tunnel before.
func (l *ovsLab) joined(t *testing.T, flags string, options ...string) *netns.Proc {
	t.Helper()
	p := l.tunnel(t, families[0], flags, options...)
	l.a.Until("the tunnel works", func() bool {
		_, err := l.ga.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "192.168.7.2")
		return err == nil
	})
	return p
}

func (l *ovsLab) forget() {
	l.ovs.Ask("fdb/flush", "br0")
	for _, g := range []*netns.Host{l.ga, l.gb} {
		g.IP("neigh", "flush", "all")
	}
}

// Either side may be the first to speak, over IPv4 and IPv6, with every setting of the
// outer checksum. Over IPv6 OVS computes it whatever csum says, and takes zero.
func TestOpenVSwitchPeer(t *testing.T) {
	l := newOVSLab(t)
	for _, c := range []struct {
		fam          int
		flags        string
		csum         bool   // of OVS
		ours, theirs string // checksums on the wire
		all          bool   // every packet of much traffic is looked at
	}{
		{0, "-udpcsum auto", false, "none", "none", true},
		{0, "-udpcsum on", true, "right", "right", false},
		{0, "-udpcsum off", true, "none", "right", false},
		{1, "-udpcsum auto", true, "right", "right", true},
		{1, "-udpcsum off -udp6zerocsumrx", false, "none", "right", false},
	} {
		f := families[c.fam]
		t.Run(f.name+" "+c.flags, func(t *testing.T) {
			p := l.tunnel(t, f, c.flags, fmt.Sprintf("csum=%v", c.csum))
			wire := l.a.Capture(l.near, "udp dst port 4789")
			l.gb.Ping("192.168.7.1", 1) // theirs is first
			l.gb.Ping("fd07::1", 1)
			l.forget()
			l.ga.Ping("192.168.7.2", 1)
			l.ga.Ping("fd07::2", 1)
			seen := wire.Stop()
			for side, want := range map[string]string{"ours": c.ours, "theirs": c.theirs} {
				got := netns.Fields(t, only(seen, side == "ours"), "", "udp.checksum.status", "ip.ttl", "ipv6.hlim", "ip.flags.df", "vxlan.flags", "vxlan.vni")
				if len(got) < 8 {
					t.Errorf("%s: %d packets", side, len(got))
				}
				for _, row := range got {
					sum := map[string]string{"1": "right", "3": "none", "4": "none"}[row[0]] // 4: none over IPv6
					ttl, _, _ := strings.Cut(row[1+c.fam], ",")
					df, _, _ := strings.Cut(row[3]+",", ",")
					if sum != want || ttl != "64" || c.fam == 0 && df != "1" || row[4] != "0x0800" || row[5] != "9" {
						t.Errorf("%s: %q, want %s", side, row, want)
					}
				}
			}
			if c.all {
				l.ga.MTU("eth0", f.mtu) // else there are errors of ICMP, which quote what is unfinished
				l.gb.MTU("eth0", f.mtu)
				wantChecksums(t, l.ga, l.gb, f.mtu)
			} else {
				intact(t, l.ga, l.gb, "192.168.7.2 -n 2M", "fd07::2 -n 2M -R", "192.168.7.2 -u -b 20M -l 1200 -k 300", "fd07::2 -u -b 20M -l 1200 -k 300 -R")
			}
			s := stop(t, p)
			s.wantDrops(t, "port-full", "too-big")
		})
	}
}

// only returns the packets that the host has sent, or received.
func only(ps []netns.Packet, out bool) []netns.Packet {
	return slices.DeleteFunc(slices.Clone(ps), func(p netns.Packet) bool { return p.Out != out })
}
