package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A node whose tunnel goes past the stack of its host, with an address of its own, and one
// whose does not: guests reach each other, and a new configuration changes the underlay.
func TestPacketUnderlay(t *testing.T) {
	l := newLab(t)
	const rest = `"ports": [{"name": "lan0", "mtu": 1400}], "segments": [{"vni": 100, "tunnel": "t", "flood": ["%s"], "members": [{"port": "lan0"}]}]}`
	raw := parse(t, `{"tunnels": [{"name": "t", "local": "192.0.2.101", "underlay": "packet", "bind": "eth0", "mac": "02:00:00:00:07:01"}], `+fmt.Sprintf(rest, "192.0.2.2"))
	a := l.start("a", "192.0.2.1", raw)
	b := l.start("b", "192.0.2.2", parse(t, `{"tunnels": [{"name": "t", "local": "192.0.2.2"}], `+fmt.Sprintf(rest, "192.0.2.101")))
	near, far := a.guest("lan0", "10.0.0.1/24,fd00::1/64", ""), b.guest("lan0", "10.0.0.2/24,fd00::2/64", "")
	w := l.watch()
	wantTTL(t, near, "10.0.0.2", 64)
	w.want("vxlan && icmp", append(tunnels, "eth.src"),
		"192.0.2.101 192.0.2.2 100 02:00:00:00:07:01", "192.0.2.2 192.0.2.101 100 "+b.h.MAC("eth0"))
	wantTTL(t, far, "fd00::1", 64)

	raw2 := *raw
	raw2.Tunnels = append([]Tunnel(nil), raw.Tunnels...)
	raw2.Tunnels[0].Underlay, raw2.Tunnels[0].Device, raw2.Tunnels[0].MAC = 0, "", [6]byte{}
	a.h.Addr("eth0", "192.0.2.101/24")
	a.must(&raw2)
	b.h.IP("neigh", "flush", "dev", "eth0")
	wantTTL(t, near, "10.0.0.2", 64)
}

// A tunnel past the stack is in a multicast group with one over UDP sockets and with the
// kernel's: each copy comes once, with TTL 1 on the wire; it takes another local address in
// place, while a guest pings; and the end of the node leaves the group.
func TestPacketUnderlayGroup(t *testing.T) {
	for _, f := range []struct {
		name, base, group, src, ttl string
		report                      []string
	}{
		{"IPv4", "192.0.2.", "239.1.1.1", "ip.src", "ip.ttl", []string{"igmp.record_type", "igmp.maddr"}},
		{"IPv6", "2001:db8::", "ff05::1:1", "ipv6.src", "ipv6.hlim", []string{"icmpv6.mldr.mar.record_type", "icmpv6.mldr.mar.multicast_address"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t)
			const text = `{"tunnels": [{"name": "t", "local": "%s"%s}], "ports": [{"name": "lan0", "mtu": 1400}],
				"segments": [{"vni": 100, "tunnel": "t", "flood": ["%s"], "members": [{"port": "lan0"}]}]}`
			a := l.start("a", "192.0.2.1", parse(t, fmt.Sprintf(text, f.base+"101", `, "underlay": "packet", "bind": "eth0", "queues": 2`, f.group)))
			b := l.start("b", "192.0.2.2", parse(t, fmt.Sprintf(text, f.base+"2", "", f.group)))
			c := l.plug("c", "192.0.2.3")
			c.h.VXLAN("vx0", netns.VXLAN{ID: 100, Local: f.base + "3", Group: f.group, Dev: "eth0", Addr: "10.0.0.3/24"})
			near, far := a.guest("lan0", "10.0.0.1/24", ""), b.guest("lan0", "10.0.0.2/24", "")
			wire := a.h.Capture("eth0", "")
			near.Ping("10.0.0.2", 1)
			near.Ping("10.0.0.3", 1)
			far.Ping("10.0.0.1", 1)
			c.h.Ping("10.0.0.1", 1)

			from := near.Capture("lan0", "ether proto 0x88b5")
			const frames = 20
			for i := range byte(frames) {
				far.Inject("lan0", append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 9, i, 0x88, 0xb5}, make([]byte, 46)...))
			}
			from.Want(frames, func(netns.Packet) bool { return true })

			vx := a.Tunnels()["t"]
			stop := near.Pinging("10.0.0.3")
			for _, local := range []string{"102", "101", "102"} {
				to := netip.MustParseAddr(f.base + local)
				a.must(changed(t, a.Config(), func(c *Config) { c.Tunnels[0].Local = to }))
				near.Ping("10.0.0.2", 2)
				near.Ping("10.0.0.3", 2)
			}
			if sent, answered := stop(); sent == 0 || answered < sent/2 {
				t.Errorf("%d of %d pings answered", answered, sent)
			}
			if a.Tunnels()["t"] != vx {
				t.Error("the tunnel was made anew")
			}
			if got := len(from.Stop()); got != frames {
				t.Errorf("%d frames of %d arrived", got, frames)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			a.h.Until("the leave is on the wire", func() bool {
				for _, row := range netns.Fields(t, wire.Seen(), f.report[0], f.report...) {
					kinds, groups := strings.Split(row[0], ","), strings.Split(row[1], ",")
					for i := range kinds { // CHANGE_TO_INCLUDE of nothing: RFC 3376, section 4.2.12
						if (kinds[i] == "3" || kinds[i] == "0x03") && i < len(groups) && groups[i] == f.group {
							return true
						}
					}
				}
				return false
			})
			sources := map[string]bool{}
			for _, row := range netns.Fields(t, wire.Stop(), "vxlan", f.src, "eth.dst", "ip.dst", "ipv6.dst", f.ttl) {
				first := func(i int) string { s, _, _ := strings.Cut(row[i], ","); return s }
				sources[first(0)] = true
				to := first(2)
				if f.name == "IPv6" {
					to = first(3)
				}
				group := first(1) == "01:00:5e:01:01:01" || first(1) == "33:33:00:01:00:01"
				if want := map[bool]string{false: "64", true: "1"}[group]; group != (to == f.group) || first(4) != want {
					t.Errorf("%q, want TTL %s", row, want)
				}
			}
			for _, last := range []string{"101", "102", "2", "3"} {
				if !sources[f.base+last] {
					t.Errorf("nothing from %s: %v", f.base+last, sources)
				}
			}
		})
	}
}
