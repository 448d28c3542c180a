package port

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
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
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
			&layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4},
			ip, tcp, gopacket.Payload(payload)); err != nil {
			t.Fatal(err)
		}
		segments = append(segments, buf.Bytes())
	}
	return segments
}

// super is the segments as one superframe.
func super(t testing.TB, segments ...[]byte) *frame.Frame {
	t.Helper()
	var j gso.Joiner
	n, g, parts := j.Join(outs(segments...))
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

// A port without offloads on its far side gets ordinary frames, and counts one Out.
func TestPlainPortsCutSuperframes(t *testing.T) {
	segments := tcpSegments(t, 5, 1400)
	plainFrame := ethernet(60, 1)
	stage := func() []frame.Out {
		o := outs(plainFrame, nil, nil, plainFrame)
		o[1].F, o[2].F = super(t, segments[:4]...), unfinished(t, segments[0])
		return o
	}
	for _, tag := range []uint32{0, 0x123} {
		want := append([][]byte{plainFrame}, segments[:4]...)
		want = append(want, segments[0], plainFrame)
		if tag != 0 {
			for i := range want {
				want[i] = tagged(want[i], 0x01, 0x23)
			}
		}
		check := func(port string, got [][]byte, o []frame.Out) {
			t.Helper()
			if len(got) != len(want) {
				t.Fatalf("%s: %d frames, want %d", port, len(got), len(want))
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%s, frame %d:\n got %.80x\nwant %.80x", port, i, got[i], want[i])
				}
			}
			for i := range o {
				if o[i].Drop != 0 {
					t.Errorf("%s, out %d: %v", port, i, o[i].Drop)
				}
			}
		}
		o := stage()
		for i := range o {
			o[i].Tag = tag
		}
		p := NewPipe(nil)
		defer p.Close()
		if err := p.Writer(0).Write(o); err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		for range want {
			b, err := p.Recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b)
		}
		check("pipe", got, o)

		got = nil
		s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) {
			got = append(got, bytes.Clone(p))
			return len(p), nil
		}}
		r := FromReadWriteCloser(s, nil)
		defer r.Close()
		if err := r.Writer(0).Write(o); err != nil {
			t.Fatal(err)
		}
		check("rwc", got, o)
	}
}

// A superframe that is not sent to its end is dropped: the others are not.
func TestPlainPortsDropSuperframesInPart(t *testing.T) {
	segments := tcpSegments(t, 4, 1400)
	p := NewPipe(&PipeConfig{Queue: 3})
	o := outs(ethernet(60, 0), nil, nil)
	o[1].F, o[2].F = super(t, segments...), super(t, segments...)
	o[2].F.GSO.Size = 0 // refused: not what a reader lets in
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != 0 || o[1].Drop != frame.PortFull || o[2].Drop != frame.TooBig {
		t.Errorf("%v: %v, %v, %v", err, o[0].Drop, o[1].Drop, o[2].Drop)
	}
	small := NewPipe(&PipeConfig{MTU: 1400 + 54 - vlanLen - 1})
	defer small.Close()
	if err := small.Writer(0).Write(o); err != nil || o[1].Drop != frame.TooBig {
		t.Errorf("longer segments than the MTU: %v, %v", err, o[1].Drop)
	}
	p.Close()
	if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[2].Drop != frame.PortDown {
		t.Errorf("closed: %v, %v, %v", err, o[0].Drop, o[2].Drop)
	}
	if _, err := p.Recv(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}

	n := 0
	s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) {
		if n++; n == 3 {
			return 0, io.ErrShortWrite
		}
		return len(p), nil
	}}
	r := FromReadWriteCloser(s, nil)
	defer r.Close()
	o = outs(nil, ethernet(60, 0))
	o[0].F = super(t, segments...)
	if err := r.Writer(0).Write(o); err != nil || o[0].Drop != frame.SendFailed || o[1].Drop != 0 || n != 4 {
		t.Errorf("%v: %v, %v, %d writes", err, o[0].Drop, o[1].Drop, n)
	}
}

// A checksum that begins inside the MAC addresses: allowed by virtio, of no use.
func TestPlainPortsOddChecksum(t *testing.T) {
	p := NewPipe(nil)
	defer p.Close()
	o := outs(ethernet(60, 0))
	o[0].F.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: frame.Headroom, CsumOffset: 4}
	o[0].Tag = 7
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != frame.BadHeader {
		t.Errorf("%v, %v", err, o[0].Drop)
	}
}

// What is put around a port takes what the port takes.
func TestDecoratorsTakeWhatThePortTakes(t *testing.T) {
	for _, want := range []frame.Offloads{0, frame.IPOnly, frame.OffloadAll, frame.OffloadCsum | frame.OffloadVLAN} {
		for name, around := range map[string]func(p Port) (Port, error){
			"Capture": newCapture(t, nil).Port,
			"Buffered": func(p Port) (Port, error) {
				b, err := NewBuffered(p, nil)
				return b.Port(), err
			},
			"Faulty": func(p Port) (Port, error) {
				f, err := NewFaulty(p, nil)
				return f.Port(), err
			},
		} {
			p, err := around(&taking{newFake("p"), want})
			if err != nil {
				t.Fatal(err)
			}
			if got := offloadsOf(p); got != want {
				t.Errorf("%s takes %b, want %b", name, got, want)
			}
			p.Close()
			if p, err = around(&fakePauser{fake: newFake("p")}); err != nil || offloadsOf(p) != 0 {
				t.Errorf("%s around a port that says nothing: %b, %v", name, offloadsOf(p), err)
			}
			p.Close()
		}
	}
}

// taking is a fake that says what it takes.
type taking struct {
	*fake
	takes frame.Offloads
}

func (p *taking) Offloads() frame.Offloads { return p.takes }
