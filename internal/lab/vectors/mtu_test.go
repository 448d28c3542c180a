package vectors

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// bigRows are packets that are longer than their tunnel takes.
var bigRows = slices.Concat(overheadRows(), answerRows(), silentRows(), []row{
	{id: "9.size", name: "IPv4: 576 bytes", wire: func(l *lab) {
		h, _ := l.narrow(1500)
		l.told(h, ip4(rmac(1), h.MAC, 1500, udp4), l.inner(1500))
	}},
	{id: "9.size", name: "IPv4: all of a short packet", local: func(l *lab) {
		a, b := l.pipes(414)
		in := ip4(b.MAC, a.MAC, 401, udp4)
		a.Send(in)
		a.Want(answer4(in, 400, 372)) // 400 bytes in all
	}},
	{id: "9.size", name: "IPv6: 1280 bytes", wire: func(l *lab) {
		h, _ := l.narrow(1500)
		l.told(h, ip6(rmac(1), h.MAC, 1500, udp6), l.inner(1500))
	}},
	{id: "9.default", name: "nothing set", wire: func(l *lab) {
		h, _ := l.narrow(1500)
		four, six := ip4(rmac(1), h.MAC, 1500, udp4), ip6(rmac(1), h.MAC, 1500, udp6)
		h.Send(four, six)
		h.Want(answer(four, l.inner(1500)), answer(six, l.inner(1500)))
		l.clean()
	}},
	{id: "9.default", name: "told otherwise", wire: func(l *lab) {
		h, _ := l.narrow(1500, &vswitch.VSIConfig{Slots: vswitch.Slots{TooBig: vswitch.NoTooBig{}}})
		h.Send(ip4(rmac(1), h.MAC, 1500, udp4), ip6(rmac(1), h.MAC, 1500, udp6))
		l.dropped("too-big", "too-big")
	}},
	{id: "9.flooded", name: "unknown unicast", wire: func(l *lab) {
		h, f := l.narrow(1500)
		o := l.jumbo()
		in := ip4(nobody, h.MAC, l.inner(1500)+1, udp4)
		l.told(h, in, l.inner(1500))
		o.Want(in)
		f.want()
	}},
	{id: "9.back", name: "through a tunnel, to the peer it came from", wire: func(l *lab) {
		l.bigger(9000)
		l.start(floods{2, 3})
		f, _, h := l.far(2), l.far(3), l.host()
		h.Send(eth(frame.Broadcast, h.MAC, "here"))
		l.forget()
		in := ip4(h.MAC, rmac(1), 1501, udp4)
		f.send(vx(vni, in))
		f.want(vx(vni, answer(in, 1500)))
		l.quiet()
	}},
	{id: "9.back", name: "on a trunk, in its VLAN", local: func(l *lab) {
		l.telling()
		a, b := l.HostWith(vni, 10, vswitch.AttachConfig{}), l.pipe(514)
		b.Send(eth(frame.Broadcast, b.MAC, "here"))
		a.Got()
		in := ip4(b.MAC, a.MAC, 1500, udp4)
		a.Send(mem.Tagged(10, in))
		a.Want(mem.Tagged(10, answer4(in, 500, 472)))
		b.Want()
	}},
	{id: "9.rate", name: "one sender", wire: func(l *lab) {
		h, f := l.narrow(1500, &vswitch.Config{TooBig: vswitch.TooBigConfig{PerSender: 2}})
		in := ip4(rmac(1), h.MAC, 1500, udp4)
		want := answer(in, l.inner(1500))
		h.Send(in, in, in, in)
		h.Want(want, want)
		l.drops(map[string]uint64{"too-big": 2})
		l.pass(2 * tick)
		h.Send(in)
		h.Want(want)
		f.want()
	}},
	{id: "9.rate", name: "all at one port", wire: func(l *lab) {
		h, _ := l.narrow(1500, &vswitch.Config{TooBig: vswitch.TooBigConfig{Total: 6}})
		n := 0
		for i := range 5 {
			in := ip4(rmac(1), h.MAC, 1500, udp4, func(ip []byte) { ip[15] = byte(i + 1) })
			h.Send(in)
			n += len(h.Got())
		}
		l.check(n == 3, "%d answers, want 3", n)
		l.drops(map[string]uint64{"too-big": 2})
	}},
	{id: "9.superframe", name: "segments that fit", wire: func(l *lab) { l.superframe(l.inner(1500), false) }},
	{id: "9.superframe", name: "segments that do not", wire: func(l *lab) { l.superframe(l.inner(1500)+1, true) }},
})

// overheadRows have a packet that just fits and arrives in an underlay packet of
// exactly its MTU, and one a byte longer whose sender hears what fits.
func overheadRows() (rows []row) {
	for _, c := range []struct{ underlay, over4, over6 int }{{1500, 1450, 1430}, {9000, 8950, 8930}} {
		fits := func(l *lab) int {
			return pick(l.ip6, c.over4, c.over6)
		}
		rows = append(rows, row{id: "9.overhead", name: fmt.Sprint("underlay ", c.underlay), wire: func(l *lab) {
			h, f := l.narrow(c.underlay)
			n := fits(l)
			in := ip4(rmac(1), h.MAC, n, udp4)
			l.passes(h, in, f)
			h.Want()
			in = ip4(rmac(1), h.MAC, n+1, udp4)
			l.told(h, in, n)
			l.told(h, ip6(rmac(1), h.MAC, n+1, udp6), n)
			l.clean()
		}}, row{id: "9.overhead-tag", name: fmt.Sprint("underlay ", c.underlay), wire: func(l *lab) {
			h, f := l.narrow(c.underlay)
			l.must(h.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: tagging(7)}}))
			n := fits(l) - 4
			in := ip4(rmac(1), h.MAC, n, udp4)
			h.Send(in)
			f.want(vx(vni, mem.Tagged(7, in)))
			in = ip4(rmac(1), h.MAC, n+1, udp4)
			h.Send(in)
			h.Want(mem.Tagged(7, answer(in, n)))
			l.clean()
		}})
	}
	return rows
}

// answerRows are kinds of packets whose sender is told.
func answerRows() (rows []row) {
	for _, c := range []struct {
		id, name string
		is6      bool
		change   func(ip []byte)
	}{
		{"9.df", "UDP", false, udp4},
		{"9.df", "ICMP echo", false, func(ip []byte) { udp4(ip); ip[9], ip[20] = 1, 8 }},
		{"9.df", "first fragment", false, func(ip []byte) { udp4(ip); ip[6] |= 0x20 }},
		{"9.df", "options", false, func(ip []byte) { udp4(ip); ip[0] = 0x46; copy(ip[20:], []byte{1, 1, 1, 0}) }},
		{"9.ipv6", "UDP", true, udp6},
		{"9.ipv6", "ICMPv6 echo", true, func(ip []byte) { udp6(ip); ip[6], ip[40] = 58, 128 }},
		{"9.ipv6", "first fragment", true, func(ip []byte) { udp6(ip); ip[6] = 44; copy(ip[40:], []byte{17, 0, 0, 1}) }},
		{"9.ipv6", "options", true, func(ip []byte) { udp6(ip); ip[6] = 60; copy(ip[40:], []byte{17, 0}) }},
	} {
		rows = append(rows, row{id: c.id, name: c.name, wire: func(l *lab) {
			h, _ := l.narrow(1500)
			n := l.inner(1500)
			if c.is6 {
				l.told(h, ip6(rmac(1), h.MAC, n+1, c.change), n)
			} else {
				l.told(h, ip4(rmac(1), h.MAC, n+1, c.change), n)
			}
			l.clean()
		}})
	}
	return rows
}

// silentRows are packets that are dropped, and nobody is told.
func silentRows() (rows []row) {
	silent := func(id, name string, in func(dst, src frame.MAC) []byte) {
		rows = append(rows, row{id: id, name: name, wire: func(l *lab) {
			h, _ := l.narrow(1500)
			h.Send(in(rmac(1), h.MAC))
			l.dropped("too-big")
		}})
	}
	v4 := func(id, name string, change func(ip []byte)) {
		silent(id, name, func(dst, src frame.MAC) []byte { return ip4(dst, src, 1500, udp4, change) })
	}
	v6 := func(id, name string, change func(ip []byte)) {
		silent(id, name, func(dst, src frame.MAC) []byte { return ip6(dst, src, 1500, udp6, change) })
	}
	v4("9.no-df", "IPv4", func(ip []byte) { ip[6] = 0 })
	silent("9.no-ip", "another protocol", func(dst, src frame.MAC) []byte { return eth(dst, src, string(make([]byte, 1500))) })
	for _, typ := range []byte{3, 4, 5, 11, 12} {
		v4("9.icmp-error", fmt.Sprint("ICMP type ", typ), func(ip []byte) { ip[9], ip[20] = 1, typ })
	}
	for _, typ := range []byte{1, 2, 3, 4, 100, 127, 137} {
		v6("9.icmp-error", fmt.Sprint("ICMPv6 type ", typ), func(ip []byte) { ip[6], ip[40] = 58, typ })
	}
	v6("9.icmp-error", "behind options", func(ip []byte) { ip[6] = 0; copy(ip[40:], []byte{58, 0, 0, 0, 0, 0, 0, 0, 3}) })
	v4("9.fragment", "IPv4", func(ip []byte) { ip[7] = 185 })
	v6("9.fragment", "IPv6", func(ip []byte) { ip[6] = 44; copy(ip[40:], []byte{17, 0, 5, 0xc8}) })
	v4("9.group", "IPv4 group under a unicast MAC", func(ip []byte) { copy(ip[16:], []byte{239, 1, 2, 3}) })
	v6("9.group", "IPv6 group under a unicast MAC", func(ip []byte) { copy(ip[24:], []byte{0xff, 2}) })
	for _, dst := range []frame.MAC{frame.Broadcast, mcast} {
		silent("9.group", fmt.Sprint("to ", dst), func(_, src frame.MAC) []byte { return ip4(dst, src, 1500, udp4) })
	}
	v4("9.source", "0.0.0.0", func(ip []byte) { copy(ip[12:], []byte{0, 0, 0, 0}) })
	v4("9.source", "loopback", func(ip []byte) { ip[12] = 127 })
	v4("9.source", "multicast", func(ip []byte) { ip[12] = 224 })
	v6("9.source", "::", func(ip []byte) { copy(ip[8:24], make([]byte, 16)) })
	v6("9.source", "multicast, IPv6", func(ip []byte) { ip[8] = 0xff })
	return rows
}

// tick is the switch's clock.
const tick = 1e9

// telling is bridge, of a switch that answers without a tunnel too.
func (l *lab) telling() {
	l.T.Helper()
	l.bridge()
	l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{TooBig: l.TooBig()}}))
}

// bigger gives the underlay another MTU, before anything is on it.
func (l *lab) bigger(mtu int) {
	l.Net.Close()
	l.Net = memory.NewNetwork(&memory.NetworkConfig{MTU: mtu})
}

// inner is the longest IP packet in VXLAN over this family.
func (l *lab) inner(underlay int) int {
	return pick(l.ip6, underlay-50, underlay-70)
}

// narrow starts a switch with a jumbo host, and behind the tunnel a far end where rmac(1) is.
func (l *lab) narrow(mtu int, with ...any) (*mem.Host, *far) {
	l.T.Helper()
	l.bigger(mtu)
	l.start(append(with, floods{2})...)
	h, f := l.jumbo(), l.far(2)
	f.send(vx(vni, eth(frame.Broadcast, rmac(1), "here")))
	h.Got()
	return h, f
}

// jumbo returns a host whose port takes long frames.
func (l *lab) jumbo() *mem.Host { l.T.Helper(); return l.pipe(9216) }

func (l *lab) pipe(mtu int) *mem.Host {
	l.T.Helper()
	n := byte(len(l.seg.Attachments()) + 1)
	h := &mem.Host{Pipe: port.NewPipe(&port.PipeConfig{MTU: mtu}), Node: l.Node, VNI: vni, MAC: frame.MAC{2, 0xcc, 0, 0, 0, n}}
	h.At = check.Must(l.seg.Attach(h.Pipe, 0))(l.T)
	return h
}

// pipes starts a switch without a tunnel, that answers, with two hosts that it knows,
// the second one's port of this MTU.
func (l *lab) pipes(mtu int) (a, b *mem.Host) {
	l.T.Helper()
	l.telling()
	a, b = l.jumbo(), l.pipe(mtu)
	b.Send(eth(frame.Broadcast, b.MAC, "here"))
	a.Got()
	return a, b
}

// superframe sends one whose segments are IP packets of n bytes.
func (l *lab) superframe(n int, answered bool) {
	h, _ := l.narrow(1500)
	l.must(h.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: segments(n - 28)}}))
	in := ip4(rmac(1), h.MAC, 9000, udp4)
	h.Send(in)
	if answered {
		h.Want(answer(in, l.inner(1500)))
		l.clean()
		return
	}
	h.Want()
	// How it is cut is the VTEP's matter.
	p := l.Stats().Ports[h.At.Dest(0).Port()]
	l.check(p.Forwarded == 1 && p.Replied == 0 && p.RxDrops.Total() == 0, "%+v", p)
}

// segments makes UDP superframes of frames, to be cut into this many bytes.
func segments(size int) vswitch.Stage {
	return stage(func(f *frame.Frame) frame.Verdict {
		at := uint16(f.Headroom())
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOUDP, Size: uint16(size), CsumStart: at + 34, CsumOffset: 6, DataStart: at + 42}
		return frame.Continue
	})
}

// tagging puts a VLAN tag into frames: a customer's own, inside the network's.
func tagging(vid byte) vswitch.Stage {
	return stage(func(f *frame.Frame) frame.Verdict {
		b := f.Push(4)
		copy(b, b[4:16])
		copy(b[12:], []byte{0x81, 0, 0, vid})
		return frame.Continue
	})
}

// told has a host send a frame that is too long, and hear what fits.
func (l *lab) told(h *mem.Host, in []byte, mtu int) {
	l.T.Helper()
	h.Send(in)
	h.Want(answer(in, mtu))
}

// tunnelOverheadRows are overheadRows for other tunnels: a packet that just fits, and one a
// byte longer whose sender hears what fits.
func tunnelOverheadRows() (rows []row) {
	for _, c := range []struct {
		id           string
		t            encap.Type
		mtu          int
		over4, over6 int
	}{
		{"9.overhead-gpe-ip", encap.TypeGPE, 1500, 1464, 1444},
		{"9.overhead-gpe-ip", encap.TypeGPE, 9000, 8964, 8944},
		{"9.overhead-ipip", encap.TypeIPIP, 1500, 1480, 1460},
		{"9.overhead-ipip", encap.TypeIPIP, 9000, 8980, 8960},
	} {
		rows = append(rows, inside(c.id, fmt.Sprint("underlay ", c.mtu), func(l *lab, v6 bool) {
			l.bigger(c.mtu)
			j := l.joined(vtep.Config{Type: c.t})
			fits := pick(l.ip6, c.over4, c.over6)
			p := j.packet(v6).long(fits)
			j.send(p.bytes())
			j.f.want(j.wrap(p.bytes()))
			j.want()
			p = p.long(fits + 1)
			j.send(p.bytes())
			j.want(tooLong.about(p, p.dst, fits))
			l.clean()
		})...)
	}
	rows = append(rows, forIP("9.back", "through a tunnel", func(l *lab, t encap.Type, v6 bool) {
		j := l.joined(vtep.Config{Type: t})
		j.mtu = 1300
		p := j.back(v6).long(1301)
		j.f.send(j.wrap(p.bytes()))
		j.f.want(j.wrap(tooLong.about(p, p.dst, 1300)))
		l.clean()
	})...)
	for _, c := range []struct{ mtu, over4, over6 int }{{1500, 1450, 1430}, {9000, 8950, 8930}} {
		rows = append(rows, row{id: "9.overhead-gpe", name: fmt.Sprint("underlay ", c.mtu), wire: func(l *lab) {
			l.bigger(c.mtu)
			l.start(gpeVTEP)
			h, f := l.jumbo(), l.far(2)
			f.send(gpe(vni, 3, eth(frame.Broadcast, rmac(1), "here")))
			h.Got()
			n := pick(l.ip6, c.over4, c.over6)
			in := ip4(rmac(1), h.MAC, n, udp4)
			h.Send(in)
			f.want(gpe(vni, 3, in))
			h.Want()
			in = ip4(rmac(1), h.MAC, n+1, udp4)
			l.told(h, in, n)
			l.told(h, ip6(rmac(1), h.MAC, n+1, udp6), n)
			l.clean()
		}})
	}
	return rows
}
