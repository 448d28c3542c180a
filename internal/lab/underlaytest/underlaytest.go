// Package underlaytest is what the tests of the underlays have in common.
package underlaytest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// An Underlay is what every underlay has, its Stats left out.
type Underlay interface {
	Readers() []frame.Reader
	Sender(w int) frame.Sender
	Close() error
	LocalAddr() netip.AddrPort
	Is4() bool
	MTU() int
	Pause()
	Resume()
	PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))
}

// Endpoint returns the endpoint at an address.
func Endpoint(t testing.TB, ap netip.AddrPort) frame.Endpoint {
	t.Helper()
	e, err := frame.EndpointFrom(ap)
	check.OK(t, err)
	return e
}

// To makes a datagram of one part.
func To(payload string, flow uint16, eps ...frame.Endpoint) frame.Datagram {
	return frame.Datagram{Parts: [][]byte{[]byte(payload)}, To: eps, Flow: flow, DF: true}
}

// Pattern is n bytes of which no two places look alike.
func Pattern(n int) []byte {
	b := make([]byte, 0, n+8)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%x,", i)
	}
	return b[:n]
}

// RunOf makes a run of n bytes out of pieces of memory, two for each segment.
func RunOf(n, seg, head int, flow uint16, eps ...frame.Endpoint) (frame.Datagram, []string) {
	d := frame.Datagram{Seg: uint16(seg), To: eps, Flow: flow, DF: true}
	var want []string
	for s := range slices.Chunk(Pattern(n), seg) {
		want = append(want, string(s))
		h := min(head, len(s))
		d.Parts = append(d.Parts, s[:h:h], s[h:])
	}
	return d, want
}

// Send sends datagrams by worker 0's Sender.
func Send(t testing.TB, u Underlay, ds ...frame.Datagram) {
	t.Helper()
	if err := u.Sender(0).Send(ds); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// Got is one datagram as it was received.
type Got struct {
	Payload string
	Outer   frame.Outer
	Kind    frame.Kind
	Drop    frame.Reason
}

// Read returns what one Read of the first Reader brings.
func Read(t testing.TB, u Underlay) []Got {
	t.Helper()
	out, err := read(u, u.Readers()[0], frame.NewBatch(nil))
	if err != nil {
		t.Fatalf("Read: %v\n%s", err, counters(u))
	}
	return out
}

func read(u Underlay, r frame.Reader, b *frame.Batch) (out []Got, err error) {
	watchdog := time.AfterFunc(10*time.Second, u.Pause)
	defer watchdog.Stop()
	if err := r.Read(b); err != nil {
		return nil, err
	}
	for i := range b.Frames {
		f := &b.Frames[i]
		out = append(out, Got{string(f.Bytes()), b.Outer[i], f.Kind, f.Drop})
	}
	return out, nil
}

// Receive reads n datagrams from the first Reader, or fails.
func Receive(t testing.TB, u Underlay, n int) []Got {
	t.Helper()
	return ReceiveFrom(t, u, 0, n)
}

// ReceiveFrom reads n datagrams from a Reader, or fails.
func ReceiveFrom(t testing.TB, u Underlay, reader, n int) (out []Got) {
	t.Helper()
	b, r := frame.NewBatch(nil), u.Readers()[reader]
	for len(out) < n {
		some, err := read(u, r, b)
		if err != nil {
			t.Fatalf("Read: %v after %d of %d datagrams\n%s", err, len(out), n, counters(u))
		}
		out = append(out, some...)
	}
	if len(out) > n {
		t.Fatalf("%d datagrams, want %d", len(out), n)
	}
	return out
}

// Payloads returns the payloads of what was received.
func Payloads(rs []Got) (s []string) {
	for _, r := range rs {
		s = append(s, r.Payload)
	}
	return s
}

// Quiet fails when there is anything to read.
func Quiet(t testing.TB, u Underlay) {
	t.Helper()
	time.AfterFunc(20*time.Millisecond, u.Pause)
	b := frame.NewBatch(nil)
	err := u.Readers()[0].Read(b)
	if err == nil {
		t.Fatalf("unexpected datagram %q", b.Frames[0].Bytes())
	}
	if !errors.Is(err, frame.ErrPaused) {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	u.Resume()
}

// A Report is one call of a PathMTU func, or of an Unreachable func, which has no MTU.
type Report struct {
	To     frame.Endpoint
	MTU    int
	Quoted string
}

// Reports is the calls of such funcs.
type Reports struct {
	mu  sync.Mutex
	all []Report
}

// PathMTU is a PathMTU func.
func (r *Reports) PathMTU(to frame.Endpoint, mtu int, quoted []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, Report{to, mtu, string(quoted)})
}

// Unreachable is an Unreachable func.
func (r *Reports) Unreachable(to frame.Endpoint, quoted []byte) { r.PathMTU(to, 0, quoted) }

// Take returns the calls since it was called last.
func (r *Reports) Take() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// WantMTU waits until an MTU was told, which may be no other.
func (r *Reports) WantMTU(t *testing.T, mtu int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		switch all := r.Take(); {
		case len(all) == 0 && time.Now().Before(end):
			continue
		case len(all) == 0 || all[0].MTU != mtu:
			t.Errorf("told %v, want MTU %d", all, mtu)
		}
		return
	}
}
