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

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// queued returns how many bytes of packets wait.
func (g *Gateway) queued() int {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.Bytes()
}
