package gso

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// The bits of a shape: what a packet has beside its payload.
const (
	shapeBare = 1 << iota
	shapeTag
	shapeTag2
	shapeV6
	shapeUDP
	shapeDF
	shapeIPOptions
	shapeTCPOptions
)

// shaped makes a packet of a shape.
func shaped(shape byte, payload []byte) packet {
	has := func(bit byte) bool { return shape&bit != 0 }
	k := packet{bare: has(shapeBare), v6: has(shapeV6), udp: has(shapeUDP), df: has(shapeDF), payload: payload}
	if !k.bare {
		if has(shapeTag) {
			k.tags++
		}
		if has(shapeTag2) {
			k.tags++
		}
	}
	if has(shapeIPOptions) {
		k.ipOptions = routerAl4
		if k.v6 {
			k.ipOptions = routerAl6
		}
	}
	if has(shapeTCPOptions) && !k.udp {
		k.tcpOptions = timestamps
	}
	return k
}

// decoder returns what a packet of k's kind begins with.
func (k packet) decoder() gopacket.Decoder {
	switch k.frameKind() {
	case frame.IPv4:
		return layers.LayerTypeIPv4
	case frame.IPv6:
		return layers.LayerTypeIPv6
	}
	return layers.LayerTypeEthernet
}

// gopacketReads fails unless gopacket takes s for a whole packet of k's kind with this
// payload. It returns the layers.
func gopacketReads(t testing.TB, k packet, s, payload []byte) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(s, k.decoder(), gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v in\n% x", e.Error(), s)
	}
	// Behind a hop-by-hop header gopacket 1.1.19 compares the payload length, which counts
	// that header, with what is left after it.
	if p.Metadata().Truncated && !(k.v6 && len(k.ipOptions) > 0) {
		t.Fatalf("gopacket: truncated\n% x", s)
	}
	l4 := p.TransportLayer()
	if l4 == nil || (l4.LayerType() == layers.LayerTypeUDP) != k.udp {
		t.Fatalf("gopacket: %v in\n% x", l4, s)
	}
	tags := 0
	for _, l := range p.Layers() {
		if l.LayerType() == layers.LayerTypeDot1Q {
			tags++
		}
	}
	if _, v6 := p.NetworkLayer().(*layers.IPv6); v6 != k.v6 || tags != k.tags {
		t.Fatalf("gopacket: IPv6 %v, %d tags in\n% x", v6, tags, s)
	}
	if !bytes.Equal(l4.LayerPayload(), payload) {
		t.Fatalf("gopacket: payload % x, want % x", l4.LayerPayload(), payload)
	}
	return p
}

// summed fails unless the checksums of s are right, added up byte by byte and by
// gopacket, which writes the transport layer once more.
func summed(t testing.TB, k packet, s []byte, p gopacket.Packet) {
	t.Helper()
	l3, l4 := k.l3(), k.l4()
	if !k.v6 && refSum(s[l3:l4]) != 0 {
		t.Fatalf("checksum of the IPv4 header\n% x", s)
	}
	if refPseudo(s, l3, l4, !k.v6, s[l4:]) != 0 {
		t.Fatalf("checksum\n% x", s)
	}
	l := p.TransportLayer().(gopacket.SerializableLayer)
	switch l := l.(type) {
	case *layers.TCP:
		l.SetNetworkLayerForChecksum(p.NetworkLayer())
	case *layers.UDP:
		l.SetNetworkLayerForChecksum(p.NetworkLayer())
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		l, gopacket.Payload(p.TransportLayer().LayerPayload())); err != nil {
		t.Fatal(err)
	}
	b := buf.Bytes()
	if k.udp && b[6] == 0 && b[7] == 0 {
		b[6], b[7] = 0xff, 0xff // zero would be none (RFC 768), which gopacket does not heed
	}
	if !bytes.Equal(b, s[l4:]) {
		t.Fatalf("% x, gopacket says\n% x", s[l4:], b)
	}
}

// A superframe of any shape is cut into segments that gopacket reads and whose checksums
// are right; and those that can be joined, joined, are the superframe again. IP options
// keep segments apart.
func FuzzCutOracle(f *testing.F) {
	for shape := range 256 {
		f.Add(pattern(300), byte(shape), uint16(0xfffe), uint32(0xfffffff0), byte(psh), uint16(100))
	}
	f.Add(pattern(299), byte(0), uint16(0), uint32(0), byte(fin|psh|ece), uint16(3))
	// The first datagram's sum is zero, which is sent as 0xffff.
	zero := make([]byte, 300)
	k := shaped(shapeUDP, zero[:150])
	copy(zero, k.bytes()[k.l4()+6:k.data()])
	f.Add(zero, byte(shapeUDP), uint16(0), uint32(0), byte(0), uint16(150))
	f.Add(pattern(40000), byte(shapeTag|shapeV6), uint16(9), uint32(9), byte(cwr), uint16(1448))
	f.Fuzz(func(t *testing.T, payload []byte, shape byte, id uint16, seq uint32, flags byte, size uint16) {
		if size == 0 || len(payload) <= int(size) || len(payload) > 60000 || len(payload) > 1000*int(size) {
			return
		}
		k := shaped(shape, payload)
		k.id, k.seq = id, seq
		if !k.udp {
			k.flags = flags & (fin | psh | ece | cwr)
		}
		super := k.super(int(size))
		if r := Check(super); r != frame.NotDropped {
			t.Fatal(r)
		}
		var c Cutter
		segments := cut(t, &c, []byte("prefix"), super)
		if want := (len(payload) + int(size) - 1) / int(size); len(segments) != want {
			t.Fatalf("%d segments, want %d", len(segments), want)
		}
		for i, s := range segments {
			from := i * int(size)
			part := payload[from:min(from+int(size), len(payload))]
			p := gopacketReads(t, k, s, part)
			summed(t, k, s, p)
			if l, ok := p.TransportLayer().(*layers.TCP); ok && l.Seq != seq+uint32(from) {
				t.Fatalf("segment %d: sequence %d, want %d", i, l.Seq, seq+uint32(from))
			}
			if l, ok := p.NetworkLayer().(*layers.IPv4); ok && l.Id != id+uint16(i) {
				t.Fatalf("segment %d: identification %d, want %d", i, l.Id, id+uint16(i))
			}
		}

		j := Joiner{UDP: true}
		rest := outs(super.Kind, segments...)
		n, g, parts := j.Join(rest)
		switch {
		case len(k.ipOptions) > 0 || k.flags&cwr != 0:
			if n != 1 || g != (frame.GSO{}) || !bytes.Equal(flat(parts), segments[0]) {
				t.Fatalf("%d joined, %+v", n, g)
			}
		case n != min(len(segments), joinMax):
			t.Fatalf("%d of %d joined", n, len(segments))
		case n == len(segments):
			if g != k.gso(int(size)) || !bytes.Equal(flat(parts), super.Bytes()) {
				t.Fatalf("joined they are another: %+v", g)
			}
		default:
			joinedIsWhole(t, rest[:n], g, parts)
		}
	})
}
