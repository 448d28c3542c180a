package vectors

import (
	"bytes"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// An end gets what the switch sends: a far end, or an IP port.
type end interface {
	got() [][]byte
	want(payloads ...[]byte)
}

// A datagram is what arrived at a far end.
type datagram struct {
	frame.Outer
	payload []byte
}

// A far end is a member of the underlay that knows nothing of VXLAN.
type far struct {
	l  *lab
	u  *memory.Underlay
	to netip.AddrPort // the VTEP it speaks to

	mu sync.Mutex
	in []datagram
}

// far makes a far end of the VTEP's type at an address, and farOf of another type.
func (l *lab) far(i byte) *far { l.T.Helper(); return l.farOf(l.typ, i) }

func (l *lab) farOf(t encap.Type, i byte) *far {
	l.T.Helper()
	u := check.Must(l.Listen(l.addr(i), t))(l.T)
	return l.hear(u, l.atOf(t, 1))
}

func (l *lab) fars(from, to byte) (all []*far) {
	for i := from; i <= to; i++ {
		all = append(all, l.far(i))
	}
	return all
}

func (l *lab) farAt(at netip.AddrPort, cfg *memory.Config) *far {
	l.T.Helper()
	u := check.Must(l.Net.Listen(at, cfg))(l.T)
	return l.hear(u, l.at(1))
}

// hear keeps what arrives at a member of the underlay.
func (l *lab) hear(u *memory.Underlay, to netip.AddrPort) *far {
	f := &far{l: l, u: u, to: to}
	l.ends = append(l.ends, f)
	go func() {
		for b := frame.NewBatch(nil); u.Readers()[0].Read(b) == nil; {
			f.mu.Lock()
			for i := range b.Frames {
				f.in = append(f.in, datagram{b.Outer[i], bytes.Clone(b.Frames[i].Bytes())})
			}
			f.mu.Unlock()
		}
	}()
	return f
}

// send sends datagrams to the switch under test.
func (f *far) send(payloads ...[]byte) {
	f.l.T.Helper()
	for _, b := range payloads {
		f.sendTo(f.to, b)
	}
}

func (f *far) sendTo(to netip.AddrPort, payload []byte) {
	f.l.T.Helper()
	e, err := frame.EndpointFrom(to)
	f.l.must(err)
	ds := []frame.Datagram{{Parts: [][]byte{payload}, To: []frame.Endpoint{e}}}
	f.l.must(f.u.Sender(0).Send(ds))
	f.l.Settle()
}

// outer takes what has arrived, with its outer headers, and got without.
func (f *far) outer() []datagram {
	f.l.Settle()
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.in
	f.in = nil
	return in
}

func (f *far) got() (payloads [][]byte) {
	for _, d := range f.outer() {
		payloads = append(payloads, d.payload)
	}
	return payloads
}

// want fails the test unless exactly these payloads have arrived, in this order.
func (f *far) want(payloads ...[]byte) {
	f.l.T.Helper()
	f.l.same(f.u.LocalAddr(), f.got(), payloads)
}

// wantOuter is want of one datagram, and of its outer header.
func (f *far) wantOuter(ttl, tos uint8, payload []byte) {
	f.l.T.Helper()
	in := f.outer()
	f.l.check(len(in) == 1 && in[0].TTL == ttl && in[0].TOS == tos && bytes.Equal(in[0].payload, payload),
		"%v: got %+v, want TTL %d, TOS %#x, % x", f.u.LocalAddr(), in, ttl, tos, payload)
}

// same fails the test unless an end got exactly what it should, in this order.
func (l *lab) same(at any, got, want [][]byte) {
	l.T.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			l.T.Errorf("%v: missing % x", at, want[i])
		case i >= len(want):
			l.T.Errorf("%v: unexpected % x", at, got[i])
		case !bytes.Equal(got[i], want[i]):
			l.T.Errorf("%v: got % x, want % x", at, got[i], want[i])
		}
	}
}
