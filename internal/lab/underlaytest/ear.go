package underlaytest

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// An Ear keeps what an underlay receives, by payload.
type Ear struct {
	sync.WaitGroup // of its Readers

	mu    sync.Mutex
	got   map[string]int
	hosts map[[2]netip.Addr]bool // from, to
}

// Listen reads from all Readers until the underlay is closed.
func Listen(u Underlay) *Ear {
	e := &Ear{got: map[string]int{}, hosts: map[[2]netip.Addr]bool{}}
	for _, r := range u.Readers() {
		e.Go(func() {
			for b := frame.NewBatch(nil); ; {
				if err := r.Read(b); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						panic(err)
					}
					return
				}
				e.mu.Lock()
				for i := range b.Frames {
					e.got[string(b.Frames[i].Bytes())]++
					e.hosts[[2]netip.Addr{b.Outer[i].Src.AddrPort().Addr(), b.Outer[i].Dst.AddrPort().Addr()}] = true
				}
				e.mu.Unlock()
			}
		})
	}
	return e
}

// Count returns how often a payload came.
func (e *Ear) Count(payload string) int { return e.All()[payload] }

// All returns how often each payload came.
func (e *Ear) All() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.got)
}

// Seen reports whether anything came from an address, to another.
func (e *Ear) Seen(from, to netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hosts[[2]netip.Addr{from, to}]
}

// Reading reads until the underlay is closed, through pauses, and hands each frame's Outer over.
func Reading(t *testing.T, wg *sync.WaitGroup, r frame.Reader, each func(o *frame.Outer)) {
	wg.Go(func() {
		b := frame.NewBatch(nil)
		for {
			err := r.Read(b)
			if errors.Is(err, frame.ErrPaused) {
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			for i := range b.Outer {
				each(&b.Outer[i])
			}
		}
	})
}

// RoundTrips sends datagrams from one underlay to another and counts each of the n copies that ds
// makes as one operation.
func RoundTrips(b *testing.B, src, dst Underlay, ds []frame.Datagram, n int) {
	s, r, batch := src.Sender(0), dst.Readers()[0], frame.NewBatch(nil)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += n {
		check.OK(b, s.Send(ds))
		for got := 0; got < n; got += len(batch.Frames) {
			check.OK(b, r.Read(batch))
		}
	}
}
