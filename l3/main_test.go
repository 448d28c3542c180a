package l3

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	macA = frame.MAC{2, 0, 0, 0, 0, 0xa}
	macB = frame.MAC{2, 0, 0, 0, 0, 0xb}
	ip4A = net.IP{192, 168, 7, 1}
	ip4B = net.IP{192, 168, 7, 2}
	ip6A = net.ParseIP("fd00::a")
	ip6B = net.ParseIP("fd00::b")
)

// fixed fills in lengths and checksums.
var fixed = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

func serialize(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, fixed, ls...); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
}

// ether is the header of a frame from A to B with these VLAN tags.
func ether(typ layers.EthernetType, vids ...uint16) (ls []gopacket.SerializableLayer) {
	e := &layers.Ethernet{DstMAC: macB[:], SrcMAC: macA[:], EthernetType: typ}
	ls = append(ls, e)
	for i, vid := range vids {
		outer := layers.EthernetTypeDot1Q
		if i == 0 && len(vids) == 2 {
			outer = layers.EthernetTypeQinQ
		}
		if i == 0 {
			e.EthernetType = outer
		} else {
			ls[i].(*layers.Dot1Q).Type = outer
		}
		ls = append(ls, &layers.Dot1Q{VLANIdentifier: vid, Priority: 5, Type: typ})
	}
	return ls
}

// udp4 returns a frame from A to B with an IPv4 packet of n bytes in it, DF set.
func udp4(t testing.TB, n int, vids ...uint16) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, IHL: 5, Id: 77, Flags: layers.IPv4DontFragment, TTL: 63, Protocol: layers.IPProtocolUDP, SrcIP: ip4A, DstIP: ip4B}
	u := &layers.UDP{SrcPort: 5001, DstPort: 5002}
	u.SetNetworkLayerForChecksum(ip)
	return serialize(t, append(ether(layers.EthernetTypeIPv4, vids...), ip, u, gopacket.Payload(counting(n-28)))...)
}

// udp6 is likewise one with an IPv6 packet of n bytes.
func udp6(t testing.TB, n int, vids ...uint16) []byte {
	t.Helper()
	ip := &layers.IPv6{Version: 6, HopLimit: 63, NextHeader: layers.IPProtocolUDP, SrcIP: ip6A, DstIP: ip6B}
	u := &layers.UDP{SrcPort: 5001, DstPort: 5002}
	u.SetNetworkLayerForChecksum(ip)
	return serialize(t, append(ether(layers.EthernetTypeIPv6, vids...), ip, u, gopacket.Payload(counting(n-48)))...)
}

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// entered returns a frame that came in on port 1.
func entered(b []byte) frame.Frame {
	f := frame.Make(b)
	f.From, f.VNI, f.Hash = frame.NewDest(1, 0), 100, 12345
	return f
}

func newTooBig(t testing.TB, cfg *TooBigConfig) *TooBig {
	t.Helper()
	s, err := NewTooBig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
