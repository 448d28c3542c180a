// Package fake has a port whose far side is the test, and frames for it.
package fake

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A Port hands over what the test gives and keeps what it is told to write.
type Port struct {
	PortName string
	In       chan frame.Frame            // what is read
	OnWrite  func(out []frame.Out) error // if not nil, what Write does once it has kept the frames
	Closed   chan struct{}               // is closed by Close

	mu   sync.Mutex
	got  []frame.Out // clones
	once sync.Once
}

// New returns a Port with this name.
func New(name string) *Port {
	return &Port{PortName: name, In: make(chan frame.Frame, 64), Closed: make(chan struct{})}
}

// ErrClose is what Close returns.
var ErrClose = errors.New("fake: closed")

func (p *Port) Name() string              { return p.PortName }
func (p *Port) MTU(peer uint16) int       { return 1400 + int(peer) }
func (p *Port) Readers() []frame.Reader   { return []frame.Reader{p} }
func (p *Port) Writer(w int) frame.Writer { return p }
func (p *Port) Close() error              { p.once.Do(func() { close(p.Closed) }); return ErrClose }

func (p *Port) Read(b *frame.Batch) error {
	b.Reset()
	select {
	case f := <-p.In:
		*b.Borrow(nil, 0, 0) = f
		return nil
	case <-p.Closed:
		return net.ErrClosed
	}
}

func (p *Port) Write(out []frame.Out) error {
	p.mu.Lock()
	for _, o := range out {
		c := o.F.Clone()
		o.F = &c
		p.got = append(p.got, o)
	}
	p.mu.Unlock()
	if p.OnWrite != nil {
		return p.OnWrite(out)
	}
	return nil
}

// Written returns all that was written, or since Forget.
func (p *Port) Written() []frame.Out {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// Forget forgets what was written, and returns how many frames that were.
func (p *Port) Forget() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.got)
	p.got = nil
	return n
}

// A Pauser is a Port that can be paused.
type Pauser struct {
	*Port
	Paused int
}

func (p *Pauser) Pause()  { p.Paused++ }
func (p *Pauser) Resume() { p.Paused-- }

// A Discard is a port that takes everything and keeps nothing.
type Discard struct{ *Port }

func (Discard) Writer(w int) frame.Writer { return discard{} }

type discard struct{}

func (discard) Write(out []frame.Out) error { return nil }

// Outs stages packets for a Writer.
func Outs(packets ...[]byte) []frame.Out {
	o := make([]frame.Out, len(packets))
	for i, p := range packets {
		f := frame.Make(p)
		o[i].F = &f
	}
	return o
}

// WantDrops checks why a Writer did not send each packet.
func WantDrops(t testing.TB, o []frame.Out, want ...frame.Reason) {
	t.Helper()
	for i := range want {
		if o[i].Drop != want[i] {
			t.Errorf("frame %d: %v, want %v", i, o[i].Drop, want[i])
		}
	}
}

// Ethernet returns a frame of n bytes with two addresses, a type and a payload that counts from
// seed on.
func Ethernet(n int, seed byte) []byte {
	p := make([]byte, n)
	copy(p, []byte{0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xb5})
	for i := 14; i < n; i++ {
		p[i] = seed + byte(i)
	}
	return p
}

// Tagged is the frame p with an 802.1Q tag: what a port must make of it.
func Tagged(p []byte, tci ...byte) []byte {
	t := append([]byte(nil), p[:12]...)
	t = append(t, 0x81, 0x00)
	t = append(t, tci...)
	return append(t, p[12:]...)
}

// GratuitousARP is the frame by which a host says where it is: a request for its own address.
func GratuitousARP(mac frame.MAC, ip netip.Addr) []byte {
	a := ip.AsSlice()
	return slices.Concat(frame.Broadcast[:], mac[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, mac[:], a, make([]byte, 6), a, make([]byte, 18))
}

// Until waits until ok holds, and ends the test when it does not within a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
