package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Guests behind bridges, p2p here and the kernel's vxlan there: with and without outer
// checksums, offloads and jumbo frames, every packet a guest receives has its checksums.
// Guests send superframes with unfinished checksums; the hosts' ends of their links
// complete what leaves them, so that a capture inside the guest shows what would be on a
// wire. So does the kernel's end of the underlay, or it keeps its offloads: then what it sends
// is unfinished, and in superframes.
func TestChecksumsOfGuests(t *testing.T) {
	for _, c := range []struct {
		sum, offload string
		mtu          int // inside
		keep         bool
	}{
		{"udpcsum", "-offload=true", 1450, false},
		{"noudpcsum", "-offload=false", 1450, false},
		{"udpcsum", "-offload=false", 8950, false},
		{"noudpcsum", "-offload=true", 8950, false},
		{"noudpcsum", "-offload=true", 1450, true},
		{"udpcsum", "-offload=false", 1450, true},
		{"udpcsum", "-offload=true", 8950, true},
	} {
		t.Run(fmt.Sprintf("%s%s-%d-%v", c.sum, c.offload, c.mtu, c.keep), func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			ga, inA := guest(n, "ga", a, 1, c.mtu)
			gb, inB := guest(n, "gb", b, 2, c.mtu)
			ua, ub := n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
			a.MTU(ua, c.mtu+50)
			b.MTU(ub, c.mtu+50)
			b.VXLAN("vx0", netns.VXLAN{ID: 9, Local: "10.0.0.2", Remote: "10.0.0.1", Dev: ub, Args: []string{c.sum}, Keep: c.keep})
			p := families[0].start(t, a, c.mtu, c.offload)
			a.Bridge("br0", inA, "vxs0")
			b.Bridge("br0", inB, "vx0")
			wantChecksums(t, ga, gb, c.mtu)
			l := stop(t, p)
			l.wantDrops(t, "port-full")
		})
	}
}

// guest makes a guest of a host, number i, which receives nothing unfinished. It returns
// the guest and the host's end of the link.
func guest(n *netns.Net, name string, h *netns.Host, i, mtu int) (g *netns.Host, inside string) {
	g = n.Host(name)
	dev, inside := n.Link(g, fmt.Sprintf("192.168.7.%d/24,fd07::%[1]d/64", i), h, "")
	g.MTU(dev, mtu)
	h.MTU(inside, mtu)
	h.TxOff(inside)
	return g, inside
}

// wantChecksums runs TCP and UDP both ways between two guests, the second at 192.168.7.2
// and fd07::2, and wants all that they receive to be intact.
func wantChecksums(t *testing.T, a, b *netns.Host, mtu int) {
	t.Helper()
	a.Ready()
	b.Ready()
	a.Ping("192.168.7.2", 2)
	a.Ping("fd07::2", 2)
	guests := []*netns.Host{a, b}
	captures := [2]*netns.Capture{a.Capture("eth0", "inbound"), b.Capture("eth0", "inbound")}
	intact(t, a, b, "192.168.7.2 -n 4M", "192.168.7.2 -n 4M -R", "fd07::2 -n 4M", "fd07::2 -n 4M -R",
		"192.168.7.2 -u -b 20M -l 1200 -k 300", "192.168.7.2 -u -b 20M -l 1200 -k 300 -R")
	for i, c := range captures {
		seen := slices.DeleteFunc(c.Stop(), func(p netns.Packet) bool { return p.Out })
		for _, p := range seen {
			if p.Unfinished || len(p.Data) > mtu+14 {
				t.Fatalf("%s: a packet of %d bytes as no wire would carry it: unfinished %v", guests[i].Name, len(p.Data), p.Unfinished)
			}
		}
		good := 0
		for _, row := range netns.Fields(t, seen, "", "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status") {
			for k, status := range row {
				switch {
				case strings.Contains(status, "0"):
					t.Errorf("%s: bad checksum: %v (of IP, TCP, UDP)", guests[i].Name, row)
				case k > 0 && status == "1":
					good++
				}
			}
		}
		t.Logf("%s received %d packets, %d with the right TCP or UDP checksum", guests[i].Name, len(seen), good)
		if good < 1000 {
			t.Errorf("%s: only %d packets to tell by", guests[i].Name, good)
		}
	}
}

// A device with an MTU below what the tunnel carries: what a kernel sends whole, in segments that
// nobody has said the length of, fits it.
func TestNarrowDevice(t *testing.T) {
	for flags, mtu := range map[string]int{"-mtu 1400": 1400, "-mtu 1000 -offload=false": 1000, "-inner-vlan pass": 1446} {
		t.Run(flags, func(t *testing.T) {
			f := families[0]
			a, b := f.peers(t, netns.VXLAN{Addr: "192.168.7.2/24,fd07::2/64", Keep: true})
			p := f.start(t, a, mtu, flags)
			addrs := []string{"192.168.7.1/24", "fd07::1/64"}
			if mtu < 1280 {
				addrs = addrs[:1] // no IPv6 there
			}
			a.Addr("vxs0", strings.Join(addrs, ","))
			a.Ready()
			for i := range addrs {
				to := []string{"192.168.7.2", "fd07::2"}[i]
				a.Ping(to, 2)
				if r := a.IPerf(b, to, "-n", "20M", "-R"); r.Bytes < 20_000_000 {
					t.Errorf("from %s: %+v", to, r)
				}
			}
			stop(t, p)
		})
	}
}
