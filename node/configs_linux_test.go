package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// families runs a part of a test with the addresses of each family: of host n of a subnet.
func families(t *testing.T, f func(t *testing.T, in func(subnet, n int) string)) {
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) {
			f(t, func(subnet, n int) string { return prefixOf(v6, subnet, n).String() })
		})
	}
}

// vm makes a guest that is host n of a subnet, whose router is host 1.
func (s *site) vm(tap string, subnet, n int) *netns.Host {
	s.l.t.Helper()
	return s.guest(tap, fmt.Sprintf("%v/24,%v/64", prefixOf(false, subnet, n), prefixOf(true, subnet, n)),
		fmt.Sprintf("%v,%v", prefixOf(false, subnet, 1), prefixOf(true, subnet, 1)))
}

var (
	echoes  = `icmp.type == 8 || icmp.type == 0 || icmpv6.type == 128 || icmpv6.type == 129`
	asking  = `arp || icmpv6.type == 135 || icmpv6.type == 136`
	tunnels = []string{"ip.src", "ip.dst", "vxlan.vni"}
)

// cmd/vxswitchd/configs/mesh: each asks all others once and then talks to one. The third
// member may be the kernel's.
func TestConfigMesh(t *testing.T) {
	for _, third := range []string{"ours", "kernel"} {
		t.Run(third, func(t *testing.T) {
			l := newLab(t)
			a, b := l.file("mesh/a"), l.file("mesh/b")
			guests := []*netns.Host{a.guest("lan0", "10.0.0.1/24,fd00::1/64", ""), b.guest("lan0", "10.0.0.2/24,fd00::2/64", "")}
			if third == "ours" {
				guests = append(guests, l.file("mesh/c").guest("lan0", "10.0.0.3/24,fd00::3/64", ""))
			} else {
				k := l.plug("k", "192.0.2.3").h
				k.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "192.0.2.3", Flood: []string{"192.0.2.1", "192.0.2.2"}, Addr: "10.0.0.3/24,fd00::3/64"})
				guests = append(guests, k)
			}
			a.h.Ping("192.0.2.2", 1) // what waits for a neighbour of the underlay is late
			a.h.Ping("192.0.2.3", 1)
			w := l.watch()
			wantTTL(t, guests[0], "10.0.0.2", 64)
			w.want("vxlan && (arp || icmp)", append(tunnels, "arp.opcode", "icmp.type"),
				"192.0.2.1 192.0.2.2 100  8", "192.0.2.1 192.0.2.2 100 1 ", "192.0.2.1 192.0.2.3 100 1 ",
				"192.0.2.2 192.0.2.1 100  0", "192.0.2.2 192.0.2.1 100 2 ")
			for i, g := range guests {
				for j := range guests {
					if i != j {
						wantTTL(t, g, fmt.Sprintf("10.0.0.%d", j+1), 64)
						wantTTL(t, g, fmt.Sprintf("fd00::%d", j+1), 64)
					}
				}
			}
			if dev := "vx0"; third == "kernel" {
				if got := a.dest(100, guests[2].MAC(dev)); got != "192.0.2.3:4789" {
					t.Errorf("a has the kernel's guest at %q", got)
				}
				if got := guests[2].Peers(dev, guests[0].MAC("lan0")); !slices.Equal(got, []string{"192.0.2.1"}) {
					t.Errorf("the kernel has a's guest at %q", got)
				}
			}
			// The hosts' largest packets, which the underlay takes as they are.
			guests[0].Run("ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1422", "10.0.0.3")
		})
	}
}

// cmd/vxswitchd/configs/central: between two networks everything goes through the gateway,
// within one nothing does.
func TestConfigCentral(t *testing.T) {
	l := newLab(t)
	l.file("central/gateway")
	leaf1, leaf2 := l.file("central/leaf1"), l.file("central/leaf2")
	vm1 := leaf1.vm("vm1", 10, 11)
	leaf2.vm("vm2", 10, 12)
	vm3 := leaf2.vm("vm3", 20, 13)
	families(t, func(t *testing.T, in func(subnet, n int) string) {
		w := l.watch()
		wantTTL(t, vm1, in(20, 13), 63)
		w.want(echoes, tunnels, "192.0.2.11 192.0.2.1 10", "192.0.2.1 192.0.2.12 20", "192.0.2.12 192.0.2.1 20", "192.0.2.1 192.0.2.11 10")
		w = l.watch()
		wantTTL(t, vm1, in(10, 12), 64)
		w.want(echoes, tunnels, "192.0.2.11 192.0.2.12 10", "192.0.2.12 192.0.2.11 10")
		wantTTL(t, vm3, in(10, 12), 63)
		wantTTL(t, vm3, in(20, 1), 64)
		if got, want := vm1.Traceroute(in(20, 13)), []string{in(10, 1), in(20, 13)}; !slices.Equal(got, want) {
			t.Errorf("traceroute: %v, want %v", got, want)
		}
	})
}

// cmd/vxswitchd/configs/distributed: what stays on a leaf is not seen on the wire; between
// leaves the first one routes. Who is known is not asked for again.
func TestConfigDistributed(t *testing.T) {
	l := newLab(t)
	leaf1, leaf2 := l.file("distributed/leaf1"), l.file("distributed/leaf2")
	vm1 := leaf1.vm("vm1", 10, 11)
	vm2 := leaf1.vm("vm2", 20, 12)
	vm3 := leaf2.vm("vm3", 10, 13)
	vm4 := leaf2.vm("vm4", 20, 14)
	families(t, func(t *testing.T, in func(subnet, n int) string) {
		w := l.watch()
		for h, to := range map[*netns.Host]string{vm1: in(10, 1), vm2: in(20, 1), vm3: in(10, 1), vm4: in(20, 1)} {
			wantTTL(t, h, to, 64) // and is known from now on
		}
		wantTTL(t, vm1, in(20, 12), 63)
		wantTTL(t, vm4, in(10, 13), 63)
		w.want("vxlan && ("+echoes+" || ("+asking+") && eth.ig == 1)", tunnels) // hosts probe those that they know, too

		w = l.watch()
		wantTTL(t, vm1, in(20, 14), 63)
		w.want(echoes, append(tunnels, "eth.src"),
			"192.0.2.11 192.0.2.12 20 "+leaf1.h.MAC("eth0"), "192.0.2.12 192.0.2.11 10 "+leaf2.h.MAC("eth0"))
		wantTTL(t, vm1, in(10, 13), 64)
		if got, want := vm1.Traceroute(in(20, 14)), []string{in(10, 1), in(20, 14)}; !slices.Equal(got, want) {
			t.Errorf("traceroute: %v, want %v", got, want)
		}

		// Forgotten by the host, not by its leaf.
		vm1.IP("neigh", "flush", "all")
		w = l.watch()
		wantTTL(t, vm1, in(10, 13), 64)
		for _, line := range w.lines("vxlan && ("+asking+")", "ip.src", "arp.opcode", "icmpv6.type") {
			// VM 3 may probe VM 1, which it knows.
			if strings.HasPrefix(line, leaf1.addr+" ") {
				t.Errorf("leaf 1 asked again: %s", line)
			}
		}
	})
	for _, s := range l.sites {
		for _, vsi := range s.Switch().VSIs() {
			if m := vsi.FDB().Stats().Moved; m != 0 {
				t.Errorf("%s, VNI %d: %d MACs moved", s.h.Name, vsi.VNI(), m)
			}
		}
	}
}

// cmd/vxswitchd/configs/symmetric: routed on both leaves; in between there are routers only.
func TestConfigSymmetric(t *testing.T) {
	l := newLab(t)
	leaf1, leaf2 := l.file("symmetric/leaf1"), l.file("symmetric/leaf2")
	vm1 := leaf1.vm("vm1", 10, 11)
	leaf2.vm("vm2", 20, 12)
	families(t, func(t *testing.T, in func(subnet, n int) string) {
		w := l.watch()
		wantTTL(t, vm1, in(20, 12), 62)
		if got, want := vm1.Traceroute(in(20, 12)), []string{in(10, 1), in(20, 1), in(20, 12)}; !slices.Equal(got, want) {
			t.Errorf("traceroute: %v, want %v", got, want)
		}
		rows := w.stop("vxlan", "ip.src", "vxlan.vni", "eth.src", "eth.dst")
		if len(rows) < 2 {
			t.Fatalf("%d tunnel packets", len(rows))
		}
		for _, r := range rows {
			from, _, _ := strings.Cut(r[0], ",")
			_, src, _ := strings.Cut(r[2], ",")
			_, dst, _ := strings.Cut(r[3], ",")
			want := "5000 02:00:00:dd:00:01 02:00:00:dd:00:02"
			if from == leaf2.addr {
				want = "5000 02:00:00:dd:00:02 02:00:00:dd:00:01"
			}
			if got := r[1] + " " + src + " " + dst; got != want {
				t.Errorf("from %s: %s, want %s", from, got, want)
			}
		}
	})
}
