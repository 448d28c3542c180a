package kernel

import (
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An entry lives by what is heard from its MAC: one that is only sent to ages out, and
// one that is heard stays. Linux 6.18 does the same.
func TestAgeing(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		t.Parallel() // it is mostly waiting for the kernel, which looks every 10 s
		testAgeing(t, fam)
	})
}

func testAgeing(t *testing.T, fam family) {
	n := netns.New(t)
	a, b, sender := n.Host("a"), n.Host("b"), n.Host("sender")
	sw := n.Switch("sw")
	addrs := fam.addresses(3)
	for i, h := range []*netns.Host{a, b, sender} {
		n.Plug(h, addrs[i]+fam.bits, sw)
		h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	}
	// Two VTEPs with the same settings, and a third that speaks to both.
	const ageing = 6 * time.Second // on a busy machine a round of the loop below takes seconds
	ours := newNode(t, a, addrs[0], settings{})
	vsi := ours.vsiWith(vni, vswitch.VSIConfig{Ageing: ageing}, vswitch.AttachConfig{}, addrs[2])
	ours.tap(vni, a, "tap0", frame.MAC{})
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: addrs[1], Flood: []string{addrs[2]}, Dev: "eth0", Args: []string{"ageing", "6"}})
	sender.VXLAN("vx0", netns.VXLAN{ID: vni, Local: addrs[2], Flood: addrs[:2], Dev: "eth0"})
	for _, h := range []*netns.Host{a, b, sender} {
		h.Ready()
	}
	sender.Ping(addrs[0], 1)
	sender.Ping(addrs[1], 1)

	const heard, silent, local = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
	speak := func(mac string) {
		sender.Inject("vx0", append(ethernet("ff:ff:ff:ff:ff:ff", mac, 0x88b5), "here I am"...))
	}
	here := func(mac string) (kernel, us bool) {
		m := check.Must(frame.ParseMAC(mac))(t)
		_, us = vsi.FDB().Lookup(m)
		return len(b.Peers("vx0", mac)) == 1, us
	}
	events := ours.Switch().Events()
	speak(heard)
	start := time.Now()
	speak(silent)
	a.Until("both are learned", func() bool {
		k1, u1 := here(heard)
		k2, u2 := here(silent)
		return k1 && u1 && k2 && u2
	})
	kernelGone, usGone := time.Duration(0), time.Duration(0)
	a.Until("the silent one is forgotten", func() bool {
		speak(heard)
		for _, to := range []string{heard, silent} {
			f := append(ethernet(to, local, 0x88b5), "anybody there?"...)
			a.Inject("tap0", f)
			b.Inject("vx0", f)
		}
		if k, u := here(heard); time.Since(start) > ageing && (!k || !u) {
			t.Fatalf("one that is heard is gone: kernel %v, ours %v", !k, !u)
		}
		k, u := here(silent)
		if !k && kernelGone == 0 {
			kernelGone = time.Since(start)
		}
		if !u && usGone == 0 {
			usGone = time.Since(start)
		}
		time.Sleep(50 * time.Millisecond)
		return !k && !u
	})
	t.Logf("forgotten after: the kernel %v, ours %v", kernelGone.Round(10*time.Millisecond), usGone.Round(10*time.Millisecond))
	// Not forgotten and learned anew a moment later, either.
	want := map[string]string{heard: "mac-learned", silent: "mac-learned mac-aged", local: "mac-learned"}
	ours.Close()
	for e, err := events.Next(t.Context()); err == nil; e, err = events.Next(t.Context()) {
		mac := e.MAC.String()
		if said, ok := want[mac]; ok {
			rest, ok := strings.CutPrefix(said, e.Kind.String())
			check.True(t, ok, "%v of %s, want %q", e.Kind, mac, said)
			want[mac] = strings.TrimSpace(rest)
		}
	}
	for mac, rest := range want {
		check.True(t, rest == "", "%s: no %s", mac, rest)
	}
	check.True(t, usGone >= ageing-time.Second, "forgotten after %v, ageing is %v", usGone, ageing)
}
