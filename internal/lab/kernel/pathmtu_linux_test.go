package kernel

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A link on the way takes only 1400 bytes. The VTEP hears of it from the router, and
// its guest, behind a bridge, from the VTEP: the same from ours as from the kernel's
// with DF set.
//
//	guest -- br0 -- VTEP ---- 1500 ---- router ---- 1400 ---- kernel's VTEP
func TestPathMTU(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		kernel, ours := newPath(t, fam, false), newPath(t, fam, true)
		for _, in := range []struct {
			name, to, filter string
			icmp             []string
		}{
			{"IPv4", "192.168.7.2", "icmp.type == 3", []string{"icmp.type", "icmp.code", "icmp.mtu", "icmp.checksum.status", "ip.checksum.status", "ip.ttl", "ip.src", "ip.dst"}},
			{"IPv6", "fd07::2", "icmpv6.type == 2", []string{"icmpv6.type", "icmpv6.code", "icmpv6.mtu", "icmpv6.checksum.status", "ipv6.src", "ipv6.dst"}},
		} {
			want := 1400 - 50
			if fam.v6 {
				want = 1400 - 70
			}
			k, u := kernel.narrows(t, in.to, in.filter, in.icmp), ours.narrows(t, in.to, in.filter, in.icmp)
			if len(k.message) != 1 || fmt.Sprint(k.message) != fmt.Sprint(u.message) {
				t.Errorf("%s: the kernel says\n%v, ours\n%v", in.name, k.message, u.message)
			} else {
				t.Logf("%s: %v", in.name, k.message[0])
			}
			check.True(t, k.mtu == want && u.mtu == want,
				"%s: with the kernel's VTEP the guest sends %d bytes, with ours %d, want %d", in.name, k.mtu, u.mtu, want)
		}
	})
}

// path is a guest behind one of the VTEPs.
type path struct {
	guest *netns.Host
	seen  *netns.Capture
}

func newPath(t *testing.T, fam family, ours bool) path {
	t.Helper()
	n := netns.New(t)
	g, a, r, b := n.Host("g"), n.Host("a"), n.Router("r"), n.Host("b")
	left, right := [2]string{"10.0.1.2", "10.0.1.1"}, [2]string{"10.0.2.1", "10.0.2.2"}
	if fam.v6 {
		left, right = [2]string{"fd01::2", "fd01::1"}, [2]string{"fd02::1", "fd02::2"}
	}
	n.Link(a, left[0]+fam.bits, r, left[1]+fam.bits)
	rb, br := n.Link(r, right[0]+fam.bits, b, right[1]+fam.bits)
	r.MTU(rb, 1400)
	b.MTU(br, 1400)
	a.Route("default", "via", left[1])
	b.Route("default", "via", right[0])
	_, ag := n.Link(g, "192.168.7.1/24,fd07::1/64", a, "")
	g.MTU("eth0", 1430)
	g.TxOff("eth0")
	a.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")

	dev := "vx0"
	if ours {
		dev = "tap0"
		node := newNode(t, a, left[0], settings{})
		node.vsi(vni, right[1])
		node.tap(vni, a, dev, frame.MAC{})
	} else {
		a.VXLAN(dev, netns.VXLAN{ID: vni, Local: left[0], Remote: right[1], Dev: "eth0", Args: []string{"df", "set"}})
	}
	a.Bridge("br0", dev, ag)
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: right[1], Remote: left[0], Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
	for _, h := range []*netns.Host{g, a, r, b} {
		h.Ready()
	}
	for _, to := range []string{"192.168.7.2", "fd07::2"} {
		g.Until("an answer from "+to, func() bool { return answers(t, g, to) })
	}
	return path{g, g.Capture("eth0", "icmp or icmp6")}
}

// narrowed is what a guest has heard.
type narrowed struct {
	mtu     int        // what it now sends at most
	message [][]string // the first message, by field
}

var cachedMTU = regexp.MustCompile(` mtu (\d+)`)

// narrows sends packets as long as the guest's link takes until it is told better.
func (p path) narrows(t *testing.T, to, filter string, fields []string) (r narrowed) {
	t.Helper()
	size := 1430 - 28
	if filter != "icmp.type == 3" {
		size = 1430 - 48
	}
	for end := time.Now().Add(10 * time.Second); ; {
		p.guest.Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "0.2", "-s", fmt.Sprint(size), to)
		if m := cachedMTU.FindStringSubmatch(p.guest.IP("route", "get", to)); m != nil {
			fmt.Sscan(m[1], &r.mtu)
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the guest has heard nothing\n%s", netns.Tshark(t, p.seen.Seen()))
		}
	}
	// What it now sends arrives.
	p.guest.Run("ping", "-n", "-M", "do", "-c", "2", "-i", "0.1", "-W", "2", "-s", fmt.Sprint(r.mtu-(1430-size)), to)
	if rows := netns.Fields(t, p.seen.Seen(), filter, fields...); len(rows) > 0 {
		r.message = rows[:1]
	}
	return r
}
