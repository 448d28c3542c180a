package bench

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// encapsulated is an Ethernet frame with IPv4 and UDP in it, room for a VXLAN header
// in front.
func encapsulated() []byte {
	return append(make([]byte, encap.VXLANLen), rig.Packet(rig.MAC(1, 1), rig.MAC(0, 1), 114)...)
}

// putParse puts a header in front of a frame that lies in b behind the room for it,
// and parses it again, down to the inner MACs.
func putParse(b []byte, n frame.VNI) (frame.VNI, frame.MAC) {
	encap.PutVXLAN(b, n)
	h, drop := encap.ParseVXLAN(b)
	if drop != frame.NotDropped || len(b) < encap.VXLANLen+encap.EthernetLen {
		return 0, frame.MAC{}
	}
	return h.VNI(), frame.MAC(b[encap.VXLANLen+6:])
}

// gopacketPutParse does the same in gopacket's terms: the header before the frame,
// and both decoded without copying or looking further than asked.
func gopacketPutParse(buf gopacket.SerializeBuffer, inner []byte, n frame.VNI) (frame.VNI, frame.MAC, error) {
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, &layers.VXLAN{ValidIDFlag: true, VNI: uint32(n)}, gopacket.Payload(inner))
	if err != nil {
		return 0, frame.MAC{}, err
	}
	p := gopacket.NewPacket(buf.Bytes(), layers.LayerTypeVXLAN, gopacket.NoCopy)
	h := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
	e := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	return frame.VNI(h.VNI), frame.MAC(e.SrcMAC), nil
}

var parsed frame.VNI

// BenchmarkEncap puts and parses one VXLAN header, and has gopacket do it with the
// same bytes; "times-slower" is the ratio of the two, at least 50.
func BenchmarkEncap(b *testing.B) {
	buf := encapsulated()
	inner := bytes.Clone(buf[encap.VXLANLen:])
	var ours, theirs float64
	b.Run("vxswitch", func(b *testing.B) {
		b.ReportAllocs()
		n := frame.VNI(0)
		for b.Loop() {
			n, _ = putParse(buf, n&0xff+1)
		}
		parsed = n
		ours = float64(b.Elapsed()) / float64(b.N)
	})
	b.Run("gopacket", func(b *testing.B) {
		b.ReportAllocs()
		s, n := gopacket.NewSerializeBuffer(), frame.VNI(0)
		for b.Loop() {
			var err error
			if n, _, err = gopacketPutParse(s, inner, n&0xff+1); err != nil {
				b.Fatal(err)
			}
		}
		parsed = n
		theirs = float64(b.Elapsed()) / float64(b.N)
		if ours > 0 {
			b.ReportMetric(theirs/ours, "times-slower")
			if b.N > 10_000 && theirs < 50*ours {
				b.Errorf("gopacket takes %.0f ns, ours %.1f: not 50 times as long", theirs, ours)
			}
		}
	})
}

// Ours and gopacket's are the same bytes and the same answer, ours without allocating.
func TestEncapLikeGopacket(t *testing.T) {
	buf := encapsulated()
	s := gopacket.NewSerializeBuffer()
	for _, n := range []frame.VNI{0, 1, 4100, frame.MaxVNI} {
		vni, src := putParse(buf, n)
		vni2, src2, err := gopacketPutParse(s, buf[encap.VXLANLen:], n)
		if err != nil || vni != n || vni2 != n || src != src2 || src != rig.MAC(0, 1) || !bytes.Equal(s.Bytes(), buf) {
			t.Errorf("VNI %d: %d from %v, gopacket %d from %v, %v", n, vni, src, vni2, src2, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { putParse(buf, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
