package frame

import "sync"

// Arenas is a free list of batch memory that many batches share: as many arenas
// exist as readers have frames in hand, not as many as there are readers. It is
// safe for concurrent use. The zero value is ready.
type Arenas struct {
	arenas spare[arena]
	blocks spare[Block]
}

// A Block is memory for one message of an underlay: an IP packet of any length, which may
// hold a run of datagrams, with [Headroom] and 4 KiB more in front, so that those who use
// many Blocks can begin at different cache lines in each.
//
// It is for readers whose messages may be long and are mostly short: a call that takes 64
// messages needs room for 64 long ones, and memory that is not touched costs little.
type Block [BlockSize]byte

// BlockSize is the length of a [Block].
const BlockSize = 64<<10 + 4<<10

// How much a free list keeps for the next reader; more goes to the garbage collector.
const (
	spareArenas = 8
	spareBlocks = 128 // two readers' full calls
)

// Block returns a Block, whose contents are whatever it held.
func (a *Arenas) Block() *Block {
	if x := a.blocks.get(); x != nil {
		return x
	}
	return new(Block)
}

// Free takes a Block back. Frames over it are invalid from here on.
func (a *Arenas) Free(x *Block) { a.blocks.put(x, spareBlocks) }

func (a *Arenas) get() *arena {
	if x := a.arenas.get(); x != nil {
		return x
	}
	return newArena()
}

func (a *Arenas) put(x *arena) { a.arenas.put(x, spareArenas) }

// spare is what is free of one kind of memory.
type spare[T any] struct {
	mu   sync.Mutex
	free []*T
}

// get returns nil when nothing is free.
func (s *spare[T]) get() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return nil
	}
	x := s.free[n-1]
	s.free[n-1] = nil
	s.free = s.free[:n-1]
	return x
}

// put keeps x unless there are most already.
func (s *spare[T]) put(x *T, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < most {
		s.free = append(s.free, x)
	}
}
