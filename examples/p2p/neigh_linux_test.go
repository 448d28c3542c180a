package main

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The second question for a host of the kernel's VTEP is answered here: no packet of the
// tunnel asks. Without the flag it does.
func TestSuppress(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		for _, mode := range []string{"off", "suppress"} {
			t.Run(f.name+"/"+mode, func(t *testing.T) {
				a, b := f.peers(t, netns.VXLAN{Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
				p := f.start(t, a, f.mtu, "-neigh "+mode)
				a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
				hosts := []string{"192.168.7.2", "fd07::2"}
				for _, host := range hosts {
					a.Ping(host, 1)
				}
				was := ask(t, p)
				capture := a.Capture("eth0", "udp dst port 4789")
				for _, host := range hosts {
					a.IP("neigh", "flush", "to", host, "dev", "vxs0")
					a.Ping(host, 1)
				}
				seen := capture.Stop()
				is := ask(t, p)
				want := 0
				if mode == "off" {
					want = 1
				}
				of := "ip.src=="
				if f.name == "IPv6" {
					of = "ipv6.src=="
				}
				for _, filter := range []string{"arp.opcode==1 && arp.dst.proto_ipv4==192.168.7.2", "icmpv6.type==135 && icmpv6.nd.ns.target_address==fd07::2"} {
					if rows := netns.Fields(t, seen, of+f.local+" && "+filter, "frame.number"); len(rows) != want {
						t.Errorf("%s: %d packets, want %d\n%s", filter, len(rows), want, netns.Dump(seen))
					}
				}
				if rows := netns.Fields(t, seen, of+f.local+" && (icmp.type==8 || icmpv6.type==128)", "frame.number"); len(rows) != 2 {
					t.Errorf("%d pings seen, want 2\n%s", len(rows), netns.Dump(seen))
				}
				if mode == "off" {
					if is.Counts != nil || len(is.Neigh) != 0 {
						t.Errorf("%+v, %+v", is.Counts, is.Neigh)
					}
					stop(t, p)
					return
				}
				if is.Counts.ARP["answered"] != was.Counts.ARP["answered"]+1 || is.Counts.ND["answered"] != was.Counts.ND["answered"]+1 {
					t.Errorf("%+v, before %+v", is.Counts, was.Counts)
				}
				known := map[string]string{}
				for _, e := range is.Neigh {
					if known[e.IP] = e.MAC; e.VNI != 9 || e.Origin != "snooped" || e.State != "reachable" {
						t.Errorf("%+v", e)
					}
				}
				for ip, mac := range map[string]string{"192.168.7.1": a.MAC("vxs0"), "192.168.7.2": b.MAC("vx0"), "fd07::2": b.MAC("vx0")} {
					if known[ip] != mac {
						t.Errorf("%s at %q, want %q: %s", ip, known[ip], mac, fmt.Sprint(is.Neigh))
					}
				}
				stop(t, p)
			})
		}
	}
}
