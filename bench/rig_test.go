package bench

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// source is a Reader that hands out the same packets again and again, for as many
// batches as it is told, and then waits.
type source struct {
	packets []([]byte)
	outer   frame.Outer
	tunnel  bool // outer is to be set, as an underlay does
	next    int
	runs    chan int
	left    int
	done    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func newSource() *source {
	return &source{runs: make(chan int), done: make(chan struct{}), closed: make(chan struct{})}
}

// run has the worker handle n batches and waits for the last.
func (s *source) run(n int) {
	s.runs <- n
	<-s.done
}

func (s *source) Read(b *frame.Batch) error {
	b.Reset()
	if s.left == 0 {
		select {
		case s.left = <-s.runs:
		case <-s.closed:
			return net.ErrClosed
		}
	} else if s.left--; s.left == 0 {
		s.done <- struct{}{}
		return s.Read(b)
	}
	for range frame.MaxBatch {
		p := s.packets[s.next]
		if s.next++; s.next == len(s.packets) {
			s.next = 0
		}
		b.Borrow(p, 0, len(p))
		if s.tunnel {
			b.Outer[len(b.Outer)-1] = s.outer
		}
	}
	return nil
}

func (s *source) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

// sink counts what is written to a port.
type sink struct{ frames int }

func (s *sink) Write(out []frame.Out) error { s.frames += len(out); return nil }

// stubPort is a local port made of a source and a sink.
type stubPort struct {
	*source
	*sink
}

func (p *stubPort) Readers() []frame.Reader { return []frame.Reader{p.source} }
func (p *stubPort) Writer(int) frame.Writer { return p.sink }
func (p *stubPort) MTU(uint16) int          { return 1514 }

// wire is an underlay made of a source and a counter of what is sent.
type wire struct {
	*source
	sends, datagrams, copies int
}

func (u *wire) Readers() []frame.Reader                   { return []frame.Reader{u.source} }
func (u *wire) Sender(int) frame.Sender                   { return u }
func (u *wire) LocalAddr() netip.AddrPort                 { return netip.MustParseAddrPort("192.0.2.1:4789") }
func (u *wire) MTU() int                                  { return 1500 }
func (u *wire) PathMTU(func(frame.Endpoint, int, []byte)) {}
func (u *wire) Pause()                                    {}
func (u *wire) Resume()                                   {}
func (u *wire) Send(ds []frame.Datagram) error {
	u.sends++
	u.datagrams += len(ds)
	for i := range ds {
		u.copies += len(ds[i].To)
	}
	return nil
}

// rig is a running switch with one local port and one VTEP in VNI 100.
type rig struct {
	sw   *vswitch.Switch
	vsi  *vswitch.VSI
	port *stubPort
	wire *wire
	v    *vtep.VTEP
	peer netip.AddrPort
}

const vni = 100

func newRig(tb testing.TB) *rig {
	tb.Helper()
	r := &rig{port: &stubPort{newSource(), &sink{}}, wire: &wire{source: newSource()}, peer: netip.MustParseAddrPort("192.0.2.2:4789")}
	r.wire.tunnel = true
	r.wire.outer.Src, _ = frame.EndpointFrom(r.peer)
	var err error
	check := func(e error) {
		if e != nil {
			tb.Fatal(e)
		}
	}
	r.v, err = vtep.New(nil, r.wire)
	check(err)
	r.sw, err = vswitch.New(nil)
	check(err)
	r.vsi, err = r.sw.VSI(vni, nil)
	check(err)
	_, err = r.vsi.Attach(r.v, vni)
	check(err)
	_, err = r.vsi.Attach(r.port, 0)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.sw.Run(ctx); close(ended) }()
	tb.Cleanup(func() { cancel(); <-ended })
	return r
}

// mac returns the i-th MAC of a side: 0 local, 1 remote.
func mac(side byte, i int) frame.MAC {
	m := frame.MAC{2, side}
	binary.BigEndian.PutUint32(m[2:], uint32(i))
	return m
}

// packet returns an Ethernet frame with a UDP packet in it.
func packet(dst, src frame.MAC, size int) []byte {
	b := make([]byte, size)
	copy(b, dst[:])
	copy(b[6:], src[:])
	b[12] = 8
	b[14], b[23] = 0x45, 17
	copy(b[26:], src[2:])
	copy(b[30:], dst[2:])
	return b
}

// tunnelled returns p as it comes out of the underlay.
func tunnelled(p []byte) []byte {
	b := make([]byte, encap.VXLANLen, encap.VXLANLen+len(p))
	encap.PutVXLAN(b, vni)
	return append(b, p...)
}

// talk fills both sources with frames between n local and n remote MACs and lets
// the switch learn them.
func (r *rig) talk(n, size int) {
	for i := range n {
		l, m := mac(0, i), mac(1, (i*7+3)%n)
		r.port.packets = append(r.port.packets, packet(m, l, size))
		r.wire.packets = append(r.wire.packets, tunnelled(packet(l, m, size)))
	}
	for range 2 {
		r.port.run(n/frame.MaxBatch + 1)
		r.wire.run(n/frame.MaxBatch + 1)
	}
}
