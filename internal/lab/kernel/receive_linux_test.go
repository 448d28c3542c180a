package kernel

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
)

// receiveDifferences are those of packets on their way out of the tunnel.
var receiveDifferences = []difference{
	{field: "outcome", packets: []string{"flag 0x80", "flag 0x40", "flag 0x20", "flag 0x10", "flag 0x04", "flag 0x02", "flag 0x01",
		"reserved byte 1", "reserved byte 3", "reserved byte 7"}, kernel: "dropped", ours: "delivered unchanged", rule: reservedBits},
	{field: "outcome", packets: []string{"own source MAC"}, kernel: "dropped", ours: "delivered unchanged", rule: ownMAC},
	{field: "outcome", packets: []string{"IPv4 cut", "IPv4 empty", "IPv6 cut"}, kernel: "dropped", ours: "delivered unchanged", rule: cutIP},
	{field: "outcome", packets: []string{"tagged"}, kernel: "delivered unchanged", ours: "dropped", rule: innerVLAN},
	{field: "outcome", packets: []string{"LLDP"}, kernel: "delivered unchanged", ours: "dropped", rule: bridgeGroup},
}

// ECN on receipt: each cell of RFC 6040, figure 4. There is no difference: Linux 6.18
// raises ECT(0) to ECT(1) too.
func TestReceiveECN(t *testing.T) {
	l := newLedger(t, nil)
	const not, ect1, ect0, ce = 0, 1, 2, 3
	want := [4][4]string{ // inner, outer
		not:  {not: "Not-ECT", ect1: "Not-ECT", ect0: "Not-ECT", ce: "dropped"},
		ect1: {not: "ECT(1)", ect1: "ECT(1)", ect0: "ECT(1)", ce: "CE"},
		ect0: {not: "ECT(0)", ect1: "ECT(1)", ect0: "ECT(0)", ce: "CE"},
		ce:   {not: "CE", ect1: "CE", ect0: "CE", ce: "CE"},
	}
	overUnderlays(t, func(t *testing.T, x ourUnderlay) {
		fam := x.fam
		p := newPair(t, fam, x.with(settings{}))
		for cell := range uint8(2 * 4 * 4) {
			innerECN, outerECN := cell>>2&3, cell&3
			in := inner{src: farInner, dst: nearInner, v6: cell>>4 == 1, ttl: 33, tos: 0xb8 | innerECN}
			name := fmt.Sprintf("%s %s in %s", in.family(), ecnName[innerECN], ecnName[outerECN])
			count := p.count()
			kernel, ours := p.receive(fam.packet(outerIP{tos: 0x20 | outerECN}, vxlan(in.frame())))
			got := ecnOutcome(in, ours)
			l.compare(t, fam, "", name, "inner ECN", ecnOutcome(in, kernel), got)
			check.True(t, got == want[innerECN][outerECN], "%s: %s, want %s", name, got, want[innerECN][outerECN])
			if got == "dropped" {
				count.want(t, name, "rx_errors rx_frame_errors", "ecn")
			} else {
				count.want(t, name, "", "")
			}
		}
	})
}

// ecnOutcome says what the inner ECN field became. Nothing else may have changed but,
// in IPv4, the checksum of the header, which must be right.
func ecnOutcome(in inner, out [][]byte) string {
	if len(out) == 0 {
		return "dropped"
	}
	for ecn := range uint8(4) {
		in.tos = in.tos&^3 | ecn
		if len(out) == 1 && bytes.Equal(in.frame(), out[0]) {
			return ecnName[ecn]
		}
	}
	return fmt.Sprintf("%x", out)
}

// outcome says what became of a packet whose inner frame was in.
func outcome(in []byte, out [][]byte) string {
	switch {
	case len(out) == 0:
		return "dropped"
	case len(out) > 1:
		return fmt.Sprintf("delivered %d times", len(out))
	case bytes.Equal(in, out[0]):
		return "delivered unchanged"
	}
	return fmt.Sprintf("delivered as %x", out[0])
}

// received is a packet from the peer, and under which names each counts it as dropped,
// "" = not at all.
type received struct {
	name         string
	inner        []byte
	payload      []byte // nil = inner behind a good header
	outer        outerIP
	kernel, ours string
}

func receivedPackets(fam family) []received {
	good := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
	good6 := inner{src: farInner, dst: nearInner, ttl: 33, v6: true}.frame()
	with := func(at int, b ...byte) []byte { // a header with other bytes
		p := vxlan(good)
		copy(p[at:], b)
		return p
	}
	from := func(src string) []byte { return inner{src: src, dst: nearInner, ttl: 33}.frame() }
	to := func(dst string) []byte { return inner{src: farInner, dst: dst, ttl: 33}.frame() }
	noIP := ethernet(nearInner, farInner, 0x88b6)

	const header, length = "rx_errors rx_frame_errors", "rx_errors rx_length_errors"
	csum, zeroCsum, other := "UdpInCsumErrors", "", "10.0.0.3"
	if fam.v6 {
		csum, zeroCsum, other = "Udp6InCsumErrors", "Udp6InCsumErrors", "fd00::3"
	}
	return []received{
		{name: "good", inner: good},
		{name: "ARP in CE", inner: arpRequest(farInner), outer: outerIP{tos: 3}},
		{name: "no IP in CE", inner: append(noIP, "no IP"...), outer: outerIP{tos: 3}},
		{name: "no IP, empty", inner: noIP},
		{name: "broadcast", inner: to("ff:ff:ff:ff:ff:ff")},
		{name: "multicast", inner: to("01:00:5e:01:02:03")},
		{name: "unknown destination", inner: to("02:00:00:00:cc:01")},

		{name: "I flag missing", inner: good, payload: with(0, 0), ours: "no-vni-flag"},
		{name: "all flags but I", inner: good, payload: with(0, 0xf7), ours: "no-vni-flag"},
		{name: "flag 0x80", inner: good, payload: with(0, 0x88), kernel: header},
		{name: "flag 0x40", inner: good, payload: with(0, 0x48), kernel: header},
		{name: "flag 0x20", inner: good, payload: with(0, 0x28), kernel: header},
		{name: "flag 0x10", inner: good, payload: with(0, 0x18), kernel: header},
		{name: "flag 0x04", inner: good, payload: with(0, 0x0c), kernel: header},
		{name: "flag 0x02", inner: good, payload: with(0, 0x0a), kernel: header},
		{name: "flag 0x01", inner: good, payload: with(0, 0x09), kernel: header},
		{name: "reserved byte 1", inner: good, payload: with(1, 0x01), kernel: header},
		{name: "reserved byte 3", inner: good, payload: with(3, 0x80), kernel: header},
		{name: "reserved byte 7", inner: good, payload: with(7, 0x01), kernel: header},
		{name: "unknown VNI", inner: good, payload: with(4, 0, 0, 1), ours: "unknown-vni"},

		{name: "no header", inner: good, payload: []byte{}, ours: "short"},
		{name: "header of 7 bytes", inner: good, payload: with(0)[:7], ours: "short"},
		{name: "header only", inner: good, payload: with(0)[:8], ours: "short"},
		{name: "inner frame of 13 bytes", inner: good, payload: with(0)[:8+13], ours: "short"},
		{name: "IPv4 empty", inner: good[:14], kernel: length},
		{name: "IPv4 cut", inner: good[:14+19], kernel: length},
		{name: "IPv4 header only", inner: good[:14+20]},
		{name: "IPv6 cut", inner: good6[:14+39], kernel: length},

		{name: "multicast source MAC", inner: from("03:00:00:00:bb:01"), ours: "bad-source-mac"},
		{name: "broadcast source MAC", inner: from("ff:ff:ff:ff:ff:ff"), ours: "bad-source-mac"},
		{name: "zero source MAC", inner: from("00:00:00:00:00:00"), ours: "bad-source-mac"},
		{name: "own source MAC", inner: from(devMAC)},
		{name: "tagged", inner: tagged(good, 5), ours: "inner-vlan"},
		{name: "LLDP", inner: append(ethernet("01:80:c2:00:00:0e", farInner, 0x88cc), "none"...), ours: "reserved-mac"},

		{name: "checksum zero", inner: good, outer: outerIP{checksum: zero}, kernel: zeroCsum, ours: zeroCsum},
		{name: "checksum wrong", inner: good, outer: outerIP{checksum: wrong}, kernel: csum, ours: csum},
		{name: "other peer", inner: from("02:00:00:00:bb:02"), outer: outerIP{src: other}},
		{name: "moved to other peer", inner: good, outer: outerIP{src: other}},
	}
}

// The same packets to both: what comes out of the devices must be the same, and what
// does not is counted.
func TestReceive(t *testing.T) {
	l := newLedger(t, receiveDifferences)
	overUnderlays(t, func(t *testing.T, x ourUnderlay) {
		fam := x.fam
		p := newPair(t, fam, x.with(settings{}))
		for _, c := range receivedPackets(fam) {
			if c.payload == nil {
				c.payload = vxlan(c.inner)
			}
			count := p.count()
			kernel, ours := p.receive(fam.packet(c.outer, c.payload))
			l.compare(t, fam, "", c.name, "outcome", outcome(c.inner, kernel), outcome(c.inner, ours))
			if x.packet && strings.HasSuffix(c.ours, "InCsumErrors") {
				c.ours += " bad-checksum" // beside the stack, which looks too
			}
			count.want(t, c.name, c.kernel, c.ours)
		}
	})
}

// A zero UDP checksum over IPv6 is taken where that is allowed (RFC 6935), a wrong one
// is not.
func TestReceiveZeroChecksum6(t *testing.T) {
	l := newLedger(t, nil)
	fam := families[1]
	in := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
	for _, s := range []settings{
		{udp: underlay.UDPConfig{ZeroChecksum6RX: true}},
		{packet: &afpacket.Config{Device: "eth0", ZeroChecksum6RX: true}},
	} {
		s.args = []string{"udp6zerocsumrx"}
		p := newPair(t, fam, s)
		for _, c := range []struct {
			name     string
			checksum int
			want     string
		}{{"right", right, "delivered unchanged"}, {"zero", zero, "delivered unchanged"}, {"wrong", wrong, "dropped"}} {
			kernel, ours := p.receive(fam.packet(outerIP{checksum: c.checksum}, vxlan(in)))
			l.compare(t, fam, "", c.name, "outcome", outcome(in, kernel), outcome(in, ours))
			got := outcome(in, ours)
			check.True(t, got == c.want, "checksum %s: %s", c.name, got)
		}
	}
}
