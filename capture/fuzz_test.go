package capture

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// FuzzCapture: whatever passes, the file that is made of it is one that gopacket reads, with
// every packet in it, in order, whole up to the snap length; outer headers that are made again
// say what is behind them.
func FuzzCapture(f *testing.F) {
	f.Add(append(fake.Ethernet(60, 1), fake.Ethernet(60, 2)...), uint16(0), []byte{60, 0, 60, 0})
	f.Add(fake.Ethernet(200, 1), uint16(17), []byte{13, 0, 14, 1, 90, 2, 0, 3, 80, 17})
	f.Add(bytes.Repeat([]byte{0x45}, 90), uint16(0), []byte{20, 4, 40, 8, 30, 5, 0, 12})
	f.Fuzz(func(t *testing.T, data []byte, snap uint16, cuts []byte) {
		cfg := &Config{Buffer: 128 << 10, SnapLen: int(snap)}
		c := newCapture(t, cfg)
		under := fake.New("p")
		w := portOf(t, c, under).Writer(0)
		var file bytes.Buffer
		check.OK(t, c.Start(&file))
		var out []frame.Out
		var want []entry
		for ; len(cuts) >= 2 && len(out) < 64; cuts = cuts[2:] {
			n := min(int(cuts[0]), len(data))
			x := frame.Make(data[:n])
			o := frame.Out{F: &x, Tag: uint32(cuts[1]>>4) * 7}
			x.Kind = frame.Kind(cuts[1] & 3 % 3)
			name, link := "p", layers.LinkTypeEthernet
			if x.Kind != frame.Ethernet {
				link = layers.LinkTypeRaw
			}
			if cuts[1]&8 != 0 {
				x.GSO.Flags = frame.NeedsCsum
				name += " superframes"
			}
			b := bytes.Clone(data[:n])
			if o.Tag != 0 && x.Kind == frame.Ethernet && n >= 12 {
				b = append(append(append([]byte(nil), b[:12]...), 0x81, 0, byte(o.Tag>>8), byte(o.Tag)), b[12:]...)
			}
			e := entry{intf: name, link: link, length: len(b), data: b}
			if snap != 0 {
				e.data = b[:min(len(b), int(snap))]
			}
			want = append(want, e)
			out, data = append(out, o), data[n:]
		}
		check.OK(t, w.Write(out))
		check.OK(t, c.Stop())
		got := entries(t, file.Bytes())
		if len(got) != len(want) {
			t.Fatalf("%d packets, want %d; %+v", len(got), len(want), c.Stats())
		}
		for i, g := range got {
			if w := want[i]; g.intf != w.intf || g.link != w.link || g.length != w.length || !bytes.Equal(g.data, w.data) {
				t.Fatalf("packet %d: %+v, want %+v", i, g, w)
			}
		}
	})
}

// FuzzOuterHeader: headers that are made again are read by gopacket as what they are made of.
func FuzzOuterHeader(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 0, 100, 0}, uint8(3), uint8(0xb8), uint8(64), uint8(0))
	f.Add([]byte{0x60, 1}, uint8(0), uint8(0), uint8(1), uint8(3))
	f.Add([]byte{0x45, 1, 2}, uint8(1), uint8(0), uint8(1), uint8(6))
	f.Fuzz(func(t *testing.T, payload []byte, cut, tos, ttl, how uint8) {
		v6 := how&1 != 0
		a := addresses{tos: tos, ttl: ttl, raw: how&2 != 0, df: how&4 != 0}
		a.src, a.dst = frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, Port: 50000}, frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 2}, Port: 4789}
		if v6 {
			a.src.IP, a.dst.IP = [16]byte{0: 0xfd, 15: 1}, [16]byte{0: 0xfd, 15: 2}
		}
		at := min(int(cut), len(payload))
		var h outerHeader
		b := append(bytes.Clone(h.fill(&a, [][]byte{payload[:at], payload[at:]}, len(payload))), payload...)
		first := layers.LayerTypeIPv4
		if v6 {
			first = layers.LayerTypeIPv6
		}
		p := gopacket.NewPacket(b, first, gopacket.DecodeOptions{Lazy: true})
		var next layers.IPProtocol
		switch ip := p.NetworkLayer().(type) {
		case *layers.IPv4:
			sum := uint32(0)
			for i := 0; i < 20; i += 2 {
				sum += uint32(binary.BigEndian.Uint16(b[i:]))
			}
			if next = ip.Protocol; int(ip.Length) != len(b) || ip.TOS != tos || ip.TTL != ttl || uint16(sum)+uint16(sum>>16) != 0xffff || (ip.Flags != 0) != a.df {
				t.Fatalf("%+v", ip)
			}
		case *layers.IPv6:
			if next = ip.NextHeader; int(ip.Length)+40 != len(b) || ip.TrafficClass != tos || ip.HopLimit != ttl {
				t.Fatalf("%+v", ip)
			}
		default:
			t.Fatalf("% x", b)
		}
		if want := layers.IPProtocol(4); a.raw {
			if len(payload) > 0 && payload[0]>>4 == 6 {
				want = 41
			}
			if next != want {
				t.Fatalf("protocol %d, want %d", next, want)
			}
			return
		}
		u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok || u.SrcPort != 50000 || u.DstPort != 4789 || int(u.Length) != 8+len(payload) {
			t.Fatalf("%+v", u)
		}
		if v6 { // gopacket computes what there must be
			sum := u.Checksum
			u.SetNetworkLayerForChecksum(p.NetworkLayer())
			buf := gopacket.NewSerializeBuffer()
			check.OK(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{ComputeChecksums: true}, u, gopacket.Payload(payload)))
			if want := binary.BigEndian.Uint16(buf.Bytes()[6:]); want != sum && !(want == 0 && sum == 0xffff) {
				t.Fatalf("checksum %#x, want %#x", sum, want)
			}
		}
	})
}
