package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// paths knows what is in the table of paths, which has a place for each slot. A slot keeps its path until another flow gets the slot:
// then no program has the flow before, nor its path.
type paths struct {
	known  map[path]*usedPath
	bySlot []*usedPath
	free   []uint32
	next   uint32 // never used
}

// A usedPath is one that slots have.
type usedPath struct {
	path  path
	index uint32
	slots int
}

func newPaths(slots int) paths {
	return paths{known: map[path]*usedPath{}, bySlot: make([]*usedPath, slots)}
}

// take gives a slot a path, which it writes into the table if it is new, and returns its index.
func (x *paths) take(slot uint32, p path, table *ebpf.Map) (uint32, error) {
	k := x.known[p]
	if k != nil && x.bySlot[slot] == k {
		return k.index, nil
	}
	x.leave(slot)
	if k == nil {
		k = &usedPath{path: p, index: x.next}
		if n := len(x.free); n > 0 {
			k.index = x.free[n-1]
			x.free = x.free[:n-1]
		} else {
			x.next++
		}
		if err := table.Update(k.index, p[:], ebpf.UpdateAny); err != nil {
			x.free = append(x.free, k.index)
			return 0, fmt.Errorf("datapath: table %v: %w", table, err)
		}
		x.known[p] = k
	}
	k.slots++
	x.bySlot[slot] = k
	return k.index, nil
}

// leave takes its path from a slot.
func (x *paths) leave(slot uint32) {
	k := x.bySlot[slot]
	if k == nil {
		return
	}
	x.bySlot[slot] = nil
	if k.slots--; k.slots == 0 {
		delete(x.known, k.path)
		x.free = append(x.free, k.index)
	}
}
