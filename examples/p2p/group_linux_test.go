package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// groupFamily is an underlay with a multicast group.
type groupFamily struct {
	family
	group  string
	host   string   // of address i
	ttl    string   // name of the field in tshark
	report []string // fields of a membership report: kind, group
}

var groupFamilies = []groupFamily{
	{families[0], "239.1.1.1", "10.0.0.%d", "ip.ttl", []string{"igmp.record_type", "igmp.maddr"}},
	{families[1], "ff05::1:1", "fd00::%d", "ipv6.hlim", []string{"icmpv6.mldr.mar.record_type", "icmpv6.mldr.mar.multicast_address"}},
	{families[1], "ff0e::1:1", "fd00::%d", "ipv6.hlim", []string{"icmpv6.mldr.mar.record_type", "icmpv6.mldr.mar.multicast_address"}},
}

func (f *groupFamily) at(i int) string { return fmt.Sprintf(f.host, i) }

// Two p2p and the kernel's device in one group, with two queues: each broadcast arrives once at
// both others, with TTL 1; hosts find each other, and answers are unicast; who ends leaves the
// group.
func TestGroup(t *testing.T) {
	t.Parallel()
	for _, f := range groupFamilies {
		t.Run(f.group, func(t *testing.T) {
			n := netns.New(t)
			sw := n.Switch("sw")
			var hosts []*netns.Host
			var ports []string
			for i := range 3 {
				h := n.Host(fmt.Sprint("h", i+1))
				h.Sysctl("net.ipv6.conf.default.autoconf", "0")
				_, port := n.Plug(h, f.at(i+1)+f.bits, sw)
				hosts, ports = append(hosts, h), append(ports, port)
			}
			for _, h := range hosts {
				h.Ready()
			}
			membership := sw.Capture(ports[0], "igmp or icmp6 or ip6 proto 0")
			hosts[2].VXLAN("vx0", netns.VXLAN{ID: 7, Local: f.at(3), Group: f.group, Dev: "eth0", Addr: "192.168.7.3/24"})
			var ps []*netns.Proc
			for i := range 2 {
				p := start(t, hosts[i], fmt.Sprintf("ready dev=vxs0 type=vxlan id=7 local="+f.brackets+":4789 mtu=%d", f.at(i+1), f.mtu),
					"-local", f.at(i+1), "-group", f.group, "-id", "7", "-queues", "2")
				hosts[i].Addr("vxs0", fmt.Sprintf("192.168.7.%d/24", i+1))
				ps = append(ps, p)
			}
			wire := hosts[0].Capture("eth0", "udp port 4789")
			for i, h := range hosts {
				for j := range hosts {
					if i != j {
						h.Ping(fmt.Sprintf("192.168.7.%d", j+1), 2)
					}
				}
			}

			devs := []string{"vxs0", "vxs0", "vx0"}
			var outs []*netns.Capture
			for i, h := range hosts {
				outs = append(outs, h.Capture(devs[i], "ether proto 0x88b5"))
			}
			const frames = 32
			text := func(from, i int) []byte { return fmt.Appendf(nil, "from %d frame %d.", from, i) }
			for from, h := range hosts {
				for i := range frames {
					b := append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, byte(i), byte(from), 0x88, 0xb5}, text(from, i)...)
					h.Inject(devs[from], append(b, make([]byte, 40)...))
				}
			}
			for to, c := range outs {
				for from := range hosts {
					if from != to {
						c.Want(frames, func(p netns.Packet) bool { return bytes.Contains(p.Data, fmt.Appendf(nil, "from %d ", from)) })
					}
				}
			}
			time.Sleep(50 * time.Millisecond)
			for to, c := range outs {
				seen := c.Stop()
				for from := range hosts {
					for i := range frames {
						k := 0
						for _, p := range seen {
							if !p.Out && bytes.Contains(p.Data, text(from, i)) {
								k++
							}
						}
						if want := map[bool]int{true: 1}[from != to]; k != want {
							t.Errorf("host %d got %d copies of frame %d of host %d, want %d", to, k, i, from, want)
						}
					}
				}
			}
			for _, row := range netns.Fields(t, wire.Stop(), "", "ip.dst", "ipv6.dst", f.ttl) {
				dst := strings.Split(strings.Trim(row[0]+","+row[1], ","), ",")[0]
				if f.family.name == "IPv6" {
					dst = strings.Split(row[1], ",")[0]
				}
				ttl, want := strings.Split(row[2], ",")[0], "64"
				if dst == f.group {
					want = "1"
				}
				if ttl != want {
					t.Errorf("to %s with TTL %s, want %s", dst, ttl, want)
				}
			}

			l := stop(t, ps[0])
			for _, p := range l.Peers {
				if strings.Contains(p.Addr, f.group) && (p.Rx != 0 || p.Tx < frames) {
					t.Errorf("%+v", p)
				}
			}
			if len(l.Peers) != 3 { // the group, and both others
				t.Errorf("peers %+v", l.Peers)
			}
			l.wantDrops(t)
			sw.Until("the leave is on the wire", func() bool {
				for _, row := range netns.Fields(t, membership.Seen(), f.report[0], f.report...) {
					kinds, groups := strings.Split(row[0], ","), strings.Split(row[1], ",")
					for i := range kinds {
						// CHANGE_TO_INCLUDE_MODE of nothing, RFC 3376, section 4.2.12, and RFC 3810, section 5.2.12
						if (kinds[i] == "3" || kinds[i] == "0x03") && i < len(groups) && groups[i] == f.group {
							return true
						}
					}
				}
				return false
			})
			hosts[1].Ping("192.168.7.3", 1)
			stop(t, ps[1])
		})
	}
}

// The tunnel survives an interface that goes down and comes back.
func TestGroupDeviceDown(t *testing.T) {
	t.Parallel()
	for _, f := range groupFamilies[:2] {
		t.Run(f.group, func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, f.at(1)+f.bits, b, f.at(2)+f.bits)
			b.VXLAN("vx0", netns.VXLAN{ID: 7, Local: f.at(2), Group: f.group, Dev: "eth0", Addr: "192.168.7.2/24"})
			p := start(t, a, fmt.Sprintf("ready dev=vxs0 type=vxlan id=7 local="+f.brackets+":4789 mtu=%d", f.at(1), f.mtu),
				"-local", f.at(1), "-group", f.group, "-id", "7", "-underlay-dev", "eth0")
			a.Addr("vxs0", "192.168.7.1/24")
			a.Ping("192.168.7.2", 1)
			a.IP("link", "set", "eth0", "down")
			a.IP("link", "set", "eth0", "up")
			if f.family.name == "IPv6" {
				a.Addr("eth0", f.at(1)+f.bits)
			}
			a.Ready()
			b.IP("neigh", "flush", "dev", "vx0")
			a.IP("neigh", "flush", "dev", "vxs0")
			b.Until("the question by multicast is answered", func() bool {
				_, err := b.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "192.168.7.1")
				return err == nil
			})
			stop(t, p)
		})
	}
}

// A router passes on what goes to the group once its TTL allows that.
func TestGroupRouted(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name, a, b, ra, rb, via string
		brackets, group         string
		mtu                     int
	}{
		{"IPv4", "10.0.1.1", "10.0.2.1", "10.0.1.9/24", "10.0.2.9/24", "/24", "%s", "239.1.1.1", 1450},
		{"IPv6", "fd01::1", "fd02::1", "fd01::9/64", "fd02::9/64", "/64", "[%s]", "ff05::1:1", 1430},
	} {
		t.Run(f.name, func(t *testing.T) {
			n := netns.New(t)
			a, b, r := n.Host("a"), n.Host("b"), n.Router("r")
			n.Link(a, f.a+f.via, r, f.ra)
			n.Link(b, f.b+f.via, r, f.rb)
			a.IP("route", "add", "default", "via", strings.Split(f.ra, "/")[0])
			b.IP("route", "add", "default", "via", strings.Split(f.rb, "/")[0])
			for _, h := range []*netns.Host{a, b, r} {
				h.Ready()
			}
			dir := t.TempDir()
			conf := fmt.Sprintf("phyint eth0 enable\nphyint eth1 enable\n"+
				"mroute from eth0 group %s to eth1\nmroute from eth1 group %[1]s to eth0\n", f.group)
			must(t, os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
			sock := filepath.Join(dir, "s")
			r.Start("smcrouted", "-n", "-N", "-f", filepath.Join(dir, "conf"), "-P", filepath.Join(dir, "pid"), "-u", sock)
			r.Until("the router is up", func() bool { _, err := os.Stat(sock); return err == nil })

			for _, c := range []struct {
				ttl     string
				crosses bool
			}{{"1", false}, {"2", true}} {
				var ps []*netns.Proc
				for i, h := range []*netns.Host{a, b} {
					local := []string{f.a, f.b}[i]
					ps = append(ps, start(t, h, fmt.Sprintf("ready dev=vxs0 type=vxlan id=7 local="+f.brackets+":4789 mtu=%d", local, f.mtu),
						"-local", local, "-group", f.group, "-id", "7", "-group-ttl", c.ttl))
					h.Addr("vxs0", fmt.Sprintf("192.168.7.%d/24", i+1))
				}
				if _, err := a.Try(t.Context(), "ping", "-n", "-c", "3", "-i", "0.3", "-W", "1", "192.168.7.2"); (err == nil) != c.crosses {
					t.Errorf("TTL %s: %v", c.ttl, err)
				}
				for _, p := range ps {
					stop(t, p)
				}
			}
		})
	}
}

// Two hosts with link-local addresses; the other is the kernel.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "fe80::1/64", b, "fe80::2/64")
	n.Link(a, "", b, "") // another link, with its own fe80::/64
	b.VXLAN("vx0", netns.VXLAN{ID: 7, Local: "fe80::2", Remote: "fe80::1", Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
	for _, remotes := range [][]string{{"-remote", "fe80::2%eth0"}, nil} { // listed, and learned
		p := start(t, a, "ready dev=vxs0 type=vxlan id=7 local=[fe80::1%eth0]:4789 mtu=1430",
			append([]string{"-local", "fe80::1%eth0", "-id", "7", "-queues", "2"}, remotes...)...)
		a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
		if remotes == nil {
			b.IP("neigh", "flush", "dev", "vx0")
		}
		b.Ping("192.168.7.1", 5)
		a.Ping("192.168.7.2", 5)
		if remotes != nil {
			throughput(t, a, b, "192.168.7.2")
		}
		if out := b.Run("bridge", "fdb", "show", "dev", "vx0"); !strings.Contains(out, a.MAC("vxs0")+" dst fe80::1 ") {
			t.Errorf("the kernel did not learn it:\n%s", out)
		}
		l := ask(t, p)
		if got := l.dest(b.MAC("vx0")); got != "[fe80::2%eth0]:4789" {
			t.Errorf("MAC of vx0 at %q", got)
		}
		if len(l.Peers) != 1 || l.Peers[0].Addr != "[fe80::2%eth0]:4789" || l.Peers[0].Rx < 5 || l.Peers[0].Tx < 5 {
			t.Errorf("peers %+v", l.Peers)
		}
		stop(t, p)
	}
}

// An interface that is not there is one line, with the flag.
func TestGroupDeviceError(t *testing.T) {
	n := netns.New(t)
	path, err := program()
	must(t, err)
	a := n.Host("a")
	wantFailure(t, inside(a, path, "-local 127.0.0.1 -group 239.1.1.1 -underlay-dev nowhere"),
		`underlay: UDPConfig.MulticastDevice: "nowhere": no such device: -underlay-dev must be an interface of this host`)
}
