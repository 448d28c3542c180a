package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

// gpeDifferences are those of VXLAN-GPE.
var gpeDifferences = []difference{
	{field: "outcome", packets: []string{"octet 0 bit 0x02"}, kernel: "dropped", ours: "delivered unchanged", rule: gpeBUM},
	{field: "outcome", packets: []string{"octet 3 bit 0x02", "octet 3 bit 0x04", "next protocol 3", "next protocol 4", "next protocol 5",
		"IPv4 as IPv6", "IPv6 as IPv4", "IPv4 with options cut", "IPv4 length too long", "IPv6 length too long"},
		kernel: "delivered unchanged", ours: "dropped", rule: gpeInside},
	{field: "outcome", packets: []string{"IPv4 padded", "IPv6 padded"}, kernel: "delivered unchanged", ours: "delivered, padding cut off", rule: gpeInside},
}

// Rows of the documentation. The kernel's device hands to its host what is behind the header.
const (
	gpeBUM    = "B bit of VXLAN-GPE"
	gpeInside = "packets in VXLAN-GPE"
)

// newGPEPair is a pair whose devices take IP packets without Ethernet: ours is a TUN.
func newGPEPair(t *testing.T, fam family, reserved vtep.Reserved) *pair {
	t.Helper()
	p := barePair(t, fam)
	p.kernel.near.IP("link", "add", "vx0", "type", "vxlan", "external", "vnifilter", "gpe", "dstport", "4790", "local", fam.near)
	p.kernel.near.Run("bridge", "vni", "add", "vni", fmt.Sprint(vni), "dev", "vx0")
	p.ourNode = newNode(t, p.ours.near, fam.near, settings{typ: encap.TypeGPE, reserved: reserved})
	p.tun(p.ours.near, p.ours.dev, fam.far)
	p.wrap = func(mark []byte) []byte {
		return fam.gpe(gpeHeader, packets.Of(&layers.IPv4{Version: 4, TTL: 1, Protocol: 253, SrcIP: net.IPv4(192, 168, 7, 1),
			DstIP: net.IPv4(192, 168, 7, 2)}, gopacket.Payload(mark[14:])))
	}
	p.start()
	return p
}

// tun joins a TUN device of a host to a peer.
func (n *ourNode) tun(h *netns.Host, name, peer string) {
	n.t.Helper()
	seg, err := n.Segment(vni, &node.Segment{Tunnel: n.v.Name(), CrossConnect: netip.MustParseAddr(peer)})
	n.must(err)
	tun := check.Must(port.OpenTUN(name, &port.DeviceConfig{Namespace: h.NS}))(n.t)
	n.must(seg.Add(tun, nil))
}

// gpeHeader is that of an IPv4 packet of the test's VNI: I, P, next protocol 1.
const gpeHeader = 0x0c<<56 | 1<<32 | vni<<8

// gpe makes a packet from the peer.
func (fam family) gpe(header uint64, inner []byte) []byte {
	return fam.packet(outerIP{port: encap.GPEPort}, append(binary.BigEndian.AppendUint64(nil, header), inner...))
}

// Strict is what the kernel does. Each bit of the header is other than in a good one, and each
// next protocol has a packet of its own behind it.
func TestReceiveGPE(t *testing.T) {
	l := newLedger(t, gpeDifferences)
	const header, length = "rx_errors rx_frame_errors", "rx_errors rx_length_errors"
	inFamilies(t, func(t *testing.T, fam family) {
		p := newGPEPair(t, fam, vtep.ReservedStrict)
		in := inner{src: farInner, dst: nearInner, ttl: 33}
		ethernet := in.frame()
		ip4 := ethernet[14 : 14+41] // without padding
		in.v6 = true
		ip6 := in.frame()[14:]
		try := func(name string, header uint64, packet []byte) (kernel, ours string) {
			t.Helper()
			k, u := p.receive(fam.gpe(header, packet))
			kernel, ours = outcome(packet, k), outcome(packet, u)
			if trimmed, ok := bytes.CutSuffix(packet, padding); ok && len(u) == 1 && bytes.Equal(u[0], trimmed) {
				ours = "delivered, padding cut off"
			}
			l.compare(t, fam, "", name, "outcome", kernel, ours)
			return kernel, ours
		}
		counted := func(name string, header uint64, packet []byte, kernel, ours string) {
			t.Helper()
			count := p.count()
			try(name, header, packet)
			count.want(t, name, kernel, ours)
		}

		for i := range 64 {
			kernel, ours := header, "reserved-bits"
			switch {
			case i >= 60 && i < 62:
				kernel, ours = "", "gpe-version"
			case i == 59: // I
				kernel, ours = "", "no-vni-flag"
			case i == 57: // B
				ours = ""
			case i == 56: // O
				kernel, ours = "", "gpe-oam"
			case i == 33: // next protocol 3: Ethernet, which a TUN does not take
				kernel, ours = "", "tx kind"
			case i == 58 || i >= 32 && i < 40: // P, next protocol
				kernel, ours = "", "gpe-protocol"
			case i >= 8 && i < 32:
				kernel, ours = "", "unknown-vni"
			}
			// Counters take long to read: of octets that have one field, those of one bit.
			if octet := 7 - i/8; octet == 0 || octet == 3 || i%8 == 0 {
				counted(bitName(i), gpeHeader^uint64(1)<<i, ip4, kernel, ours)
			} else {
				try(bitName(i), gpeHeader^uint64(1)<<i, ip4)
			}
		}

		next := func(n uint64) uint64 { return gpeHeader&^(0xff<<32) | n<<32 }
		delivered := 0
		for n := range uint64(256) {
			packet := map[uint64][]byte{2: ip6, 3: ethernet}[n]
			if packet == nil {
				packet = ip4
			}
			if _, ours := try(fmt.Sprint("next protocol ", n), next(n), packet); ours == "delivered unchanged" {
				delivered++
			}
		}
		check.True(t, delivered == 2, "%d next protocols were delivered, want IPv4 and IPv6", delivered)

		options := slices.Clone(ip4[:20])
		options[0] = 0x46
		long4, long6 := slices.Clone(ip4), slices.Clone(ip6)
		long4[3]++
		long6[5]++
		counted("IPv4 padded", next(1), slices.Concat(ip4, padding), "", "")
		counted("IPv6 padded", next(2), slices.Concat(ip6, padding), "", "")
		counted("IPv4 cut", next(1), ip4[:19], length, "short")
		counted("IPv6 cut", next(2), ip6[:39], length, "short")
		counted("IPv4 with options cut", next(1), options, "", "short")
		counted("IPv4 length too long", next(1), long4, "", "short")
		counted("IPv6 length too long", next(2), long6, "", "short")
		counted("IPv4 as IPv6", next(2), ip4, "", "bad-header")
		counted("IPv6 as IPv4", next(1), ip6, "", "bad-header")
	})
}

var padding = make([]byte, 5)
