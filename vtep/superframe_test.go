package vtep

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// super returns a TCP superframe with a payload of n bytes that is cut into segments of
// size bytes; 0 leaves only the checksum to be done.
func super(t testing.TB, n, size int) frame.Frame {
	t.Helper()
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	ip := &layers.IPv4{Version: 4, TTL: 9, TOS: 0xb8 | ect0, Protocol: layers.IPProtocolTCP, Flags: layers.IPv4DontFragment,
		SrcIP: net.IP{192, 168, 7, 1}, DstIP: net.IP{192, 168, 7, 2}}
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 2000, Seq: 77, Ack: 5, ACK: true, PSH: true, Window: 500}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: false},
		&layers.Ethernet{DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4},
		ip, tcp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	f := frame.Make(b.Bytes())
	p, head := f.Bytes(), f.Headroom()
	pseudo := uint32(6 + 20 + n)
	for _, w := range []int{26, 28, 30, 32} {
		pseudo += uint32(binary.BigEndian.Uint16(p[w:]))
	}
	pseudo = pseudo>>16 + pseudo&0xffff
	binary.BigEndian.PutUint16(p[14+20+16:], uint16(pseudo+pseudo>>16))
	f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(head + 34), CsumOffset: 16, DataStart: uint16(head + 54)}
	if size > 0 {
		f.GSO.Type, f.GSO.Size = frame.GSOTCP4, uint16(size)
	}
	return f
}

// A superframe leaves as one run: each segment behind a header of its own, with a
// checksum that gopacket finds right, and the payload in order.
func TestSuperframe(t *testing.T) {
	for _, c := range []struct{ n, size, segs int }{{3000, 1400, 3}, {2800, 1400, 2}, {100, 0, 1}, {60000, 1448, 42}} {
		u := fake4()
		v := newVTEP(t, &Config{Header: Header{TOS: Inherit}}, u)
		flood(t, v, vni, at(1), at(2))
		f := super(t, c.n, c.size)
		whole := bytes.Clone(f.Bytes())
		check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Tag: vni}, {F: &f, Peer: addPeer(t, v, at(1)), Tag: 9}}))
		check.Need(t, len(u.sent) == 2 && len(u.sent[0].to) == 2, "%+v", u.sent)
		check.True(t, bytes.Equal(whole, f.Bytes()), "the frame was written to")
		for k, tag := range []frame.VNI{vni, 9} {
			s := u.sent[k]
			check.True(t, s.tos == 0xb8|ect0, "TOS %#x", s.tos)
			if (s.seg == 0) != (c.segs == 1) || s.seg != 0 && s.seg != 8+14+20+20+c.size {
				t.Errorf("%d bytes: segments of %d", c.n, s.seg)
			}
			if s.seg == 0 {
				s.seg = len(s.payload)
			}
			var got []byte
			segs := 0
			for b := s.payload; len(b) > 0; b = b[min(s.seg, len(b)):] {
				segs++
				head, drop := encap.ParseVXLAN(b)
				if drop != 0 || head.VNI() != tag {
					t.Fatalf("segment %d: %v %v", segs, head.VNI(), drop)
				}
				p := gopacket.NewPacket(b[8:min(s.seg, len(b))], layers.LayerTypeEthernet, gopacket.Default)
				tcp, _ := p.TransportLayer().(*layers.TCP)
				check.Need(t, tcp != nil && p.ErrorLayer() == nil, "%v", p)
				if want := uint32(77 + len(got)); tcp.Seq != want {
					t.Errorf("segment %d: sequence %d, want %d", segs, tcp.Seq, want)
				}
				tcp.SetNetworkLayerForChecksum(p.NetworkLayer())
				if sum, err := tcp.ComputeChecksum(); err != nil || sum != 0 {
					t.Errorf("segment %d: checksum off by %#x, %v", segs, sum, err)
				}
				got = append(got, tcp.Payload...)
			}
			if segs != c.segs || !bytes.Equal(got, whole[54:]) {
				t.Errorf("%d segments with %d bytes, want %d with %d", segs, len(got), c.segs, c.n)
			}
		}
		if st := v.Stats(); st.Tx.Frames != 3 || st.Tx.Bytes != uint64(3*f.Len()) {
			t.Errorf("%+v", st.Tx)
		}
	}
}

// Metadata that lies sends nothing.
func TestSuperframeThatLies(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1))
	f := super(t, 3000, 1400)
	f.GSO.Type = frame.GSOTCP6
	outs := []frame.Out{{F: &f, Tag: vni}, {F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}
	check.OK(t, v.Writer(0).Write(outs))
	if outs[0].Drop != frame.BadHeader || outs[1].Drop != frame.BadHeader || len(u.sent) != 0 {
		t.Errorf("%v, %v, %d sent", outs[0].Drop, outs[1].Drop, len(u.sent))
	}
}

func TestSuperframeAllocs(t *testing.T) {
	u := fake4()
	u.send = func([]frame.Datagram) error { return nil }
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2), at(3))
	n := addPeer(t, v, at(2))
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(2).Addr(), Header: Header{TTL: 3}}}))
	u.path(endpoint(t, at(3)), 1000, nil)
	f := super(t, 60000, 1380)
	w, outs := v.Writer(0), []frame.Out{{F: &f, Peer: n, Tag: vni}, {F: &f, Tag: vni}}
	if k := testing.AllocsPerRun(100, func() {
		if err := w.Write(outs); err != nil || outs[0].Drop != 0 || outs[1].Drop != 0 {
			t.Fatal(err, outs)
		}
	}); k != 0 {
		t.Errorf("%v allocations", k)
	}
}
