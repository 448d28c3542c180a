package icmperr

import (
	"net"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
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

// ether is the header of a frame from A to B.
func ether(typ layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{DstMAC: macB[:], SrcMAC: macA[:], EthernetType: typ}
}

// tagged puts VLAN tags, of two the outer one a service tag, into a frame.
func tagged(b []byte, vids []byte) []byte {
	for i, vid := range slices.Backward(vids) {
		tag := []byte{0x81, 0, 5 << 5, vid}
		if i == 0 && len(vids) == 2 {
			tag[0], tag[1] = 0x88, 0xa8
		}
		b = slices.Insert(b, 12, tag...)
	}
	return b
}

// udp4 returns a frame from A to B with an IPv4 packet of n bytes in it, DF set.
func udp4(t testing.TB, n int, vids ...byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, IHL: 5, Id: 77, Flags: layers.IPv4DontFragment, TTL: 63, Protocol: layers.IPProtocolUDP, SrcIP: ip4A, DstIP: ip4B}
	u := &layers.UDP{SrcPort: 5001, DstPort: 5002}
	u.SetNetworkLayerForChecksum(ip)
	return tagged(packets.Of(ether(layers.EthernetTypeIPv4), ip, u, gopacket.Payload(counting(n-28))), vids)
}

// udp6 is likewise one with an IPv6 packet of n bytes.
func udp6(t testing.TB, n int, vids ...byte) []byte {
	t.Helper()
	ip := &layers.IPv6{Version: 6, HopLimit: 63, NextHeader: layers.IPProtocolUDP, SrcIP: ip6A, DstIP: ip6B}
	u := &layers.UDP{SrcPort: 5001, DstPort: 5002}
	u.SetNetworkLayerForChecksum(ip)
	return tagged(packets.Of(ether(layers.EthernetTypeIPv6), ip, u, gopacket.Payload(counting(n-48))), vids)
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

func newTooBig(perSender, total int) *PathMTU {
	t := new(PathMTU)
	t.Init(perSender, total)
	return t
}
