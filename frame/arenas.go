package frame

import "sync"

// Arenas is a free list of memory that many batches share: only readers with frames
// have an arena. It is safe for concurrent use. The zero value is ready to use.
type Arenas struct {
	arenas spare[arena]
	blocks spare[Block]
}

// A Block is memory for one message of an underlay: an IP packet of any length, or a run
// of datagrams, with [Headroom] and 4 KiB more in front, so that messages in several
// Blocks can begin at different cache lines.
//
// It is for readers whose messages are mostly short and may be long: a call for 64
// messages needs room for 64 long ones. Memory that is not touched costs little.
type Block [BlockSize]byte

// BlockSize is the length of a [Block].
const BlockSize = 64<<10 + 4<<10

// The most that a free list keeps; the garbage collector gets the rest.
const (
	spareArenas = 8
	spareBlocks = 128 // for the calls of two readers
)

// Block returns a Block with undefined contents.
func (a *Arenas) Block() *Block {
	if x := a.blocks.get(); x != nil {
		return x
	}
	return new(Block)
}

// Free takes a Block back. Frames in it become invalid.
func (a *Arenas) Free(x *Block) { a.blocks.put(x, spareBlocks) }

func (a *Arenas) get() *arena {
	if x := a.arenas.get(); x != nil {
		return x
	}
	return newArena()
}

func (a *Arenas) put(x *arena) { a.arenas.put(x, spareArenas) }

// spare is the free memory of one kind.
type spare[T any] struct {
	mu   sync.Mutex
	free []*T
}

// get returns nil if there is none.
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

// put keeps x, unless it has most already.
func (s *spare[T]) put(x *T, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < most {
		s.free = append(s.free, x)
	}
}
