package vtep

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A superframe of IP leaves as one run: in VXLAN-GPE each segment behind its header, in IP in
// IP with nothing in front; checksums are what gopacket finds right, the payload in order.
func TestSuperframeOfPackets(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, c := range []struct{ n, size, segs int }{{3000, 1400, 3}, {2800, 1400, 2}, {60000, 1408, 43}} {
			u, r := fake4(), raw4()
			v, w := gpeVTEP(t, Config{}, u), ipipVTEP(t, Config{}, r)
			p := tcpPacket(t, v6, c.n)
			f := p.superframe(c.size)
			whole := bytes.Clone(f.Bytes())
			head := 40
			if v6 {
				head = 60
			}
			check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}))
			check.OK(t, w.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, w, host(at(1)))}}))
			if len(u.sent) != 1 || len(r.sent) != 1 || !bytes.Equal(whole, f.Bytes()) {
				t.Fatalf("%d and %d sent, or the frame was written to", len(u.sent), len(r.sent))
			}
			if s := u.sent[0]; s.seg != 8+head+c.size || s.tos != ect0 || !s.df {
				t.Errorf("VXLAN-GPE: segments of %d, TOS %#x, DF %v", s.seg, s.tos, s.df)
			}
			if s := r.sent[0]; s.seg != head+c.size || s.tos != 0xb8|ect0 || !s.df {
				t.Errorf("IP in IP: segments of %d, TOS %#x, DF %v", s.seg, s.tos, s.df)
			}
			checkSegments(t, u.sent[0], 8, c.segs, p.kind, whole[head:])
			checkSegments(t, r.sent[0], 0, c.segs, p.kind, whole[head:])
		}
	}
}

// checkSegments reads a run as the peer gets it.
func checkSegments(t *testing.T, s sent, head, want int, kind frame.Kind, payload []byte) {
	t.Helper()
	first := layers.LayerTypeIPv4
	if kind == frame.IPv6 {
		first = layers.LayerTypeIPv6
	}
	var got []byte
	segs := 0
	for b := s.payload; len(b) > 0; b = b[min(s.seg, len(b)):] {
		segs++
		one := b[:min(s.seg, len(b))]
		if head != 0 {
			h, drop := encap.ParseGPE(one)
			if k, ok := h.Kind(); drop != 0 || h.VNI() != vni || !ok || k != kind {
				t.Fatalf("segment %d: % x", segs, one[:8])
			}
		}
		if n, drop := encap.ParseIP(one[head:], kind); drop != 0 || n != len(one)-head {
			t.Fatalf("segment %d: %d of %d bytes, %v", segs, n, len(one)-head, drop)
		}
		p := gopacket.NewPacket(one[head:], first, gopacket.Default)
		tcp, _ := p.TransportLayer().(*layers.TCP)
		check.Need(t, tcp != nil && p.ErrorLayer() == nil, "%v", p)
		tcp.SetNetworkLayerForChecksum(p.NetworkLayer())
		if sum, err := tcp.ComputeChecksum(); err != nil || sum != 0 || tcp.Seq != uint32(77+len(got)) {
			t.Errorf("segment %d: checksum off by %#x, %v, sequence %d", segs, sum, err, tcp.Seq)
		}
		got = append(got, tcp.Payload...)
	}
	if segs != want || !bytes.Equal(got, payload) {
		t.Errorf("%d segments with %d bytes, want %d with %d", segs, len(got), want, len(payload))
	}
}

// One segment, of which only the checksum is to be done, is no run.
func TestUnfinishedPacket(t *testing.T) {
	u, r := fake4(), raw4()
	v, w := gpeVTEP(t, Config{}, u), ipipVTEP(t, Config{}, r)
	p := tcpPacket(t, false, 100)
	finished := bytes.Clone(p.data)
	f := p.superframe(0)
	f.GSO.Type = frame.GSONone
	check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}))
	check.OK(t, w.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, w, host(at(1)))}}))
	if s := u.sent[0]; s.seg != 0 || !bytes.Equal(s.payload, gpe(vni, frame.IPv4, false, finished)) {
		t.Errorf("% x", s.payload)
	}
	if s := r.sent[0]; s.seg != 0 || !bytes.Equal(s.payload, finished) {
		t.Errorf("% x", s.payload)
	}
}

// What a raw socket hands over in one piece becomes a superframe, and leaves through another
// tunnel as packets that fit.
func TestMergedOnReceipt(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, finished := range []bool{false, true} {
			in, out := raw4(), raw4()
			v, w := ipipVTEP(t, Config{}, in), ipipVTEP(t, Config{}, out)
			addPeer(t, v, host(at(1)))
			n := addPeer(t, w, host(at(2)))
			p := tcpPacket(t, v6, 5000)
			payload := bytes.Clone(p.data[len(p.data)-5000:])
			if !finished {
				p.unfinish()
			}
			in.addTOS(t, host(at(1)), p, 0xb8|ce) // the mark does not get lost
			b := frame.NewBatch(nil)
			check.OK(t, v.Readers()[0].Read(b))
			f := &b.Frames[0]
			if f.Drop != 0 || f.GSO.Size == 0 || f.SegLen() != v.MTU(1) || f.Headroom() < encap.EthernetLen {
				t.Fatalf("%v: %+v, segments of %d", f.Drop, f.GSO, f.SegLen())
			}
			check.OK(t, w.Writer(0).Write([]frame.Out{{F: f, Peer: n}}))
			checkSegments(t, out.sent[0], 0, 4, p.kind, payload)
			if s := out.sent[0]; s.seg != 1480 || s.tos != 0xb8|ce {
				t.Errorf("segments of %d, TOS %#x", s.seg, s.tos)
			}
		}
	}
	// A packet that fits is one as it is, and one that is no TCP is left to whoever is next.
	u := raw4()
	v := ipipVTEP(t, Config{}, u)
	addPeer(t, v, host(at(1)))
	long := bare4(0, 9, false)
	long.data = append(long.data, make([]byte, 2000)...)
	long.data[2], long.data[3] = byte(len(long.data)>>8), byte(len(long.data))
	u.add(t, host(at(1)), tcpPacket(t, false, 1440))
	u.add(t, host(at(1)), long)
	b := frame.NewBatch(nil)
	check.OK(t, v.Readers()[0].Read(b))
	for i := range b.Frames {
		if f := &b.Frames[i]; f.Drop != 0 || f.GSO != (frame.GSO{}) {
			t.Errorf("packet %d: %v %+v", i, f.Drop, f.GSO)
		}
	}
}

// A gateway can put an Ethernet header in front of a packet out of a run; a frame stays
// where it is, as does what is refused.
func TestRoomForAGateway(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	addPeer(t, v, at(1))
	p := bare4(0, 9, true)
	packets := [][]byte{gpe(vni, frame.IPv4, false, p.data), gpe(vni, frame.Ethernet, false, inner(1)), gpe(5, frame.IPv4, false, p.data), gpe(vni, frame.IPv6, false, bare6(0, 9).data)}
	for i, f := range u.hear(t, v.Readers()[0], at(1), packets...) {
		want := []int{frame.Headroom, 8, 0, frame.Headroom}[i]
		if f.Headroom() != want {
			t.Errorf("packet %d: headroom %d, want %d", i, f.Headroom(), want)
		}
	}
	r := raw4()
	w := ipipVTEP(t, Config{}, r)
	addPeer(t, w, host(at(1)))
	for range frame.MaxBatch {
		r.add(t, host(at(1)), tcpPacket(t, false, 1440))
	}
	b := frame.NewBatch(nil)
	check.OK(t, w.Readers()[0].Read(b))
	for i := range b.Frames {
		f := &b.Frames[i]
		if f.Push(encap.EthernetLen) == nil || !bytes.Equal(f.Pull(encap.EthernetLen), tcpPacket(t, false, 1440).data) {
			t.Fatalf("packet %d: headroom %d", i, f.Headroom())
		}
	}
}
