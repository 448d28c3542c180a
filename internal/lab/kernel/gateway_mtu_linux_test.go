package kernel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// tooLong is what ping says when its own host knows, which for IPv6 it says otherwise.
var tooLong = regexp.MustCompile(`message too long, mtu[=:] ?1450`)

// Hosts whose links take more than the tunnel between them, 1450 bytes, and a gateway on
// each node: it says so, or cuts what may be cut.
//
//	VM1 (1500) -- A === VNI 20, and back VNI 10 === B -- VM4 (1500)
//	VM2 (9000) --(G)                               (G)-- VM5 (9000)
func TestRoutedMTU(t *testing.T) {
	f := newFabric(t, 2)
	f.anycast("red", 10, 10)
	f.anycast("red", 20, 20)
	a, b := f.leaves[0], f.leaves[1]
	vm1, vm2 := a.host(10, 10, 1, 1500), a.host(10, 10, 2, 9000)
	vm5 := b.host(20, 20, 5, 9000)
	b.host(20, 20, 4, 1500)

	// Without DF, before anybody has heard of the path's MTU: from a host that cuts to 1500 itself, and from one that does not: 1430
	// bytes of payload are 1424 where more follow.
	for _, c := range []struct {
		vm   *netns.Host
		to   byte
		want []string
	}{
		{vm1, 4, []string{
			"fragment at 0, 1444 bytes", "fragment at 1424, 76 bytes",
			"fragment at 1480, 1444 bytes", "fragment at 2904, 76 bytes",
			"fragment at 2960, 68 bytes",
		}},
		{vm2, 5, []string{"fragment at 0, 1444 bytes", "fragment at 1424, 1444 bytes", "fragment at 2848, 180 bytes"}},
	} {
		c.vm.PingTTL(in4(20, c.to))
		w := f.watch()
		out := c.vm.Run("ping", "-n", "-M", "dont", "-c", "1", "-W", "2", "-s", "3000", in4(20, c.to))
		check.True(t, strings.Contains(out, "3008 bytes from ") && !strings.Contains(out, "wrong data"), "%s", out)
		var want []string
		for _, way := range []string{fmt.Sprintf("A>B 20 A>VM%d ", c.to), fmt.Sprintf("B>A 10 B>VM%d ", c.to-3)} {
			for _, s := range c.want {
				want = append(want, way+s+", ttl 63")
			}
		}
		// They may change places: what has to be cut is sent by another worker.
		got := w.steps()
		slices.Sort(got)
		slices.Sort(want)
		check.True(t, slices.Equal(got, want),
			"on the underlay\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}

	for _, fam := range []struct {
		name    string
		in      func(subnet, n byte) string
		headers int // of a ping
		told    string
		filter  string
		message []string
		want    string
	}{
		{"IPv4", in4, 28, "Frag needed and DF set (mtu = 1450)", "icmp.type == 3",
			[]string{"eth.src", "eth.dst", "icmp.code", "icmp.mtu", "icmp.checksum.status"}, "4 1450 1"},
		{"IPv6", in6, 48, "Packet too big: mtu=1450", "icmpv6.type == 2",
			[]string{"eth.src", "eth.dst", "icmpv6.code", "icmpv6.mtu", "icmpv6.checksum.status"}, "0 1450 1"},
	} {
		t.Run(fam.name, func(t *testing.T) {
			vm1.PingTTL(fam.in(20, 4))
			vm2.PingTTL(fam.in(20, 5))
			w := f.watch()
			link := vm1.Capture(vm1.Name, "icmp or icmp6")
			ping := func(length int) string {
				out, _ := vm1.Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "2", "-s", fmt.Sprint(length-fam.headers), fam.in(20, 4))
				return out
			}
			out, want := ping(1500), "From "+fam.in(10, gatewayNo)+" icmp_seq=1 "+fam.told
			check.True(t, strings.Contains(out, want), "1500 bytes: no %q in\n%s", want, out)
			out = ping(1451)
			check.True(t, tooLong.MatchString(out), "the host sends 1451 bytes:\n%s", out)
			out = ping(1450)
			check.True(t, strings.Contains(out, "1 received"), "1450 bytes:\n%s", out)
			w.want("A>B 20 A>VM4 ping 63", "B>A 10 B>VM1 pong 63")
			rows := netns.Fields(t, link.Stop(), fam.filter, fam.message...)
			for _, r := range rows {
				for i := range r {
					r[i], _, _ = strings.Cut(r[i], ",") // the rest is the quoted packet's
				}
			}
			want = fmt.Sprintf("[[%s %s %s]]", anycastMAC, hostMAC(10, 1), fam.want)
			check.Equal(t, "told", fmt.Sprint(rows), want)

			// What is above the tunnel's MTU would be seen, since nothing is left to a card.
			long := a.h.Capture("eth0", "greater 1515")
			r := vm2.IPerf(vm5, fam.in(20, 5), "-t", "2")
			t.Log("TCP from a link of 9000 bytes: ", r)
			check.True(t, r.Bytes >= 1<<20, "%d bytes in 2 s", r.Bytes)
			out = vm2.IP("route", "get", fam.in(20, 5))
			check.True(t, strings.Contains(out, " mtu 1450 "), "the host does not know the path's MTU: %s", out)
			got := long.Stop()
			check.True(t, len(got) == 0, "on the underlay\n%s", netns.Dump(got))
		})
	}
}
