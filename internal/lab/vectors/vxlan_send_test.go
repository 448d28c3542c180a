package vectors

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

var sendRows = []row{
	{id: "1.golden", name: "VNI 4100", wire: func(l *lab) {
		l.start()
		l.join(4100)
		l.must(l.VTEP.SetFlood(4100, l.at(2)))
		h, f := l.Host(4100), l.far(2)
		b := eth(frame.Broadcast, h.MAC, "x")
		h.Send(b)
		f.want(append([]byte{0x08, 0, 0, 0, 0, 0x10, 0x04, 0}, b...))
	}},
	{id: "1.flags", name: "to one peer and to all", wire: func(l *lab) {
		h, f := l.pair(floods{2})
		l.passes(f, in1, h)
		for _, b := range [][]byte{eth(rmac(1), h.MAC, "known"), eth(frame.Broadcast, h.MAC, "all")} {
			l.passes(h, b, f)
		}
	}},
	{id: "1.reserved-sent", name: "after all ones came in", wire: func(l *lab) {
		h, f := l.pair(floods{2})
		f.send(header([8]byte{0xff, 0xff, 0xff, 0xff, 0, 0, vni, 0xff}, in1))
		h.Want(in1)
		l.passes(h, eth(rmac(1), h.MAC, "answer"), f)
	}},
	{id: "1.reserved-sent", name: "by a hub that passes it on", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true}, floods{2, 3})
		f, g := l.far(2), l.far(3)
		f.send(header([8]byte{0xff, 0xff, 0xff, 0xff, 0, 0, vni, 0xff}, in1))
		g.want(vx(vni, in1))
	}},

	{id: "1.no-fragment", name: "too long for the VTEP", wire: func(l *lab) {
		h, f := l.pair(floods{2})
		fits := mem.Ethernet(frame.Broadcast, h.MAC, 0x88b5, make([]byte, l.VTEP.MTU(0)-14))
		h.Send(fits, append(fits, 0))
		f.want(vx(vni, fits))
		if n := len(fits); n != 1500-50+14 && !l.ip6 || n != 1500-70+14 && l.ip6 {
			l.T.Errorf("longest frame %d", n)
		}
		l.drops(one("too-big"))
	}},
	{id: "1.no-fragment", name: "too long for the path", wire: func(l *lab) {
		h, _ := l.pair(floods{2})
		l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{MTU: 1400})
		h.Send(mem.Ethernet(frame.Broadcast, h.MAC, 0x88b5, make([]byte, 1400)))
		l.dropped("too-big")
	}},
	{id: "1.no-fragment", name: "too long for one peer of two", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 3})
		l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{MTU: 1400})
		b := mem.Ethernet(frame.Broadcast, h.MAC, 0x88b5, make([]byte, 1400))
		h.Send(b)
		f.want()
		g.want(vx(vni, b))
		l.drops(nil) // the frame has left; the copy is counted by the VTEP
		lost := l.VTEP.Stats().Lost
		l.check(lost[frame.TooBig] == 1 && lost.Total() == 1, "lost %v", lost)
	}},

	outerRow("1.ttl", "default", nil, 64, 0),
	outerRow("1.ttl", "fixed", &vtep.Config{Header: vtep.Header{TTL: 9}}, 9, 0),
	outerRow("1.ttl", "largest", &vtep.Config{Header: vtep.Header{TTL: 255}}, 255, 0),
	outerRow("1.tos", "default", &vtep.Config{}, 64, 0),
	outerRow("1.tos", "fixed", &vtep.Config{Header: vtep.Header{TOS: 0xb8}}, 64, 0xb8),
	outerRow("1.tos", "with TTL", &vtep.Config{Header: vtep.Header{TOS: 0x28, TTL: 3}}, 3, 0x28),
	{id: "1.tos", name: "zero, whatever is inside", wire: func(l *lab) {
		h, f := l.pair(floods{2})
		b := mem.Ethernet(frame.Broadcast, h.MAC, 0x0800, ipv4(17, 0, 1, 2))
		b[15], b[22] = 0xb8, 7 // inner TOS and TTL
		h.Send(b)
		got := f.outer()
		l.check(len(got) == 1 && got[0].TOS == 0 && got[0].TTL == 64, "%+v", got)
	}},

	{id: "1.srcport-range", name: "default", wire: func(l *lab) {
		l.start()
		ports := l.ports(flows(512))
		lo, hi := uint16(65535), uint16(0)
		for p := range ports {
			lo, hi = min(lo, p), max(hi, p)
		}
		l.check(lo >= 49152 && len(ports) == 16 && int(hi)-int(lo) >= 16384*7/8,
			"%d ports from %d to %d", len(ports), lo, hi)
	}},
	rangeRow("narrow", 40000, 40099, 16), rangeRow("three ports", 20000, 20002, 3), rangeRow("one port", 65535, 65535, 1),
	{id: "1.srcport-flow", name: "through the switch, over time", wire: func(l *lab) {
		h, f := l.pair(floods{2})
		seen := map[uint16]bool{}
		for i := range 20 {
			b := mem.Ethernet(rmac(1), h.MAC, 0x0800, ipv4(6, 0, 1000, 80))
			b[18], b[60-1] = byte(i), byte(i) // identification, payload
			h.Send(b)
			l.pass(31 * time.Second)
		}
		for _, d := range f.outer() {
			seen[d.Src.Port] = true
		}
		l.check(len(seen) == 1, "ports %v", seen)
	}},
	{id: "1.srcport-flow", name: "known and unknown alike", wire: func(l *lab) {
		h, f, g := l.trio(floods{2, 3})
		b := mem.Ethernet(rmac(1), h.MAC, 0x0800, ipv4(6, 0, 1000, 80))
		h.Send(b) // flooded
		f.send(vx(vni, eth(h.MAC, rmac(1), "here I am")))
		h.Send(b) // to one
		ds := append(f.outer(), g.outer()...)
		l.check(len(ds) == 3 && ds[0].Src.Port == ds[1].Src.Port && ds[0].Src.Port == ds[2].Src.Port, "%+v", ds)
	}},
	{id: "1.srcport-seed", name: "two VTEPs differ", wire: func(l *lab) {
		l.start()
		other := l.NodeWith(l.addr(9).String(), nil, nil)
		f := l.far(2)
		same := 0
		for _, b := range flows(256) {
			if l.portOf(l.VTEP, f, b) == l.portOf(other.VTEP, f, b) {
				same++
			}
		}
		if same > 64 { // 16 is the mean
			l.T.Errorf("%d of 256 flows have the same port", same)
		}
	}},
}

// outerRow looks at the outer IP header of what is sent, to one peer and to all.
func outerRow(id, name string, cfg *vtep.Config, ttl, tos uint8) row {
	return row{id: id, name: name, wire: func(l *lab) {
		h, f := l.pair(cfg, floods{2})
		f.send(vx(vni, in1))
		h.Send(eth(rmac(1), h.MAC, "one"), eth(frame.Broadcast, h.MAC, "all"))
		got := f.outer()
		l.check(len(got) == 2, "%d datagrams", len(got))
		for _, d := range got {
			l.check(d.TTL == ttl && d.TOS == tos, "TTL %d TOS %#x", d.TTL, d.TOS)
		}
	}}
}

func rangeRow(name string, lo, hi uint16, want int) row {
	return row{id: "1.srcport-range", name: name, wire: func(l *lab) {
		u := check.Must(l.Net.Listen(l.at(1), &memory.Config{SrcPorts: underlay.PortRange{Lo: lo, Hi: hi}}))(l.T)
		v := check.Must(vtep.New(nil, u))(l.T)
		f, seen := l.far(2), map[uint16]bool{}
		for _, b := range flows(512) {
			p := l.portOf(v, f, b)
			seen[p] = true
			check.Need(l.T, p >= lo && p <= hi, "port %d", p)
		}
		l.check(len(seen) == want, "%d ports", len(seen))
	}}
}

// portOf sends a frame to f and returns the outer source port.
func (l *lab) portOf(v *vtep.VTEP, f *far, b []byte) uint16 {
	l.T.Helper()
	n := check.Must(v.AddPeer(f.u.LocalAddr()))(l.T)
	drops := l.writes(v, n, b)
	got := f.outer()
	if len(got) != 1 || !bytes.Equal(got[0].payload, vx(vni, b)) {
		l.T.Fatalf("sent % x, got %+v (%v)", b, got, drops)
	}
	return got[0].Src.Port
}

// ports returns how often each source port was used.
func (l *lab) ports(frames [][]byte) map[uint16]int {
	l.T.Helper()
	f, seen := l.far(2), map[uint16]int{}
	for _, b := range frames {
		seen[l.portOf(l.VTEP, f, b)]++
	}
	return seen
}

func ipv4(proto byte, fragment, sport, dport uint16) []byte {
	p := make([]byte, 40)
	p[0], p[8], p[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(p[2:], 40)
	binary.BigEndian.PutUint16(p[6:], fragment)
	copy(p[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(p[20:], sport)
	binary.BigEndian.PutUint16(p[22:], dport)
	return p
}

func ipv6(next byte, sport, dport uint16) []byte {
	p := make([]byte, 60)
	p[0], p[5], p[6], p[7], p[8], p[24] = 0x60, 20, next, 64, 0x20, 0x20
	binary.BigEndian.PutUint16(p[40:], sport)
	binary.BigEndian.PutUint16(p[42:], dport)
	return p
}

// flows returns frames of n flows.
func flows(n int) (all [][]byte) {
	for i := range n {
		all = append(all, mem.Ethernet(rmac(1), rmac(2), 0x0800, ipv4(17, 0, uint16(i), 53)))
	}
	return all
}

// hashRows change one byte of a frame in 64 ways. If it counts, 64 flows on one of
// 16 ports would be a miracle; if it does not, they must be.
func hashRows() (rows []row) {
	v4 := func(proto byte, frag uint16) []byte {
		return mem.Ethernet(rmac(1), rmac(2), 0x0800, ipv4(proto, frag, 1000, 2000))
	}
	v6 := func(next byte) []byte { return mem.Ethernet(rmac(1), rmac(2), 0x86dd, ipv6(next, 1000, 2000)) }
	options := v4(17, 0)
	options[14] = 0x46 // one word of options: the ports are behind it
	for _, c := range []struct {
		id, name string
		frame    []byte
		at       int
		counts   bool
	}{
		{"1.srcport-hash", "destination MAC", v4(17, 0), 5, true},
		{"1.srcport-hash", "source MAC", v4(17, 0), 11, true},
		{"1.srcport-hash", "EtherType", eth(rmac(1), rmac(2), "x"), 13, true},
		{"1.srcport-hash", "IPv4 source", v4(17, 0), 14 + 15, true},
		{"1.srcport-hash", "IPv4 destination", v4(17, 0), 14 + 19, true},
		{"1.srcport-hash", "IPv4 protocol", v4(17, 0), 14 + 9, true},
		{"1.srcport-hash", "UDP source port", v4(17, 0), 14 + 21, true},
		{"1.srcport-hash", "UDP destination port", v4(17, 0), 14 + 23, true},
		{"1.srcport-hash", "TCP source port", v4(6, 0), 14 + 20, true},
		{"1.srcport-hash", "SCTP destination port", v4(132, 0), 14 + 22, true},
		{"1.srcport-hash", "source port behind options", options, 14 + 25, true},
		{"1.srcport-hash", "options do not count", options, 14 + 21, false},
		{"1.srcport-hash", "IPv4 TOS does not count", v4(17, 0), 14 + 1, false},
		{"1.srcport-hash", "IPv4 length does not count", v4(17, 0), 14 + 3, false},
		{"1.srcport-hash", "IPv4 identification does not count", v4(17, 0), 14 + 4, false},
		{"1.srcport-hash", "IPv4 TTL does not count", v4(17, 0), 14 + 8, false},
		{"1.srcport-hash", "IPv4 checksum does not count", v4(17, 0), 14 + 10, false},
		{"1.srcport-hash", "payload does not count", v4(17, 0), 14 + 28, false},
		{"1.srcport-hash", "TCP sequence does not count", v4(6, 0), 14 + 27, false},
		{"1.srcport-hash", "ICMP has no ports", v4(1, 0), 14 + 21, false},
		{"1.srcport-hash", "payload of other types does not count", eth(rmac(1), rmac(2), "x"), 20, false},
		{"1.srcport-hash", "IPv6 source", v6(17), 14 + 23, true},
		{"1.srcport-hash", "IPv6 destination", v6(17), 14 + 39, true},
		{"1.srcport-hash", "IPv6 next header", v6(17), 14 + 6, true},
		{"1.srcport-hash", "IPv6 source port", v6(6), 14 + 41, true},
		{"1.srcport-hash", "IPv6 destination port", v6(17), 14 + 43, true},
		{"1.srcport-hash", "IPv6 flow label does not count", v6(17), 14 + 3, false},
		{"1.srcport-hash", "IPv6 hop limit does not count", v6(17), 14 + 7, false},

		{"1.srcport-fragment", "first", v4(17, 0x2000), 14 + 21, false},
		{"1.srcport-fragment", "middle", v4(17, 0x20b9), 14 + 21, false},
		{"1.srcport-fragment", "last", v4(17, 0x00b9), 14 + 23, false},
		{"1.srcport-fragment", "first, with DF", v4(6, 0x6000), 14 + 21, false},
		{"1.srcport-fragment", "DF is none", v4(17, 0x4000), 14 + 21, true},
		{"1.srcport-fragment", "addresses still count", v4(17, 0x2000), 14 + 15, true},
		{"1.srcport-fragment", "IPv6 fragment header", v6(44), 14 + 41, false},

		{"1.srcport-vlan", "VLAN", mem.Tagged(5, v4(17, 0)), 15, true},
		{"1.srcport-vlan", "ports behind a tag", mem.Tagged(5, v4(17, 0)), 18 + 21, true},
		{"1.srcport-vlan", "addresses behind a tag", mem.Tagged(5, v6(17)), 18 + 23, true},
		{"1.srcport-vlan", "fragment behind a tag", mem.Tagged(5, v4(17, 0x2000)), 18 + 21, false},
		{"1.srcport-vlan", "outer of two", qinq(mem.Tagged(5, v4(17, 0))), 15, true},
		{"1.srcport-vlan", "inner of two", qinq(mem.Tagged(5, v4(17, 0))), 19, true},
		{"1.srcport-vlan", "ports behind two", qinq(mem.Tagged(5, v6(6))), 22 + 41, true},
		{"1.srcport-vlan", "nothing behind three", mem.Tagged(9, qinq(mem.Tagged(5, v6(6)))), 26 + 41, false},
	} {
		rows = append(rows, row{id: c.id, name: c.name, wire: func(l *lab) {
			l.start()
			var frames [][]byte
			for i := range 64 {
				b := bytes.Clone(c.frame)
				b[c.at] ^= byte(i)
				frames = append(frames, b)
			}
			n := len(l.ports(frames))
			l.check((n > 1) == c.counts, "%d ports", n)
		}})
	}
	return rows
}
