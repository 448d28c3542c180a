package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// mtuOf pings with DF and returns the MTU that an ICMP error from addr names, 0 if there
// was an answer instead.
func mtuOf(t *testing.T, h *netns.Host, addr string, size int) int {
	t.Helper()
	out, err := h.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(size), addr)
	for line := range strings.Lines(out) {
		for _, form := range []string{
			"From " + addr + " icmp_seq=1 Frag needed and DF set (mtu = %d)",
			"From " + addr + " icmp_seq=1 Packet too big: mtu=%d",
		} {
			var mtu int
			if _, err := fmt.Sscanf(line, form, &mtu); err == nil {
				return mtu
			}
		}
	}
	if err != nil {
		t.Fatalf("neither an answer nor an error of ICMP: %v", err)
	}
	return 0
}

// A guest behind a bridge, whose MTU is that of its Ethernet, learns from ICMP errors
// what the tunnel takes: TCP works, the first oversize packet is answered.
func TestOversize(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			n := netns.New(t)
			a, b, guest := n.Host("a"), n.Host("b"), n.Host("guest")
			n.Link(a, f.local+f.bits, b, f.remote+f.bits)
			inside, _ := n.Link(a, "", guest, "192.168.7.1/24,fd07::1/64")
			f.kernel(b, netns.VXLAN{Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
			p := f.start(t, a, 1500, "-mtu 1500")
			a.Bridge("br0", inside, "vxs0")
			guest.Ping("192.168.7.2", 2)
			guest.Ping("fd07::2", 2)

			// Headers of IP and ICMP: 28 and 48 bytes.
			if got := mtuOf(t, guest, "192.168.7.2", f.mtu-28); got != 0 {
				t.Errorf("%d bytes: an MTU of %d", f.mtu, got)
			}
			if got := mtuOf(t, guest, "192.168.7.2", f.mtu-28+1); got != f.mtu {
				t.Errorf("%d bytes: an MTU of %d, want %d", f.mtu+1, got, f.mtu)
			}
			if got := mtuOf(t, guest, "fd07::2", f.mtu-48); got != 0 {
				t.Errorf("%d bytes of IPv6: an MTU of %d", f.mtu, got)
			}
			if got := mtuOf(t, guest, "fd07::2", f.mtu-48+1); got != f.mtu {
				t.Errorf("%d bytes of IPv6: an MTU of %d, want %d", f.mtu+1, got, f.mtu)
			}
			if l := ask(t, p); l.TooBig.Sent4 != 1 || l.TooBig.Sent6 != 1 {
				t.Errorf("too big: %+v, want one answer of each kind", l.TooBig)
			}
			if out := guest.IP("route", "get", "192.168.7.2"); !strings.Contains(out, fmt.Sprintf("mtu %d", f.mtu)) {
				t.Errorf("the guest did not believe it: %s", out)
			}
			// Without DF the guest would rely on routers; a bridge is none.
			guest.IP("route", "flush", "cache")
			l := ask(t, p)
			guest.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "-M", "dont", "-s", fmt.Sprint(f.mtu-28+1), "192.168.7.2")
			if now := ask(t, p); now.Drops["too-big"] != l.Drops["too-big"]+1 {
				t.Errorf("too-big %d, before %d", now.Drops["too-big"], l.Drops["too-big"])
			}
			throughput(t, guest, b, "192.168.7.2")
			stop(t, p)
		})
	}
}

// A link on the way to the peer is narrower than ours: the router's error about the
// tunnel packet becomes, for the next packet, one about the packet inside.
func TestPathMTU(t *testing.T) {
	t.Parallel()
	for _, f := range []family{
		{"IPv4", "10.0.1.1", "10.0.2.2", "/24", "%s", 1400 - 50},
		{"IPv6", "fd01::1", "fd02::2", "/64", "[%s]", 1400 - 70},
	} {
		t.Run(f.name, func(t *testing.T) {
			n := netns.New(t)
			a, r, b := n.Host("a"), n.Router("r"), n.Host("b")
			near, far := "10.0.1.9", "10.0.2.9"
			if f.name == "IPv6" {
				near, far = "fd01::9", "fd02::9"
			}
			n.Link(a, f.local+f.bits, r, near+f.bits)
			there, here := n.Link(r, far+f.bits, b, f.remote+f.bits)
			r.MTU(there, 1400)
			b.MTU(here, 1400)
			a.IP("route", "add", "default", "via", near)
			b.IP("route", "add", "default", "via", far)
			f.kernel(b, netns.VXLAN{})
			ours := 1450
			if f.name == "IPv6" {
				ours = 1430
			}
			p := f.start(t, a, ours, "")
			a.Addr("vxs0", "192.168.7.1/24")
			a.Ping("192.168.7.2", 2)

			// The first is lost on the way; the router's error arrives with one of the next.
			got := 0
			for end := time.Now().Add(10 * time.Second); got == 0 && time.Now().Before(end); {
				out, _ := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.2", "-M", "do", "-s", fmt.Sprint(f.mtu-28+1), "192.168.7.2")
				for line := range strings.Lines(out) {
					fmt.Sscanf(line, "From 192.168.7.2 icmp_seq=1 Frag needed and DF set (mtu = %d)", &got)
				}
			}
			if got != f.mtu {
				t.Errorf("an MTU of %d, want %d", got, f.mtu)
			}
			if got := mtuOf(t, a, "192.168.7.2", f.mtu-28); got != 0 {
				t.Errorf("%d bytes: an MTU of %d", f.mtu, got)
			}
			stop(t, p)
		})
	}
}
