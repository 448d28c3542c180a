package vectors

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/vtep"
)

// rawRows have another host send packets, byte by byte, to a VTEP that has no network stack
// in front of it.
var rawRows = []row{
	rawRow("1.length-raw", []rawCase{
		{"nothing but the datagram", "", nil, in1, ""},
		{"padding behind it", "", func(b []byte) []byte { return append(b, "padding of a short frame"...) }, in1, ""},
		{"UDP length less than IP has", "", func(b []byte) []byte { return udpLength(b, -1) }, in1[:len(in1)-1], ""},
		{"UDP length more than IP has", "", func(b []byte) []byte { return udpLength(b, 1) }, nil, "short"},
		{"UDP length more than IP has, and padding for it", "", func(b []byte) []byte { return append(udpLength(b, 1), make([]byte, 30)...) }, nil, "short"},
		{"UDP length without its header", "", func(b []byte) []byte { return udpLength(b, 7-8-8-len(in1)) }, nil, "short"},
		{"UDP length 15", "", func(b []byte) []byte { return udpLength(b, 15-8-8-len(in1)) }, nil, "short"},
		{"UDP length 16", "", func(b []byte) []byte { return udpLength(b, -len(in1)) }, nil, "short"}, // no inner frame
		{"IP length more than there is", "", func(b []byte) []byte { return b[:len(b)-1] }, nil, "short"},
		{"IP length less than its header", "IPv4", func(b []byte) []byte { b[16], b[17] = 0, 19; return headerSum(b) }, nil, "bad-header"},
		{"IHL 6", "IPv4", func(b []byte) []byte { return ihl(b, 1) }, in1, ""},
		{"IHL 15, and padding", "IPv4", func(b []byte) []byte { return append(ihl(b, 10), make([]byte, 9)...) }, in1, ""},
		{"IHL 4", "IPv4", func(b []byte) []byte { b[14] = 0x44; return headerSum(b) }, nil, "bad-header"},
		{"version 5", "IPv4", func(b []byte) []byte { b[14] = 0x55; return headerSum(b) }, nil, "bad-header"},
		{"hop-by-hop options", "IPv6", func(b []byte) []byte {
			b = slices.Insert(b, 54, 17, 0, 1, 4, 0, 0, 0, 0)
			b[20] = 0
			binary.BigEndian.PutUint16(b[18:], uint16(len(b)-54))
			return b
		}, nil, "bad-header"},
	}),
	rawRow("1.fragments-raw", []rawCase{
		{"the first of two", "IPv4", func(b []byte) []byte { b[20] = 0x20; return headerSum(b) }, nil, "fragment"},
		{"the second of two", "IPv4", func(b []byte) []byte { b[20], b[21] = 0, 1; return headerSum(b) }, nil, "fragment"},
		{"in the middle, with DF", "IPv4", func(b []byte) []byte { b[20], b[21] = 0x7f, 0xff; return headerSum(b) }, nil, "fragment"},
		{"DF is no fragment", "IPv4", func(b []byte) []byte { b[20] = 0x40; return headerSum(b) }, in1, ""},
		{"the first of two", "IPv6", func(b []byte) []byte { return fragment6(b, 1) }, nil, "fragment"},
		{"the second of two", "IPv6", func(b []byte) []byte { return fragment6(b, 8) }, nil, "fragment"},
		{"all of it in one", "IPv6", func(b []byte) []byte { return fragment6(b, 0) }, nil, "fragment"},
	}),
}

// A rawCase changes a packet around in1: want comes out of the VTEP, or the packet is dropped
// for a reason.
type rawCase struct {
	name, only string
	change     func(b []byte) []byte
	want       []byte
	drop       string
}

// rawRow sends the packets of all cases to one VTEP: its interface takes a second to come up.
func rawRow(id string, cases []rawCase) row {
	return row{id: id, name: "byte by byte", sockets: func(t *testing.T, s side) {
		n := netns.New(t)
		us, them := n.Host("us"), n.Host("them")
		at, from := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
		if s.ip6 {
			at, from = netip.MustParseAddr("fd09::1"), netip.MustParseAddr("fd09::2")
		}
		n.Link(us, "", them, "")
		var u *afpacket.Underlay
		var err error
		us.Do(func() {
			u, err = afpacket.Listen(netip.AddrPortFrom(at, 4789), &afpacket.Config{
				Device: "eth0", Prefix: netip.PrefixFrom(at, 24), MAC: rmac(9),
			})
		})
		check.OK(t, err)
		v := check.Must(vtep.New(nil, u))(t)
		defer v.Close()
		check.OK(t, v.Control().Open(vni))
		packet := func(inner []byte) []byte {
			e := &layers.Ethernet{SrcMAC: rmac(8).HardwareAddr(), DstMAC: rmac(9).HardwareAddr(), EthernetType: layers.EthernetTypeIPv4}
			udp := &layers.UDP{SrcPort: 50000, DstPort: 4789}
			if s.ip6 {
				e.EthernetType = layers.EthernetTypeIPv6
				ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: at.AsSlice()}
				udp.SetNetworkLayerForChecksum(ip)
				return packets.Of(e, ip, udp, gopacket.Payload(vx(vni, inner)))
			}
			ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: at.AsSlice()}
			udp.SetNetworkLayerForChecksum(ip)
			return packets.Of(e, ip, udp, gopacket.Payload(vx(vni, inner)))
		}
		mark := eth(rmac(1), rmac(2), "mark")
		r, batch := v.Readers()[0], frame.NewBatch(nil)
		for _, c := range cases {
			if c.only != "" && (c.only == "IPv6") != s.ip6 {
				continue
			}
			b := packet(in1)
			if !s.ip6 {
				b[40], b[41] = 0, 0 // of the UDP checksum the cases do not speak
			}
			if c.change != nil {
				b = c.change(b)
			}
			them.Inject("eth0", b, packet(mark))
			timer := time.AfterFunc(5*time.Second, v.Pause)
			var got []frame.Frame
			for len(got) == 0 || !bytes.Equal(got[len(got)-1].Bytes(), mark) {
				if err := r.Read(batch); err != nil {
					t.Fatalf("%s: %v after %d frames", c.name, err, len(got))
				}
				for i := range batch.Frames {
					got = append(got, batch.Frames[i].Clone())
				}
			}
			timer.Stop()
			if len(got) != 2 {
				t.Errorf("%s: %d frames", c.name, len(got)-1)
				continue
			}
			switch f := &got[0]; {
			case c.drop != "" && f.Drop.String() != c.drop:
				t.Errorf("%s: dropped as %v, want %s", c.name, f.Drop, c.drop)
			case c.drop == "" && (f.Drop != 0 || !bytes.Equal(f.Bytes(), c.want)):
				t.Errorf("%s: %v, % x", c.name, f.Drop, f.Bytes())
			}
		}
	}}
}

// udpLength adds n to the length in the UDP header; over IPv6 the checksum is that of the
// new length.
func udpLength(b []byte, n int) []byte {
	at := 34
	if b[12] == 0x86 {
		at = 54
	}
	n += int(binary.BigEndian.Uint16(b[at+4:]))
	binary.BigEndian.PutUint16(b[at+4:], uint16(n))
	if at == 34 || at+n > len(b) || n < 8 {
		return b
	}
	b[at+6], b[at+7] = 0, 0
	c := onesSum(append(slices.Concat(b[22:54], []byte{0, 17, byte(n >> 8), byte(n)}), b[at:at+n]...))
	binary.BigEndian.PutUint16(b[at+6:], ^c)
	return b
}

// headerSum makes the checksum of the IPv4 header right again.
func headerSum(b []byte) []byte {
	b[24], b[25] = 0, 0
	n := max(int(b[14]&15)*4, 20)
	binary.BigEndian.PutUint16(b[24:], ^onesSum(b[14:14+n]))
	return b
}

// onesSum is the sum of RFC 1071.
func onesSum(b []byte) uint16 {
	sum := uint32(0)
	for i, x := range b {
		sum += uint32(x) << (8 * (1 - i%2))
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// ihl puts n words of options that do nothing into the IPv4 header.
func ihl(b []byte, n int) []byte {
	b = slices.Insert(b, 34, bytes.Repeat([]byte{1}, 4*n)...)
	b[14] += byte(n)
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
	return headerSum(b)
}

// fragment6 puts a fragment header with an offset field in front of the UDP header.
func fragment6(b []byte, offset uint16) []byte {
	b = slices.Insert(b, 54, 17, 0, byte(offset>>8), byte(offset), 0, 0, 0, 7)
	b[20] = 44
	binary.BigEndian.PutUint16(b[18:], uint16(len(b)-54))
	return b
}
