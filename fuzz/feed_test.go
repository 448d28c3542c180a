package fuzz

import (
	"net"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// feed is a Reader that hands out one packet at a time, and knows when it has been
// dealt with: when the switch reads again.
type feed struct {
	in, idle chan frame.Outer
	data     []byte
	closed   chan struct{}
	once     sync.Once
}

func newFeed() *feed {
	return &feed{in: make(chan frame.Outer), idle: make(chan frame.Outer), closed: make(chan struct{})}
}

// give hands the switch a packet and returns when it has dealt with it.
func (f *feed) give(data []byte, from frame.Endpoint) {
	f.data = data
	f.in <- frame.Outer{Src: from}
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
		copy(b.New(len(f.data)).Bytes(), f.data)
		b.Outer[0] = o
		return nil
	case <-f.closed:
		return net.ErrClosed
	}
}

func (f *feed) Close() error                              { f.once.Do(func() { close(f.closed) }); return nil }
func (f *feed) PathMTU(func(frame.Endpoint, int, []byte)) {}
func (f *feed) Pause()                                    {}
func (f *feed) Resume()                                   {}

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

// wire is an underlay, likewise.
type wire struct {
	*feed
	got int
}

func (u *wire) Readers() []frame.Reader   { return []frame.Reader{u.feed} }
func (u *wire) Sender(int) frame.Sender   { return u }
func (u *wire) LocalAddr() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:4789") }
func (u *wire) MTU() int                  { return 600 }
func (u *wire) Send(ds []frame.Datagram) error {
	for i := range ds {
		u.got += len(ds[i].To)
	}
	return nil
}
