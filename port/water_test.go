package port

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/songgao/water"

	"github.com/vxswitch/vxswitch/frame"
)

// tunOver is a TUN interface over anything.
func tunOver(rwc io.ReadWriteCloser) *water.Interface { return &water.Interface{ReadWriteCloser: rwc} }

func TestWaterTUNKinds(t *testing.T) {
	near, far := net.Pipe()
	p, err := FromWater(tunOver(near), &WaterConfig{MTU: 1400})
	if err != nil {
		t.Fatal(err)
	}
	if p.MTU(0) != 1400 || p.(named).Name() != "water" {
		t.Errorf("MTU %d, name %q", p.MTU(0), p.(named).Name())
	}
	in := [][]byte{{0x45, 1}, {0x60, 2}, {0x50, 3}, bytes.Repeat([]byte{0x45}, 1401)}
	go func() {
		for _, packet := range in {
			far.Write(packet)
		}
	}()
	b, r := frame.NewBatch(nil), p.Readers()[0]
	for i, want := range []struct {
		kind frame.Kind
		drop frame.Reason
	}{{frame.IPv4, 0}, {frame.IPv6, 0}, {frame.IPv4, frame.BadKind}, {frame.IPv4, frame.TooBig}} {
		if err := r.Read(b); err != nil || len(b.Frames) != 1 {
			t.Fatal(err)
		}
		if f := &b.Frames[0]; !bytes.Equal(f.Bytes(), in[i]) || f.Kind != want.kind || f.Drop != want.drop {
			t.Errorf("packet %d: %d bytes, kind %v, drop %v", i, f.Len(), f.Kind, f.Drop)
		}
	}

	o := outs([]byte{0x45, 1}, []byte{0x60, 2}, ethernet(60, 0), []byte{0x45, 4}, []byte{0x45, 5}, []byte{0x60, 6})
	o[0].F.Kind, o[1].F.Kind, o[3].F.Kind, o[4].F.Kind, o[5].F.Kind = frame.IPv4, frame.IPv6, frame.IPv4, frame.IPv4, frame.IPv6
	o[3].Tag, o[4].F.GSO.Flags = 5, frame.NeedsCsum
	done := make(chan error)
	go func() { done <- p.Writer(0).Write(o) }()
	buf := make([]byte, 100)
	for _, want := range [][]byte{{0x45, 1}, {0x60, 2}, {0x60, 6}} {
		if n, err := far.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
			t.Errorf("got %x, %v, want %x", buf[:n], err, want)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for i, want := range []frame.Reason{0, 0, frame.BadKind, frame.BadKind, frame.BadKind, 0} {
		if o[i].Drop != want {
			t.Errorf("packet %d: %v, want %v", i, o[i].Drop, want)
		}
	}

	go func() { done <- r.Read(b) }()
	p.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a closed port: %v", err)
	}
	if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[5].Drop != frame.PortDown {
		t.Errorf("Write to a closed port: %v, %v", err, o[0].Drop)
	}
}

// A failed call of a macOS TUN counts -4 bytes.
func TestWaterCountsBelowZero(t *testing.T) {
	broken := errors.New("broken")
	s := &script{
		closed: make(chan struct{}),
		read:   func(p []byte) (int, error) { return -4, broken },
		write:  func(p []byte) (int, error) { return -4, broken },
	}
	p, err := FromWater(tunOver(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Readers()[0].Read(frame.NewBatch(nil)); !errors.Is(err, broken) {
		t.Errorf("Read: %v", err)
	}
	o := outs([]byte{0x45})
	o[0].F.Kind = frame.IPv4
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != frame.SendFailed {
		t.Errorf("Write: %v, %v", err, o[0].Drop)
	}
}

func TestWaterErrors(t *testing.T) {
	for _, ifce := range []*water.Interface{nil, {}} {
		if _, err := FromWater(ifce, nil); err == nil {
			t.Error("a port of nothing")
		}
	}
	near, _ := net.Pipe()
	defer near.Close()
	if _, err := FromWater(tunOver(near), &WaterConfig{MTU: -1}); err == nil || !strings.Contains(err.Error(), "WaterConfig.MTU") {
		t.Errorf("MTU -1: %v", err)
	}
	if p, err := FromWater(tunOver(near), nil); err != nil || p.MTU(0) != 1500 {
		t.Errorf("MTU of an unknown device: %d, %v", p.MTU(0), err)
	}
}

func TestWaterTUNAllocatesNothing(t *testing.T) {
	s := &script{
		closed: make(chan struct{}),
		read:   func(p []byte) (int, error) { p[0] = 0x45; return 1400, nil },
		write:  func(p []byte) (int, error) { return len(p), nil },
	}
	p, err := FromWater(tunOver(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r, w, b, o := p.Readers()[0], p.Writer(0), frame.NewBatch(new(frame.Arenas)), outs([]byte{0x45, 1}, []byte{0x60, 2})
	o[0].F.Kind, o[1].F.Kind = frame.IPv4, frame.IPv6
	if n := testing.AllocsPerRun(200, func() { r.Read(b); w.Write(o) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if b.Frames[0].Kind != frame.IPv4 || o[1].Drop != 0 {
		t.Errorf("kind %v, drop %v", b.Frames[0].Kind, o[1].Drop)
	}
}
