package kernel

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/vtep"
)

// shapeDifferences are those of frames of unusual shapes, in both directions.
var shapeDifferences = []difference{
	{setting: "receive", field: "outcome", packets: []string{"destination as source"}, kernel: "delivered unchanged", ours: "dropped", rule: toItself},
	{field: "outcome", packets: []string{"MTU + 1", "MTU + 4", "MTU + 550"}, kernel: "delivered unchanged", ours: "dropped", rule: overMTU},
}

// Rows of the documentation. A frame to the MAC it is from has arrived, as every bridge has it
// (reason reflect). What is longer than a port's MTU is dropped and counted at its egress, to a
// TAP as to a tunnel (reason too-big); the kernel's device does not look at its own MTU on
// receipt.
const (
	toItself = "sent to itself"
	overMTU  = "longer than the device"
)

// shape is a frame from the far host to the near one.
type shape struct {
	name  string
	frame []byte
}

// shapes are frames whose length, type or contents are unusual.
func shapes(mtu int) (ss []shape) {
	add := func(name string, f []byte) { ss = append(ss, shape{name, f}) }
	const unknown = 0x88b6
	fill := func(typ uint16, n int) []byte {
		return append(ethernet(nearInner, farInner, typ), make([]byte, n-14)...)
	}
	for _, n := range []int{14, 15, 17, 33, 34, 42, 46, 59, 60, 61, 63, 64, 65, 14 + mtu - 1, 14 + mtu} {
		add(fmt.Sprintf("%d bytes", n), fill(unknown, n))
	}
	good := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
	good6 := inner{src: farInner, dst: nearInner, ttl: 33, v6: true}.frame()
	edit := func(f []byte, at int, b ...byte) []byte {
		f = slices.Clone(f)
		copy(f[at:], b)
		return f
	}
	// Types up to 1500 are lengths (IEEE 802.3).
	add("802.3, LLC", append(ethernet(nearInner, farInner, 3), 0x42, 0x42, 0x03))
	add("802.3, padded", append(append(ethernet(nearInner, farInner, 3), 0x42, 0x42, 0x03), make([]byte, 43)...))
	add("802.3, length too long", append(ethernet(nearInner, farInner, 1500), 0xaa, 0xaa, 0x03))
	add("802.3, length 0", ethernet(nearInner, farInner, 0))
	add("type 1501", fill(1501, 60))
	add("type 1535", fill(1535, 60))
	add("type 1536", fill(1536, 60))
	add("type 0xffff", fill(0xffff, 60))

	add("destination zero", edit(good, 0, 0, 0, 0, 0, 0, 0))
	add("destination as source", edit(good, 0, hw(farInner)...))
	add("IPv4 padded", append(slices.Clone(good), make([]byte, 18)...))
	add("IPv4 version 5", edit(good, 14, 0x55))
	add("IPv4 header length 4", edit(good, 14, 0x44))
	add("IPv4 header length 15", edit(good, 14, 0x4f))
	add("IPv4 length too long", edit(good, 16, 0xff, 0xff))
	add("IPv4 length 0", edit(good, 16, 0, 0))
	add("IPv4 header checksum wrong", edit(good, 24, good[24]^1))
	add("IPv4 TTL 0", inner{src: farInner, dst: nearInner}.frame())
	add("IPv4 UDP checksum wrong", edit(good, 40, good[40]^1))
	add("IPv6 version 4", edit(good6, 14, 0x45))
	add("IPv6 length too long", edit(good6, 18, 0xff, 0xff))
	add("IPv6 hop limit 0", inner{src: farInner, dst: nearInner, v6: true}.frame())
	add("IPv6 in type IPv4", edit(good6, 12, 0x08, 0x00))
	add("IPv4 in type IPv6", edit(append(slices.Clone(good), make([]byte, 20)...), 12, 0x86, 0xdd))
	add("ARP cut", arpRequest(farInner)[:14+10])
	add("ARP padded", append(arpRequest(farInner), make([]byte, 18)...))
	add("MPLS", fill(0x8847, 60))
	add("PPPoE", fill(0x8864, 60))
	add("EAPOL to one host", fill(0x888e, 60))
	add("VXLAN inside", inner{src: farInner, dst: nearInner, ttl: 1, flow: 4789 - 1000}.frame())
	return ss
}

// inside is the MTU of a tunnel over an underlay of 1500.
func (fam family) inside() int {
	if fam.v6 {
		return 1430
	}
	return 1450
}

// Frames of any shape, out of the tunnel and into it: the same comes out of both.
func TestShapes(t *testing.T) {
	l := newLedger(t, shapeDifferences)
	delivered := 0
	overUnderlays(t, func(t *testing.T, x ourUnderlay) {
		fam := x.fam
		p := newPair(t, fam, x.with(settings{}))
		for _, c := range shapes(fam.inside()) {
			kernel, ours := p.receive(fam.packet(outerIP{}, vxlan(c.frame)))
			l.compare(t, fam, "receive", c.name, "outcome", outcome(c.frame, kernel), outcome(c.frame, ours))
			if outcome(c.frame, ours) == "delivered unchanged" {
				delivered++
			}
			there := slices.Concat(hw(farInner), hw(nearInner), c.frame[12:])
			k, u := p.send(there)
			l.compare(t, fam, "send", c.name, "packets", fmt.Sprint(len(k)), fmt.Sprint(len(u)))
			for i := range min(len(k), len(u)) {
				l.compare(t, fam, "send", c.name, "inner frame", k[i].fields(there)["inner frame"], u[i].fields(there)["inner frame"])
			}
		}

		// What comes out of the tunnel may be longer than the device that it comes out of.
		for _, s := range []*side{p.kernel, p.ours} {
			s.far.MTU("eth0", 9000)
			s.near.MTU("eth0", 9000)
		}
		for _, more := range []int{0, 1, 4, 550} {
			f := append(ethernet(nearInner, farInner, 0x88b6), make([]byte, fam.inside()+more)...)
			kernel, ours := p.receive(fam.packet(outerIP{}, vxlan(f)))
			l.compare(t, fam, "", fmt.Sprint("MTU + ", more), "outcome", outcome(f, kernel), outcome(f, ours))
		}
	})
	check.True(t, delivered >= 60, "only %d frames were delivered: the test cannot tell", delivered)
}

// The outer TTL, inherited from every inner one that matters.
func TestSendTTL(t *testing.T) {
	l := newLedger(t, nil)
	overUnderlays(t, func(t *testing.T, x ourUnderlay) {
		fam := x.fam
		p := newPair(t, fam, x.with(settings{args: []string{"ttl", "inherit"}, header: vtep.Header{TTL: vtep.Inherit}}))
		for _, v6 := range []bool{false, true} {
			for _, ttl := range []uint8{0, 1, 2, 63, 64, 65, 127, 128, 254, 255} {
				in := inner{src: nearInner, dst: farInner, v6: v6, ttl: ttl}
				kernel, ours := p.send(in.frame())
				name := fmt.Sprintf("%s TTL %d", in.family(), ttl)
				get := func(o []outer) string {
					if len(o) != 1 {
						return fmt.Sprintf("%d packets", len(o))
					}
					return fmt.Sprint(o[0].ttl)
				}
				l.compare(t, fam, "", name, "TTL", get(kernel), get(ours))
			}
		}
	})
}

// The first and the last VNI, with the kernel as peer: on the wire they are what they are,
// and do not take each other's frames.
func TestEdgeVNIs(t *testing.T) {
	fam := families[0]
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, fam.near+fam.bits, b, fam.far+fam.bits)
	for _, h := range []*netns.Host{a, b} {
		h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	}
	ours := newNode(t, a, fam.near, settings{})
	ids := []frame.VNI{0, 1, frame.MaxVNI - 1, frame.MaxVNI}
	for i, id := range ids {
		tap, vx := fmt.Sprint("tap", i), fmt.Sprint("vx", i)
		ours.vsi(id, fam.far)
		ours.tap(id, a, tap, frame.MAC{})
		a.Addr(tap, fmt.Sprintf("192.168.%d.1/24", i))
		b.VXLAN(vx, netns.VXLAN{ID: int(id), Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: fmt.Sprintf("192.168.%d.2/24", i)})
	}
	wire := a.Capture("eth0", "udp port 4789")
	for i, id := range ids {
		a.Until("an answer", func() bool { return answers(t, a, fmt.Sprintf("192.168.%d.2", i)) })
		b.Ping(fmt.Sprintf("192.168.%d.1", i), 1)
		filter := fmt.Sprintf("icmp && ip.addr == 192.168.%d.0/24", i)
		for _, row := range netns.Fields(t, wire.Seen(), filter, "vxlan.vni", "vxlan.flags") {
			check.True(t, row[0] == fmt.Sprint(uint32(id)) && strings.HasPrefix(row[1], "0x08"), "VNI %d: %v", id, row)
		}
		got := b.Counter(fmt.Sprint("vx", i), "rx_packets")
		check.True(t, got != 0, "VNI %d: the kernel's device received nothing", id)
	}
	var want []byte
	want = binary.BigEndian.AppendUint32(want, uint32(frame.MaxVNI)<<8)
	check.True(t, slices.ContainsFunc(wire.Seen(), func(p netns.Packet) bool { return strings.Contains(string(p.Data), "\x08\x00\x00\x00"+string(want)) }),
		"no header with %x on the wire", want)
}
