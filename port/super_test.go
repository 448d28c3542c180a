package port

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// tcpSegments are n TCP segments of one flow with size bytes of payload, as a host
// without offloads sends them.
func tcpSegments(t testing.TB, n, size int) (segments [][]byte) {
	t.Helper()
	payload := make([]byte, size)
	for i := range n {
		for k := range payload {
			payload[k] = byte(i + k)
		}
		ip := &layers.IPv4{Version: 4, TTL: 64, Id: uint16(i), Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 9, 0, 2}, DstIP: net.IP{10, 9, 0, 1}}
		tcp := &layers.TCP{SrcPort: 7000, DstPort: 7001, Seq: uint32(i * size), Ack: 1, ACK: true, Window: 1000}
		tcp.SetNetworkLayerForChecksum(ip)
		buf := packets.Of(&layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4},
			ip, tcp, gopacket.Payload(payload))
		segments = append(segments, buf)
	}
	return segments
}

// super is the segments as one superframe.
func super(t testing.TB, segments ...[]byte) *frame.Frame {
	t.Helper()
	var j gso.Joiner
	n, g, parts := j.Join(fake.Outs(segments...))
	if n != len(segments) {
		t.Fatalf("%d of %d segments were joined", n, len(segments))
	}
	f := frame.Make(bytes.Join(parts, nil))
	g.CsumStart += frame.Headroom
	g.DataStart += frame.Headroom
	f.GSO = g
	return &f
}

// unfinished is a packet whose TCP checksum covers the pseudo header only.
func unfinished(t testing.TB, packet []byte) *frame.Frame {
	t.Helper()
	f := super(t, packet, tcpSegments(t, 2, len(packet)-54)[1])
	b := f.Bytes()
	b[16], b[17] = packet[16], packet[17] // IPv4 length, checksum
	b[24], b[25] = packet[24], packet[25]
	f.Trim(len(packet))
	// The pseudo header has the length too.
	sum := int(b[50])<<8 + int(b[51]) - (len(packet) - 54)
	if sum < 0 {
		sum += 0xffff
	}
	b[50], b[51] = byte(sum>>8), byte(sum)
	f.GSO.Type, f.GSO.Size, f.GSO.DataStart = 0, 0, 0
	return f
}

// A Writer that is given what its port does not take, past a switch, says so, and the tag of a
// frame that is in a superframe is behind the MAC addresses as in any other.
func TestWritersRefuseWhatIsNotTaken(t *testing.T) {
	segments := tcpSegments(t, 4, 1400)
	s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) { return len(p), nil }}
	ip := fake.Ethernet(60, 0)
	for name, p := range map[string]Port{
		"pipe": NewPipe(nil), "rwc": FromReadWriteCloser(s, nil),
		"rwc, IP": FromReadWriteCloser(s, &ReadWriteCloserConfig{IP: true}),
	} {
		defer p.Close()
		o := fake.Outs(fake.Ethernet(60, 0), nil, nil, ip, fake.Ethernet(60, 1))
		o[1].F, o[2].F = super(t, segments...), unfinished(t, segments[0])
		o[3].F.Kind, o[4].Tag = frame.IPv4, 7
		if err := p.Writer(0).Write(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ordinary, other := 0, 3
		if name == "rwc, IP" {
			ordinary, other = 3, 0
		}
		for i := range o {
			if got := o[i].Drop; got == frame.NotDropped != (i == ordinary) || got != frame.NotDropped && got != frame.BadKind {
				t.Errorf("%s: frame %d: %v", name, i, got)
			}
		}
		if o[other].Drop != frame.BadKind {
			t.Errorf("%s: %v", name, o[other].Drop)
		}
	}
}
