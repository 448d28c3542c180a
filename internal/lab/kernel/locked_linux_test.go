package kernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A locked port lets pass what that of the kernel's bridge does ("bridge link set dev X
// locked on"). One difference, by intent: what was learned at the port before it was locked
// may send on there in the kernel's (Linux 6.18), and not in ours, where only entries count
// that somebody made.
func TestLockedPort(t *testing.T) {
	n := netns.New(t)
	type bridge struct {
		in, out   *netns.Host // behind the locked port, and the other
		inA, outA string      // their devices
		add       func(mac string, locked bool)
		lock      func()
	}
	build := func(name string) (mid *netns.Host, b *bridge, p, q string) {
		mid = n.Host(name)
		b = &bridge{in: n.Host(name + "-in"), out: n.Host(name + "-out")}
		for _, h := range []*netns.Host{mid, b.in, b.out} {
			h.Quiet()
		}
		p, b.inA = n.Link(mid, "", b.in, "")
		q, b.outA = n.Link(mid, "", b.out, "")
		return mid, b, p, q
	}
	k, kernels, kp, kq := build("kernel")
	k.Bridge("br0", kp, kq)
	kernels.lock = func() { k.Run("bridge", "link", "set", "dev", kp, "locked", "on", "learning", "off") }
	kernels.add = func(mac string, locked bool) {
		k.Run("bridge", "fdb", "add", mac, "dev", map[bool]string{true: kp, false: kq}[locked], "master", "static")
	}

	u, ours, up, uq := build("ours")
	sw := running(t, nil).Switch()
	v := check.Must(sw.VSI(1, nil))(t)
	var at [2]*vswitch.Attachment
	for i, dev := range []string{up, uq} {
		p := check.Must(port.OpenPacket(dev, &port.PacketConfig{Namespace: u.NS, Promiscuous: true}))(t)
		at[i] = check.Must(v.Attach(p, 0))(t)
	}
	ours.lock = func() {
		check.OK(t, at[0].Configure(vswitch.AttachConfig{Locked: true}))
	}
	ours.add = func(mac string, locked bool) {
		m, _ := frame.ParseMAC(mac)
		check.OK(t, v.FDB().Set(m, at[map[bool]int{true: 0, false: 1}[locked]].Dest(0), fdb.Static))
	}

	const (
		all                        = "ff:ff:ff:ff:ff:ff"
		here, there, before, heard = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03", "02:00:00:00:00:04"
		nobody, mark               = "02:00:00:00:00:05", "02:00:00:00:00:06"
	)
	say := func(dst, src string) []byte { return append(ethernet(dst, src, 0x88b5), make([]byte, 46)...) }
	got := map[*bridge][]string{}
	for _, b := range []*bridge{kernels, ours} {
		in, out := b.in.Capture(b.inA, "ether proto 0x88b5"), b.out.Capture(b.outA, "ether proto 0x88b5")
		arrived := func(c *netns.Capture, text string) {
			c.Want(1, func(p netns.Packet) bool { return !p.Out && strings.HasPrefix(string(p.Data), text) })
		}
		b.in.Inject(b.inA, say(all, before))
		arrived(out, string(say(all, before)[:12]))
		b.out.Inject(b.outA, say(all, heard))
		arrived(in, string(say(all, heard)[:12]))
		b.add(here, true)
		b.add(there, false)
		b.add(mark, true)
		b.lock()
		from := len(out.Seen())
		b.in.Inject(b.inA, say(all, here), say(heard, here), say(all, there), say(heard, there), say(all, heard), say(all, nobody), say(heard, nobody), say(all, before))
		b.in.Inject(b.inA, say(all, mark))
		arrived(out, string(say(all, mark)[:12]))
		for _, p := range out.Seen()[from:] {
			if !p.Out {
				got[b] = append(got[b], frame.MAC(p.Data[6:]).String()+" > "+frame.MAC(p.Data).String())
			}
		}
		b.out.Inject(b.outA, say(here, heard), say(nobody, heard))
		arrived(in, string(say(here, heard)[:12]))
		arrived(in, string(say(nobody, heard)[:12]))
	}
	was := before + " > " + all
	check.True(t, slices.Contains(got[kernels], was),
		"the kernel drops what it has learned before, too: this is no difference any more")
	want := slices.DeleteFunc(got[kernels], func(s string) bool { return s == was })
	check.True(t, slices.Equal(got[ours], want) && len(want) == 3, "ours lets pass\n%q, the kernel's\n%q", got[ours], want)
	d := sw.Stats().Ports[1].RxDrops[frame.Locked]
	check.True(t, d == 6, "%d drops", d)
}
