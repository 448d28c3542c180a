package kernel

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A host moves from behind our VTEP to behind the kernel's and back. After one frame of
// its own everybody's traffic follows it, and none goes to the old place.
//
//	p ----+                                       +---- o
//	      br0 --- tap0: ours == vx0: kernel --- br0
//	x ----+                                       +---- x, later
//
// The VTEPs are on one link, or there is a router between them.
func TestHostMoves(t *testing.T) {
	overUnderlays(t, func(t *testing.T, under ourUnderlay) {
		t.Run("one link", func(t *testing.T) { testHostMoves(t, under, false) })
		t.Run("routed", func(t *testing.T) { testHostMoves(t, under, true) })
	})
}

func testHostMoves(t *testing.T, under ourUnderlay, routed bool) {
	fam := under.fam
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	p, o, x := n.Host("p"), n.Host("o"), n.Host("x")
	set := under.with(settings{})
	if routed {
		fam.far = map[bool]string{false: "10.0.1.2", true: "fd00:0:0:1::2"}[fam.v6]
		near, far := map[bool]string{false: "10.0.0.254", true: "fd00::fe"}[fam.v6], map[bool]string{false: "10.0.1.254", true: "fd00:0:0:1::fe"}[fam.v6]
		r := n.Router("r")
		n.Link(a, fam.near+fam.bits, r, near+fam.bits)
		n.Link(b, fam.far+fam.bits, r, far+fam.bits)
		a.Route("default", "via", near)
		b.Route("default", "via", far)
		r.Ready()
		if under.packet {
			set.packet.Gateway = netip.MustParseAddr(near)
		}
	} else {
		n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
	}
	for _, h := range []*netns.Host{a, b} {
		h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	}
	for _, h := range []*netns.Host{p, o, x} {
		h.Quiet()
	}
	_, ap := n.Link(p, "", a, "")
	_, bo := n.Link(o, "", b, "")
	left, ax := n.Link(x, "", a, "")
	right, bx := n.Link(x, "", b, "")

	ours := newNode(t, a, fam.near, set)
	vsi := ours.vsi(vni, fam.far)
	ours.tap(vni, a, "tap0", frame.MAC{})
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Flood: []string{fam.near}, Dev: "eth0"})
	a.Bridge("br0", "tap0", ap, ax)
	b.Bridge("br0", "vx0", bo, bx)
	for _, h := range []*netns.Host{a, b, p, o, x} {
		h.Ready()
	}
	a.Ping(fam.far, 1)

	const macP, macO, macX = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
	at := map[string]*netns.Capture{left: x.Capture(left, "ether proto 0x88b5"), right: x.Capture(right, "ether proto 0x88b5")}
	atP, atO := p.Capture("eth0", "ether proto 0x88b5"), o.Capture("eth0", "ether proto 0x88b5")
	number := 0
	// say sends a numbered frame and waits until it has arrived.
	say := func(h *netns.Host, dev, src, dst string, to ...*netns.Capture) string {
		number++
		text := fmt.Sprintf("frame %d.", number)
		h.Inject(dev, append(ethernet(dst, src, 0x88b5), text...))
		for _, c := range to {
			c.Want(1, func(p netns.Packet) bool { return !p.Out && bytes.Contains(p.Data, []byte(text)) })
		}
		return text
	}
	const all = "ff:ff:ff:ff:ff:ff"
	say(p, "eth0", macP, all, atO)
	say(o, "eth0", macO, all, atP)
	for i, place := range []string{left, right, left, right} {
		other := left
		if place == left {
			other = right
		}
		say(x, place, macX, all, atP, atO) // the one frame
		for range 3 {
			for _, text := range []string{say(p, "eth0", macP, macX, at[place]), say(o, "eth0", macO, macX, at[place])} {
				k := count(at[place], false, text)
				check.True(t, k == 1, "move %d: %q arrived %d times", i, text, k)
				k = count(at[other], false, text) + count(atP, false, text) + count(atO, false, text)
				check.True(t, k == 0, "move %d: %q went to %d wrong places", i, text, k)
			}
		}
		mac, _ := frame.ParseMAC(macX)
		d, ok := vsi.FDB().Lookup(mac)
		name := ours.Switch().Name(d)
		check.True(t, ok && (name == "tap0") == (place == left), "move %d: our FDB has the host at %q", i, name)
		// What decides is the kernel's bridge; its vxlan device keeps what it once learned.
		for dev, want := range map[string]bool{"vx0": place == left, bx: place == right} {
			got := slices.ContainsFunc(b.FDB(dev), func(e netns.FDBEntry) bool { return e.MAC == macX && e.Master == "br0" })
			check.True(t, got == want, "move %d: the kernel's bridge has the host on %s: %v", i, dev, got)
		}
	}
	moves := vsi.FDB().Stats().Moved
	check.True(t, moves == 3, "our FDB counts %d moves, want 3", moves)
}
