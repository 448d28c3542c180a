package fuzz

import (
	"net"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// feed is a Reader that hands out one packet at a time, and knows when it has been
// dealt with: when the switch reads again.
type feed struct {
	in, idle chan frame.Outer
	data     []byte
	gso      frame.GSO // what a device says of data, offsets from its start
	closed   chan struct{}
	once     sync.Once
}

func newFeed() *feed {
	return &feed{in: make(chan frame.Outer), idle: make(chan frame.Outer), closed: make(chan struct{})}
}

// giveSuper is give of what a device calls a superframe.
func (f *feed) giveSuper(data []byte, g frame.GSO) {
	f.gso = g
	f.give(data, frame.Endpoint{}, 0)
	f.gso = frame.GSO{}
}

// give hands the switch a packet and returns when it has dealt with it.
func (f *feed) give(data []byte, from frame.Endpoint, tos uint8) {
	f.data = data
	f.in <- frame.Outer{Src: from, TOS: tos}
	<-f.idle
}

func (f *feed) Read(b *frame.Batch) error {
	b.Reset()
	select {
	case f.idle <- frame.Outer{}:
	case <-f.closed:
		return net.ErrClosed
	}
	select {
	case o := <-f.in:
		x := b.New(len(f.data))
		copy(x.Bytes(), f.data)
		b.Outer[0] = o
		if f.gso != (frame.GSO{}) {
			x.GSO = f.gso
			x.GSO.CsumStart += uint16(x.Headroom())
			if x.Drop = gso.Check(x); x.Drop != frame.NotDropped {
				x.GSO = frame.GSO{}
			}
		}
		return nil
	case <-f.closed:
		return net.ErrClosed
	}
}

func (f *feed) Close() error { f.once.Do(func() { close(f.closed) }); return nil }
func (f *feed) Pause()       {}
func (f *feed) Resume()      {}

// localPort is a port whose input is a feed and whose output is counted.
type localPort struct {
	*feed
	mtu int
	got int
}

func (p *localPort) Readers() []frame.Reader { return []frame.Reader{p.feed} }
func (p *localPort) Writer(int) frame.Writer { return p }
func (p *localPort) MTU(uint16) int          { return p.mtu }
func (p *localPort) Write(out []frame.Out) error {
	p.got += len(out)
	return nil
}

// underlay is likewise an underlay.
type underlay struct {
	*feed
	got  int
	path func(frame.Endpoint, int, []byte)
}

func (u *underlay) Readers() []frame.Reader                     { return []frame.Reader{u.feed} }
func (u *underlay) Sender(int) frame.Sender                     { return u }
func (u *underlay) LocalAddr() netip.AddrPort                   { return netip.MustParseAddrPort("192.0.2.1:4789") }
func (u *underlay) MTU() int                                    { return 600 }
func (u *underlay) PathMTU(f func(frame.Endpoint, int, []byte)) { u.path = f }
func (u *underlay) Send(ds []frame.Datagram) error {
	for i := range ds {
		u.got += len(ds[i].To)
	}
	return nil
}
