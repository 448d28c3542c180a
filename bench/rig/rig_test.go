package rig

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// Run returns when its batches have been read and handled, and no sooner.
func TestRun(t *testing.T) {
	u := NewWire(netip.MustParseAddrPort("192.0.2.2:4789"))
	u.Packets = [][]byte{Tunnelled(Packet(MAC(0, 1), MAC(1, 2), 64), 7), Packet(MAC(0, 3), MAC(1, 4), 80)}
	batches, filled := 0, 0
	ended := make(chan error)
	go func() {
		b := frame.NewBatch(nil)
		for {
			if err := u.Readers()[0].Read(b); err != nil {
				ended <- err
				return
			}
			batches++
			if n := len(b.Frames); n != frame.MaxBatch || b.Outer[n-1].Src != u.Outer.Src || b.Outer[n-1].Src == (frame.Endpoint{}) {
				t.Errorf("%d frames, the last from %v", n, b.Outer[n-1].Src)
			}
		}
	}()
	u.Run(3)
	u.Fill = func(b *frame.Batch) {
		filled++
		for range frame.MaxBatch {
			b.Borrow(u.Packets[0], 0, 14)
		}
	}
	u.Run(2)
	if batches != 5 || filled != 2 {
		t.Errorf("%d batches, %d of them made by Fill; want 5 and 2", batches, filled)
	}
	u.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestPacket(t *testing.T) {
	p := Tunnelled(Packet(MAC(0, 1), MAC(1, 2), 64), 7)
	h, drop := encap.ParseVXLAN(p)
	inner := p[encap.VXLANLen:]
	if drop != frame.NotDropped || h.VNI() != 7 || len(inner) != 64 || frame.MAC(inner) != MAC(0, 1) || frame.MAC(inner[6:]) != MAC(1, 2) {
		t.Errorf("%x, %v", p, drop)
	}
}

func TestCounts(t *testing.T) {
	p, u := NewPort(), NewWire(netip.MustParseAddrPort("192.0.2.2:4789"))
	p.Writer(3).Write(make([]frame.Out, 5))
	u.Sender(3).Send([]frame.Datagram{{To: make([]frame.Endpoint, 2)}, {To: make([]frame.Endpoint, 3)},
		{To: make([]frame.Endpoint, 2), Seg: 8, Parts: [][]byte{make([]byte, 7), make([]byte, 10)}}})
	if p.Frames != 5 || u.Sends != 1 || u.Datagrams != 3 || u.Copies != 2+3+2*3 {
		t.Errorf("%d frames; %d sends, %d datagrams, %d copies", p.Frames, u.Sends, u.Datagrams, u.Copies)
	}
}
