package bgp

import (
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// An inbox has what peers have said since it was last looked into, in order. The engine says one path at a time, and would have to wait for
// rows to be written with each of them, while its own queue, which is much larger, grows.
type inbox struct {
	mu   sync.Mutex
	list []said

	taken []said // memory of the last list, if it was not long, used again
}

// A said is a path that was learned or withdrawn, or that the session with its peer has ended.
type said struct {
	engine.Path
	withdrawn bool
	ended     bool
}

func (b *inbox) put(list []engine.Path, withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range list {
		b.list = append(b.list, said{Path: p, withdrawn: withdrawn})
	}
}

// end notes that a session has ended.
func (b *inbox) end(peer netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, said{Path: engine.Path{Source: engine.Source{Peer: peer}}, ended: true})
}

// take puts all of it into a table.
func (b *inbox) take(t *table) {
	b.mu.Lock()
	list := b.list
	b.list, b.taken = b.taken[:0], nil
	b.mu.Unlock()
	for i := range list {
		switch x := &list[i]; {
		case x.ended:
			t.ended(x.Peer)
		case x.withdrawn:
			t.withdrawn(x.Path)
		default:
			t.learned(x.Path)
		}
	}
	if len(list) <= batch.Most {
		b.taken = list
	}
}
