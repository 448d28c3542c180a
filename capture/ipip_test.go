package capture

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
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
	return packets.Of(ip, udp, gopacket.Payload(make([]byte, payload)))
}

func TestCaptureOfSentIPIP(t *testing.T) {
	four, six := ipPacket(t, false, 40), ipPacket(t, true, 40)
	run := append(append(bytes.Clone(four), four...), ipPacket(t, false, 20)...)
	for _, a := range []struct{ local, one, two string }{{"192.0.2.1:0", "192.0.2.2:0", "198.51.100.3:0"}, {"[2001:db8::1]:0", "[2001:db8::2]:0", "[2001:db8::3]:0"}} {
		is4 := a.local[0] != '['
		under := newFakeUnderlay(a.local)
		to := func(a ...string) (es []frame.Endpoint) {
			for _, x := range a {
				es = append(es, endpointOf(t, x))
			}
			return es
		}
		ds := []frame.Datagram{
			{Parts: [][]byte{nil, four}, To: to(a.one), Flow: 3, TOS: 0xb9, TTL: 17, DF: true},
			{Parts: [][]byte{{}, six}, To: to(a.one, a.two), Flow: 9},
			{Parts: [][]byte{six[:1], six[1:50], six[50:]}, To: to(a.two)},
			{Parts: [][]byte{run[:20], run[20:]}, To: to(a.two), Seg: uint16(len(four))},
			{Parts: [][]byte{nil, {}}, To: to(a.one)},
			{Parts: [][]byte{nil, make([]byte, maxPayload+1)}, To: to(a.one)},
		}
		captures(t, under, func(u vtep.Underlay) {
			if err := u.Sender(7).Send(ds); err != nil {
				t.Fatal(err)
			}
		},
			want{a.local, a.one, 0xb9, 17, is4, four},
			want{a.local, a.one, 0, 64, false, six},
			want{a.local, a.two, 0, 64, false, six},
			want{a.local, a.two, 0, 64, false, six},
			want{a.local, a.two, 0, 64, false, four},
			want{a.local, a.two, 0, 64, false, four},
			want{a.local, a.two, 0, 64, false, run[2*len(four):]},
			want{a.local, a.one, 0, 64, false, nil})
		if len(under.sent) != len(ds) || under.sent[3].Seg != uint16(len(four)) {
			t.Errorf("%d datagrams reached the underlay", len(under.sent))
		}
	}
}

func TestCaptureOfReceivedIPIP(t *testing.T) {
	for _, a := range []struct{ bound, src, other string }{
		{"192.0.2.1:0", "192.0.2.2:0", "192.0.2.9:0"},
		{"[2001:db8::1]:0", "[2001:db8::2]:0", "[2001:db8::9]:0"},
		{"0.0.0.0:0", "192.0.2.2:0", "192.0.2.9:0"},
	} {
		under, src, other := newFakeUnderlay(a.bound), endpointOf(t, a.src), endpointOf(t, a.other)
		packets := [][]byte{ipPacket(t, false, 40), ipPacket(t, true, 40), {0x45}}
		var wants []want
		for _, p := range packets {
			wants = append(wants, want{a.src, a.bound, 3, 63, false, p}, want{a.src, a.other, 3, 63, false, p})
		}
		captures(t, under, func(u vtep.Underlay) {
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
