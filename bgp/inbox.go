package bgp

import (
	"sync"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// An inbox has what peers have said since it was last looked into, in order. The engine says one path at a time, and would have to wait for
// rows to be written with each of them, while its own queue, which is much larger, grows.
type inbox struct {
	mu   sync.Mutex
	list []said
}

// A said is a path that was learned or withdrawn.
type said struct {
	engine.Path
	withdrawn bool
}

func (b *inbox) put(list []engine.Path, withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range list {
		b.list = append(b.list, said{p, withdrawn})
	}
}

// take puts all of it into a table.
func (b *inbox) take(t *table) {
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.mu.Unlock()
	for i := range list {
		if list[i].withdrawn {
			t.withdrawn(list[i].Path)
		} else {
			t.learned(list[i].Path)
		}
	}
}
