package gso

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// merged are TCP packets of 5000 bytes of payload as raw sockets hand them over.
func merged() map[string]packet {
	all := map[string]packet{
		"IPv4":         {bare: true},
		"IPv4 options": {bare: true, ipOptions: routerAl4, tcpOptions: timestamps},
		"IPv6":         {bare: true, v6: true},
		"IPv6 options": {bare: true, v6: true, ipOptions: routerAl6, tcpOptions: timestamps},
		"framed":       {tags: 1},
	}
	for name, k := range all {
		k.id, k.seq, k.payload, k.flags = 0xfffe, 0xfffffff0, pattern(5000), psh
		all[name] = k
	}
	return all
}

// plain is the packet without metadata, its checksum as it is on a wire.
func (k packet) plain() *frame.Frame { return over(k.bytes(), k.frameKind(), frame.GSO{}) }

// unfinished is likewise with the sum of the pseudo header in place of the checksum.
func (k packet) unfinished() *frame.Frame {
	f := k.super(1)
	f.GSO = frame.GSO{}
	return f
}

// An unfinished checksum and a right one become the same superframe. Its segments, each
// as long as the MTU but the last, are what gopacket writes, and carry the payload in order.
func TestMerged(t *testing.T) {
	for name, k := range merged() {
		for how, f := range map[string]*frame.Frame{"unfinished": k.unfinished(), "finished": k.plain()} {
			const mtu = 1480
			Merged(f, mtu+k.l3())
			want := k.super(mtu + k.l3() - k.data())
			if f.GSO != k.guessed(want.GSO) || !bytes.Equal(f.Bytes(), want.Bytes()) {
				t.Fatalf("%s, %s: %+v, want %+v", name, how, f.GSO, want.GSO)
			}
			f.GSO.Flags &^= frame.AnySize // which no device has
			was := f.GSO
			if r := Check(f); r != frame.NotDropped || f.GSO != was {
				t.Errorf("%s, %s: %v %+v", name, how, r, f.GSO)
			}
			var c Cutter
			var payload []byte
			seq := k.seq
			segs := cut(t, &c, nil, f)
			for i, s := range segs {
				if i < len(segs)-1 && len(s) != mtu+k.l3() || len(s) > mtu+k.l3() {
					t.Errorf("%s, %s: segment %d has %d bytes", name, how, i, len(s))
				}
				p, again := rewritten(t, s, k.frameKind())
				if !bytes.Equal(again, s) {
					t.Errorf("%s, %s: segment %d:\n% x, gopacket says\n% x", name, how, i, s[:80], again[:80])
				}
				tcp := p.TransportLayer().(*layers.TCP)
				if tcp.Seq != seq || tcp.PSH != (i == len(segs)-1) {
					t.Errorf("%s, %s: segment %d: sequence %d, PSH %v", name, how, i, tcp.Seq, tcp.PSH)
				}
				seq += uint32(len(tcp.Payload))
				payload = append(payload, tcp.Payload...)
			}
			if !bytes.Equal(payload, k.payload) || len(segs) < 4 {
				t.Errorf("%s, %s: %d segments, or the payload is another", name, how, len(segs))
			}
		}
	}
}

// rewritten has gopacket read a packet and write it again, lengths and checksums its own.
func rewritten(t *testing.T, s []byte, kind frame.Kind) (gopacket.Packet, []byte) {
	t.Helper()
	first := map[frame.Kind]gopacket.LayerType{frame.Ethernet: layers.LayerTypeEthernet, frame.IPv4: layers.LayerTypeIPv4, frame.IPv6: layers.LayerTypeIPv6}[kind]
	p := gopacket.NewPacket(s, first, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	var all []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.TCP:
			l.SetNetworkLayerForChecksum(p.NetworkLayer())
			all = append(all, l)
		case *layers.IPv6: // writes its hop-by-hop options itself
			all = append(all, l)
		case *layers.IPv6HopByHop:
		case gopacket.SerializableLayer:
			all = append(all, l)
		}
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		t.Fatal(err)
	}
	return p, buf.Bytes()
}

// What is no TCP packet with one of the two checksums stays as it is.
func TestNotMerged(t *testing.T) {
	wrong := func(k packet) *frame.Frame {
		f := k.plain()
		f.Bytes()[k.l4()+16] ^= 0x55
		return f
	}
	edited := func(k packet, edit func(b []byte)) *frame.Frame {
		f := k.unfinished()
		edit(f.Bytes())
		return f
	}
	tcp4, tcp6 := merged()["IPv4"], merged()["IPv6"]
	udp4, udp6 := tcp4, tcp6
	udp4.udp, udp6.udp = true, true
	long := tcp6
	long.ipOptions = append([]byte{6, 26, 1, 212}, make([]byte, 27*8-4)...)
	for _, c := range []struct {
		name string
		f    *frame.Frame
		mtu  int
	}{
		{"wrong checksum", wrong(tcp4), 1480},
		{"wrong checksum, IPv6", wrong(tcp6), 1460},
		{"checksum of 0", edited(tcp4, func(b []byte) { b[36], b[37] = 0, 0 }), 1480},
		{"payload changed", edited(tcp4, func(b []byte) { copy(b[20:], tcp4.bytes()[20:40]); b[100] ^= 1 }), 1480},
		{"finished, IPv4 header checksum wrong", func() *frame.Frame { f := tcp4.plain(); f.Bytes()[10] ^= 1; return f }(), 1480},
		{"UDP", udp4.unfinished(), 1480},
		{"UDP with its checksum", udp4.plain(), 1480},
		{"UDP over IPv6", udp6.unfinished(), 1460},
		{"first fragment", edited(tcp4, func(b []byte) { b[6] = 0x20 }), 1480},
		{"later fragment", edited(tcp4, func(b []byte) { b[7] = 9 }), 1480},
		{"padded", func() *frame.Frame {
			f := over(append(tcp4.unfinished().Bytes(), 0), frame.IPv4, frame.GSO{})
			return f
		}(), 1480},
		{"IPv4 as IPv6", func() *frame.Frame { f := tcp4.unfinished(); f.Kind = frame.IPv6; return f }(), 1480},
		{"an MTU of its headers", tcp4.unfinished(), 40},
		{"an MTU of less", tcp4.unfinished(), 0},
		{"headers too long to repeat", long.unfinished(), 1480},
		{"cut short", over(tcp4.bytes()[:30], frame.IPv4, frame.GSO{}), 1480},
		{"nothing", over(nil, frame.IPv4, frame.GSO{}), 1480},
	} {
		was := bytes.Clone(c.f.Bytes())
		Merged(c.f, c.mtu)
		if c.f.GSO != (frame.GSO{}) || !bytes.Equal(c.f.Bytes(), was) {
			t.Errorf("%s: %+v, changed %v", c.name, c.f.GSO, !bytes.Equal(c.f.Bytes(), was))
		}
	}
	// Beyond what offsets in a buffer can say.
	b := append(make([]byte, 0xffff), tcp4.unfinished().Bytes()...)
	f := frame.Over(b, 0xffff, len(b))
	f.Kind = frame.IPv4
	if Merged(&f, 1480); f.GSO != (frame.GSO{}) {
		t.Errorf("%+v", f.GSO)
	}
	// The smallest MTU that leaves a byte.
	g := tcp4.unfinished()
	if Merged(g, 41); g.GSO.Size != 1 {
		t.Errorf("%+v", g.GSO)
	}
}

func FuzzMerged(f *testing.F) {
	for _, k := range merged() {
		k.payload = k.payload[:100]
		f.Add(k.plain().Bytes(), uint8(k.frameKind()), uint16(60))
		f.Add(k.unfinished().Bytes(), uint8(k.frameKind()), uint16(90))
	}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, mtu uint16) {
		g := over(b, frame.Kind(kind), frame.GSO{})
		Merged(g, int(mtu))
		if g.GSO == (frame.GSO{}) {
			if !bytes.Equal(g.Bytes(), b) {
				t.Fatal("changed, and no superframe")
			}
			return
		}
		// Nothing but the checksum has changed, and the switch takes it.
		at := int(g.GSO.CsumStart+g.GSO.CsumOffset) - g.Headroom()
		now := bytes.Clone(g.Bytes())
		binary.BigEndian.PutUint16(now[at:], binary.BigEndian.Uint16(b[at:]))
		if !bytes.Equal(now, b) {
			t.Fatal("more than the checksum has changed")
		}
		if r := Check(g); r != frame.NotDropped {
			t.Fatalf("%v: %+v", r, g.GSO)
		}
		var c Cutter
		parts, size := c.Cut(nil, nil, g)
		if len(parts) == 0 || g.GSO.Size != 0 && size > int(mtu) {
			t.Fatalf("%d pieces of %d bytes, MTU %d", len(parts), size, mtu)
		}
	})
}

func TestMergedAllocatesNothing(t *testing.T) {
	for name, k := range merged() {
		f := k.plain()
		b := k.bytes()
		if n := testing.AllocsPerRun(100, func() {
			copy(f.Bytes(), b)
			f.GSO = frame.GSO{}
			if Merged(f, 1500); f.GSO.Size == 0 {
				t.Fatal("no superframe")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
