package icmperr

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// An answered frame as gopacket decodes it.
type answered struct {
	eth      *layers.Ethernet
	tags     []uint16
	src, dst net.IP
	length   int // of the IP packet
	mtu      int
	quote    []byte
}

// decode has gopacket take an answer apart, and put it together again with checksums
// of its own: the same bytes must come out.
func decode(t testing.TB, b []byte) (a answered) {
	t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v\n% x", e.Error(), b)
	}
	var ls []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			a.eth = l
		case *layers.Dot1Q:
			a.tags = append(a.tags, l.VLANIdentifier)
		case *layers.IPv4:
			a.src, a.dst, a.length = l.SrcIP, l.DstIP, int(l.Length)
			if l.TTL != 64 || l.IHL != 5 || l.Flags&layers.IPv4MoreFragments != 0 || l.FragOffset != 0 {
				t.Errorf("IPv4 header %+v", l)
			}
		case *layers.IPv6:
			a.src, a.dst, a.length = l.SrcIP, l.DstIP, 40+int(l.Length)
			if l.HopLimit != 64 {
				t.Errorf("hop limit %d", l.HopLimit)
			}
		case *layers.ICMPv4:
			if l.TypeCode != layers.CreateICMPv4TypeCode(3, 4) || l.Id != 0 {
				t.Errorf("ICMP %v, unused bytes %d", l.TypeCode, l.Id)
			}
			a.mtu, a.quote = int(l.Seq), l.Payload
		case *layers.ICMPv6:
			if l.TypeCode != layers.CreateICMPv6TypeCode(2, 0) {
				t.Errorf("ICMPv6 %v", l.TypeCode)
			}
			l.SetNetworkLayerForChecksum(p.NetworkLayer())
			a.mtu, a.quote = int(binary.BigEndian.Uint32(l.Payload)), l.Payload[4:]
		case *gopacket.Payload:
			continue // what ICMP has taken
		default:
			t.Errorf("layer %v", l.LayerType())
			continue
		}
		ls = append(ls, l.(gopacket.SerializableLayer))
	}
	if a.mtu == 0 {
		t.Fatalf("no answer: %v", p)
	}
	rest := a.quote
	if a.src.To4() == nil { // gopacket leaves the MTU field to the payload
		rest = binary.BigEndian.AppendUint32(nil, uint32(a.mtu))
		rest = append(rest, a.quote...)
	}
	if again := packets.Of(append(ls, gopacket.Payload(rest))...); !bytes.Equal(again, b) {
		t.Errorf("lengths or checksums:\n% x, gopacket writes\n% x", b[:min(len(b), 80)], again[:min(len(again), 80)])
	}
	return a
}

// Every kind of frame that is answered, and what with.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []byte
		mtu    int // At.MTU
		say    int // the MTU in the answer
		length int // of the answer's IP packet
		tags   []uint16
	}{
		{"IPv4 over a VXLAN tunnel over IPv4", udp4(t, 1500), 1464, 1450, 576, nil},
		{"one byte too long", udp4(t, 1451), 1464, 1450, 576, nil},
		{"jumbo", udp4(t, 9000), 8964, 8950, 576, nil},
		{"tag", udp4(t, 1500, 7), 1464, 1446, 576, []uint16{7}},
		{"one byte too long with a tag", udp4(t, 1447, 7), 1464, 1446, 576, []uint16{7}},
		{"two tags", udp4(t, 1500, 7, 9), 1464, 1442, 576, []uint16{7, 9}},
		{"MTU under 576: an answer that fits", udp4(t, 600), 314, 300, 300, nil},
		{"short packet, all of it quoted", udp4(t, 500), 480, 466, 466, nil},
		{"the least MTU", udp4(t, 69), 82, 68, 68, nil},
		{"IPv6 over IPv6", udp6(t, 1500), 1444, 1430, 1280, nil},
		{"IPv6, one byte too long", udp6(t, 1431), 1444, 1430, 1280, nil},
		{"IPv6, the least MTU", udp6(t, 1281), 1294, 1280, 1280, nil},
		{"IPv6, jumbo", udp6(t, 9000), 8944, 8930, 1280, nil},
		{"IPv6, two tags", udp6(t, 1500, 7, 9), 1464, 1442, 1280, []uint16{7, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTooBig(0, 0)
			f := entered(c.in)
			if v := s.Process(&f, frame.At{MTU: c.mtu}); v != frame.Reply {
				t.Fatalf("%v, %+v", v, s.Stats())
			}
			a := decode(t, f.Bytes())
			if a.mtu != c.say || a.length != c.length || !slices.Equal(a.tags, c.tags) {
				t.Errorf("MTU %d, %d bytes, tags %v, want %d, %d, %v", a.mtu, a.length, a.tags, c.say, c.length, c.tags)
			}
			if !bytes.Equal(a.eth.SrcMAC, macB[:]) || !bytes.Equal(a.eth.DstMAC, macA[:]) {
				t.Errorf("from %v to %v", a.eth.SrcMAC, a.eth.DstMAC)
			}
			if from, to := a.src, a.dst; !(from.Equal(ip4B) && to.Equal(ip4A)) && !(from.Equal(ip6B) && to.Equal(ip6A)) {
				t.Errorf("from %v to %v", from, to)
			}
			packet := c.in[14+4*len(c.tags):]
			if !bytes.Equal(a.quote, packet[:len(a.quote)]) {
				t.Errorf("quoted % x, not the start of the packet", a.quote[:28])
			}
			if f.Len() > c.mtu || f.Hash != 0 || f.From != frame.NewDest(1, 0) {
				t.Errorf("%d bytes, hash %d, from %v", f.Len(), f.Hash, f.From)
			}
			if st := s.Stats(); st.Sent4+st.Sent6 != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A superframe is answered if one of its segments is too long; what is quoted is its
// own start, and the answer is an ordinary frame.
func TestSuperframe(t *testing.T) {
	in := udp4(t, 9000)
	super := func(size uint16) frame.Frame {
		f := entered(in)
		// Ethernet, IPv4 and UDP headers are repeated in every segment.
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOUDP, Size: size,
			CsumStart: uint16(f.Headroom()) + 34, CsumOffset: 6, DataStart: uint16(f.Headroom()) + 42}
		return f
	}
	s := newTooBig(0, 0)
	f := super(1422) // 1450 with its IP and UDP headers
	if v := s.Process(&f, frame.At{MTU: 1464}); v != frame.Continue || f.GSO.Size != 1422 {
		t.Errorf("segments that fit: %v", v)
	}
	f = super(1423)
	if v := s.Process(&f, frame.At{MTU: 1464}); v != frame.Reply {
		t.Fatalf("%v, %+v", v, s.Stats())
	}
	a := decode(t, f.Bytes())
	if a.mtu != 1450 || a.length != 576 || f.GSO != (frame.GSO{}) || !bytes.Equal(a.quote, in[14:14+len(a.quote)]) {
		t.Errorf("MTU %d, %d bytes, %+v", a.mtu, a.length, f.GSO)
	}
}
