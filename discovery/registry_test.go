package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A board is a Registry in memory.
type board struct {
	mu    sync.Mutex
	by    map[uint32]map[netip.Addr]VTEP
	tell  chan struct{} // closed when it changes
	away  error
	extra []VTEP // that it lists whatever happens
}

func newBoard() *board {
	return &board{by: map[uint32]map[netip.Addr]VTEP{}, tell: make(chan struct{})}
}

func (b *board) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.tell)
	b.tell = make(chan struct{})
}

func (b *board) Join(ctx context.Context, network uint32, own VTEP, list func([]VTEP)) error {
	defer b.change(func() { delete(b.by[network], own.Addr) })
	b.change(func() {
		if b.by[network] == nil {
			b.by[network] = map[netip.Addr]VTEP{}
		}
		b.by[network][own.Addr] = own
	})
	for {
		b.mu.Lock()
		all, tell, err := append(slices.Collect(maps.Values(b.by[network])), b.extra...), b.tell, b.away
		b.mu.Unlock()
		if err != nil {
			return err
		}
		list(all)
		select {
		case <-tell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// VTEPs without a server find each other by a registry, also those of its network alone. While it is away, its last list holds.
func TestRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.extra = []VTEP{{Addr: netip.MustParseAddr("224.0.0.5")}, {Name: "none"}, {Addr: addr(200), Name: "\x00"}}
		f := newFabric(t, 3, 1, 0)
		defer f.close()
		for i, l := range f.leaves {
			l.cfg.Registry, l.cfg.Network = b, uint32(i/2)
		}
		f.start()
		time.Sleep(time.Minute)
		one, two := f.leaves[0], f.leaves[1]
		st := one.speaker.Status()
		if st.Registry == nil || *st.Registry != (RegistryStatus{Up: true, VTEPs: 2}) {
			t.Errorf("%+v", st.Registry)
		}
		if len(st.Neighbours) != 1 || st.Neighbours[0].Name != "leaf1" || !st.Neighbours[0].Listed || !st.Neighbours[0].Up {
			t.Errorf("%+v", st.Neighbours)
		}
		h := &host{mac: frame.MAC{2, 0, 0, 0, 0, 1}}
		h.move(two, two.ports[0])
		time.Sleep(time.Second)
		if s := one.wrong(h); s != "" {
			t.Error(s)
		}

		b.change(func() { b.away = errors.New("nobody answers") })
		time.Sleep(time.Minute)
		if st := one.speaker.Status(); *st.Registry != (RegistryStatus{VTEPs: 2, Error: "nobody answers"}) || !st.Neighbours[0].Up {
			t.Errorf("%+v, %+v", st.Registry, st.Neighbours)
		}
		b.change(func() { b.away = nil })
		time.Sleep(time.Minute)
		if st := one.speaker.Status(); *st.Registry != (RegistryStatus{Up: true, VTEPs: 2}) {
			t.Errorf("%+v", st.Registry)
		}
		two.stop()
		time.Sleep(time.Second)
		if st := one.speaker.Status(); len(st.Neighbours) != 0 {
			t.Errorf("%+v", st.Neighbours)
		}
	})
}

// A registry that lists more than anybody can be a neighbour of is taken up to a bound.
func TestRegistryBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		for i := range 1 << 15 {
			b.extra = append(b.extra, VTEP{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Name: fmt.Sprint(i)})
		}
		f := newFabric(t, 1, 1, 0)
		defer f.close()
		f.leaves[0].cfg.Registry = b
		s := check.Must(newSpeaker(f.leaves[0].node, &f.leaves[0].cfg, testKeys, 1))(t)
		s.listed(b.extra)
		if got := s.Status().Registry.VTEPs; got != 16384 {
			t.Errorf("%d VTEPs", got)
		}
	})
}
