package underlay

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A routed network: hosts a and b with router r between them, IPv4 and IPv6.
func routed(t *testing.T) (a, r, b *netns.Host) {
	n := netns.New(t)
	a, r, b = n.Host("a"), n.Host("r"), n.Host("b")
	for _, h := range []*netns.Host{a, r, b} {
		h.Sysctl("net.ipv6.conf.default.accept_dad", "0") // or IPv6 is not usable for seconds
	}
	r.Sysctl("net.ipv4.ip_forward", "1")
	r.Sysctl("net.ipv6.conf.all.forwarding", "1")
	r.Sysctl("net.ipv4.icmp_ratelimit", "0")
	r.Sysctl("net.ipv4.icmp_msgs_per_sec", "100000")
	r.Sysctl("net.ipv6.icmp.ratelimit", "0")
	n.Link(a, "10.1.0.1/24,fd01::1/64", r, "10.1.0.254/24,fd01::254/64")
	n.Link(b, "10.2.0.2/24,fd02::2/64", r, "10.2.0.254/24,fd02::254/64")
	// The router notices within a second that a neighbour is gone, instead of a minute.
	for _, table := range []string{"arp_cache", "ndisc_cache"} {
		r.IP("ntable", "change", "name", table, "dev", "eth0",
			"base_reachable", "100", "delay_probe", "100", "retrans", "100")
	}
	a.Route("default", "via", "10.1.0.254")
	b.Route("default", "via", "10.2.0.254")
	a.Route("::/0", "via", "fd01::254")
	b.Route("::/0", "via", "fd02::254")
	reachable(t, a, "10.2.0.2")
	reachable(t, a, "fd02::2")
	return a, r, b
}

func reachable(t *testing.T, h *netns.Host, addr string) {
	t.Helper()
	fake.Until(t, "a way to "+addr, func() bool {
		return exec.Command("ip", "netns", "exec", h.NS, "ping", "-n", "-c", "1", "-W", "1", addr).Run() == nil
	})
}

// A router cannot pass on what is sent: the endpoint, the MTU and the start of the payload
// are told without anything else being sent, for every flow, whatever sockets are open.
func TestPathMTURouter(t *testing.T) {
	a, r, b := routed(t)
	b.MTU("eth0", 1400)
	r.MTU("eth1", 1400)
	for _, fam := range []struct {
		la, lb string
		fits   int
	}{{"10.1.0.1:4789", "10.2.0.2:4789", 1372}, {"[fd01::1]:4789", "[fd02::2]:4789", 1352}} {
		var ua, ub *UDP
		a.Do(func() { ua = listen(t, fam.la, nil) })
		b.Do(func() { ub = listen(t, fam.lb, nil) })
		eb := endpoint(t, ub.LocalAddr())
		var got reports
		ua.PathMTU(got.PathMTU)
		payload := string(pattern(fam.fits + 1))
		for _, kinds := range []string{"only with DF", "with and without DF, and runs"} {
			for flow := range 16 {
				send(t, ua, to(payload, uint16(flow<<12), eb))
				fake.Until(t, fmt.Sprintf("%s: %s: a report about flow %d", fam.la, kinds, flow), func() bool {
					all := got.Take()
					for _, x := range all {
						if x.To != eb || x.MTU != 1400 || len(x.Quoted) != 128 || !strings.HasPrefix(payload, x.Quoted) {
							t.Errorf("%s: %v, MTU %d, quoted %d bytes %q", fam.la, x.To, x.MTU, len(x.Quoted), x.Quoted)
						}
					}
					return len(all) > 0
				})
			}
			// What fits passes, as does what may be cut on the way.
			d, want := runOf(3*100, 100, 8, 1, eb)
			plain := to(payload, 1, eb)
			plain.DF = false
			send(t, ua, to(payload[1:], 1, eb), plain, d)
			if s := payloads(receive(t, ub, 2+len(want))); s[0] != payload[1:] || s[1] != payload {
				t.Errorf("%s: %d and %d bytes", fam.la, len(s[0]), len(s[1]))
			}
		}
		if st := ua.Stats(); st.Errors.TooBig != 32 || st.Lost() != 0 {
			t.Errorf("%s: %+v", fam.la, st)
		}
	}
}

// The interface itself takes less than is sent.
func TestPathMTUInterface(t *testing.T) {
	a, _, _ := routed(t)
	for _, fam := range []struct{ la, to string }{
		{"10.1.0.1:4789", "10.2.0.2:4789"}, {"[fd01::1]:4789", "[fd02::2]:4789"},
	} {
		a.MTU("eth0", 1500)
		var ua *UDP
		a.Do(func() { ua = listen(t, fam.la, nil) })
		eb := endpoint(t, netip.MustParseAddrPort(fam.to))
		var got reports
		ua.PathMTU(got.PathMTU)
		payload := string(pattern(1400))
		ds := []frame.Datagram{to(payload, 1, eb)}
		if send(t, ua, ds...); ds[0].Lost != 0 {
			t.Fatalf("%s: %v", fam.la, ds[0].Drop)
		}
		if ua.MTU() != 1500 {
			t.Errorf("%s: MTU %d", fam.la, ua.MTU())
		}
		a.MTU("eth0", 1300)
		if ua.MTU() != 1300 {
			t.Errorf("%s: MTU %d", fam.la, ua.MTU())
		}
		for range 3 {
			send(t, ua, ds...)
			if ds[0].Lost != 1 || ds[0].Drop != frame.TooBig {
				t.Errorf("%s: lost %d, %v", fam.la, ds[0].Lost, ds[0].Drop)
			}
		}
		var all []report
		fake.Until(t, "a report", func() bool { all = append(all, got.Take()...); return len(all) >= 3 })
		for _, x := range all {
			if x.To.Host() != eb.Host() || x.MTU != 1300 || x.Quoted != "" {
				t.Errorf("%s: %v, MTU %d, quoted %q", fam.la, x.To, x.MTU, x.Quoted)
			}
		}
		// One for each, or two when the watcher was faster than the Sender.
		if len(all) > 6 {
			t.Errorf("%s: %d reports", fam.la, len(all))
		}
	}
}
