package main

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The kernel's SRv6 with one segment and no header for it (encap.red, RFC 8986, section 5.2)
// is IP in IPv6 (RFC 2473): ping and TCP both ways, IPv4 and IPv6 inside.
func TestKernelSRv6(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sid, local, remote, bits, action, to, any string }{
		{"IPv4 inside", "fd02::2", "192.168.7.1", "192.168.7.2", "/32", "End.DX4", "nh4", "0.0.0.0"},
		{"IPv6 inside", "fd02::3", "fd07::1", "fd07::2", "/128", "End.DT6", "table", "255"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, "fd00::1/64", b, "fd00::9/64")
			for _, s := range []string{"net.ipv6.conf.all.forwarding", "net.ipv4.ip_forward", "net.ipv6.conf.all.seg6_enabled", "net.ipv6.conf.eth0.seg6_enabled"} {
				b.Sysctl(s, "1")
			}
			a.IP("-6", "route", "add", "fd02::/64", "via", "fd00::9")
			p := start(t, a, "ready dev=vxs0 type=ipip local=fd00::1 mtu=1460", "-type", "ipip", "-local", "fd00::1", "-remote", c.sid)
			a.Addr("vxs0", c.local+map[string]string{"/32": "/24", "/128": "/64"}[c.bits])
			b.Addr("lo", c.remote+c.bits)
			b.IP("sr", "tunsrc", "set", c.sid)
			b.Route(c.local+c.bits, "encap", "seg6", "mode", "encap.red", "segs", "fd00::1", "dev", "eth0")
			b.Route(c.sid+"/128", "encap", "seg6local", "action", c.action, c.to, c.any, "dev", "eth0")
			// The first answer waits for a neighbour, of which Linux (6.18) says beside that it is unreachable.
			a.Until("b knows its neighbour", func() bool {
				_, err := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", c.remote)
				return err == nil
			})
			a.Ping(c.remote, 5)
			b.Run("ping", "-n", "-c", "3", "-i", "0.1", "-W", "2", "-I", c.remote, c.local)
			for _, args := range []string{"-t 1", "-t 1 -R"} {
				var r netns.Throughput
				for tries := 0; tries < 3 && r.BitsPerSecond < 5e6; tries++ { // once may be the machine's fault
					r = a.IPerf(b, c.remote, strings.Fields(args)...)
				}
				t.Logf("TCP %s: %v", args, r)
				if r.BitsPerSecond < 5e6 {
					t.Error("TCP hardly moves")
				}
			}
			last := stop(t, p)
			last.wantDrops(t, "port-full")
		})
	}
}
