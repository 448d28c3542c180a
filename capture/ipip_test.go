package capture

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// ipPacket is an IP packet as gopacket writes it, with UDP in it.
func ipPacket(t testing.TB, v6 bool, payload int) []byte {
	t.Helper()
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	var ip gopacket.SerializableLayer
	if v6 {
		x := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolUDP, SrcIP: netip.MustParseAddr("fd00::1").AsSlice(), DstIP: netip.MustParseAddr("fd00::2").AsSlice()}
		udp.SetNetworkLayerForChecksum(x)
		ip = x
	} else {
		x := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
		udp.SetNetworkLayerForChecksum(x)
		ip = x
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, udp, gopacket.Payload(make([]byte, payload))); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
}

// wantIPIP is a packet in a packet as gopacket writes it: no UDP between them.
type wantIPIP struct {
	src, dst string
	tos, ttl uint8
	df       bool
	inside   []byte
}

func (w wantIPIP) bytes(t testing.TB) []byte {
	t.Helper()
	src, dst := netip.MustParseAddr(w.src), netip.MustParseAddr(w.dst)
	proto := layers.IPProtocolIPv4
	if len(w.inside) > 0 && w.inside[0]>>4 == 6 {
		proto = layers.IPProtocolIPv6
	}
	var ip gopacket.SerializableLayer = &layers.IPv6{Version: 6, TrafficClass: w.tos, HopLimit: w.ttl, NextHeader: proto, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	if dst.Is4() {
		x := &layers.IPv4{Version: 4, TOS: w.tos, TTL: w.ttl, Protocol: proto, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		if w.df {
			x.Flags = layers.IPv4DontFragment
		}
		ip = x
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, gopacket.Payload(w.inside)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// capturesIPIP captures what f does with an underlay of raw IP, and compares the file with
// what gopacket writes; and has gopacket find the packet inside.
func capturesIPIP(t *testing.T, under *fakeUnderlay, f func(u vtep.Underlay), wants ...wantIPIP) {
	t.Helper()
	c := newCapture(t, nil)
	u := c.Underlay(under)
	var file bytes.Buffer
	if err := c.Start(&file); err != nil {
		t.Fatal(err)
	}
	f(u)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	got := entries(t, file.Bytes())
	if len(got) != len(wants) {
		t.Fatalf("%d packets, want %d", len(got), len(wants))
	}
	for i, g := range got {
		w := wants[i]
		b := w.bytes(t)
		if g.link != layers.LinkTypeRaw || g.intf != under.local.String() || g.length != len(b) || !bytes.Equal(g.data, b) {
			t.Errorf("packet %d on %s, link type %v:\ngot  %x\nwant %x", i, g.intf, g.link, g.data, b)
		}
		first := layers.LayerTypeIPv4
		if g.data[0]>>4 == 6 {
			first = layers.LayerTypeIPv6
		}
		p := gopacket.NewPacket(g.data, first, gopacket.Default)
		if len(w.inside) < 48 {
			continue
		}
		ls := p.Layers()
		if p.ErrorLayer() != nil || len(ls) < 3 || ls[2].LayerType() != layers.LayerTypeUDP {
			t.Errorf("packet %d: gopacket reads %v", i, p)
		} else if inner := ls[1]; !bytes.Equal(append(bytes.Clone(inner.LayerContents()), inner.LayerPayload()...), w.inside) {
			t.Errorf("packet %d: gopacket finds % x inside", i, inner.LayerContents())
		}
	}
}

func TestCaptureOfSentIPIP(t *testing.T) {
	four, six := ipPacket(t, false, 40), ipPacket(t, true, 40)
	run := append(append(bytes.Clone(four), four...), ipPacket(t, false, 20)...)
	for _, a := range []struct{ local, one, two string }{{"192.0.2.1", "192.0.2.2", "198.51.100.3"}, {"2001:db8::1", "2001:db8::2", "2001:db8::3"}} {
		local, one, two := netip.MustParseAddr(a.local), netip.MustParseAddr(a.one), netip.MustParseAddr(a.two)
		is4 := local.Is4()
		under := &fakeUnderlay{local: netip.AddrPortFrom(local, 0)}
		to := func(a ...netip.Addr) (es []frame.Endpoint) {
			for _, x := range a {
				es = append(es, endpointOf(t, netip.AddrPortFrom(x, 0).String()))
			}
			return es
		}
		ds := []frame.Datagram{
			{Parts: [][]byte{nil, four}, To: to(one), Flow: 3, TOS: 0xb9, TTL: 17, DF: true},
			{Parts: [][]byte{{}, six}, To: to(one, two), Flow: 9},
			{Parts: [][]byte{six[:1], six[1:50], six[50:]}, To: to(two)},
			{Parts: [][]byte{run[:20], run[20:]}, To: to(two), Seg: uint16(len(four))},
			{Parts: [][]byte{nil, {}}, To: to(one)},
			{Parts: [][]byte{nil, make([]byte, maxPayload+1)}, To: to(one)},
		}
		capturesIPIP(t, under, func(u vtep.Underlay) {
			if err := u.Sender(7).Send(ds); err != nil {
				t.Fatal(err)
			}
		},
			wantIPIP{a.local, a.one, 0xb9, 17, is4, four},
			wantIPIP{a.local, a.one, 0, 64, false, six},
			wantIPIP{a.local, a.two, 0, 64, false, six},
			wantIPIP{a.local, a.two, 0, 64, false, six},
			wantIPIP{a.local, a.two, 0, 64, false, four},
			wantIPIP{a.local, a.two, 0, 64, false, four},
			wantIPIP{a.local, a.two, 0, 64, false, run[2*len(four):]},
			wantIPIP{a.local, a.one, 0, 64, false, nil})
		if len(under.sent) != len(ds) || under.sent[3].Seg != uint16(len(four)) {
			t.Errorf("%d datagrams reached the underlay", len(under.sent))
		}
	}
}

func TestCaptureOfReceivedIPIP(t *testing.T) {
	for _, a := range []struct{ bound, shown, src, other string }{
		{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.9"},
		{"2001:db8::1", "2001:db8::1", "2001:db8::2", "2001:db8::9"},
		{"0.0.0.0", "0.0.0.0", "192.0.2.2", "192.0.2.9"},
	} {
		under := &fakeUnderlay{local: netip.AddrPortFrom(netip.MustParseAddr(a.bound), 0)}
		src := endpointOf(t, netip.AddrPortFrom(netip.MustParseAddr(a.src), 0).String())
		other := endpointOf(t, netip.AddrPortFrom(netip.MustParseAddr(a.other), 0).String())
		packets := [][]byte{ipPacket(t, false, 40), ipPacket(t, true, 40), {0x45}}
		var wants []wantIPIP
		for _, p := range packets {
			wants = append(wants, wantIPIP{a.src, a.shown, 3, 63, false, p}, wantIPIP{a.src, a.other, 3, 63, false, p})
		}
		capturesIPIP(t, under, func(u vtep.Underlay) {
			b, r := frame.NewBatch(nil), u.Readers()[0]
			for _, p := range packets {
				for _, dst := range []frame.Endpoint{{}, other} {
					under.in, under.outer = p, frame.Outer{Src: src, Dst: dst, TOS: 3, TTL: 63}
					if err := r.Read(b); err != nil || !bytes.Equal(b.Frames[0].Bytes(), p) {
						t.Fatal(err)
					}
				}
			}
		}, wants...)
	}
}
