package policy

import (
	"math/bits"
	"slices"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// none is the result of next if no rule is in all sets.
const none = -1

// A pool holds sets of rules, each once, in one array. The name of a set is its index there:
//
//	summary  which of the words are not zero, a bit for 1<<shift of them
//	words    bit i of word w is rule 64*w + i
//
// Sets are added and never changed, so readers of an older, shorter array go on.
type pool struct {
	words int // of a set
	shift int // 0 for up to 4096 rules
	array []uint64
	known map[uint64]uint32 // by hash; for adding only
	fixed int               // length of the array without the sets of classes
	spare int               // length at which those are collected
}

// ruleBits is a set under construction.
type ruleBits []uint64

func newPool(rules int) *pool {
	p := &pool{words: (rules + 63) / 64, known: map[uint64]uint32{}}
	for p.words > 64<<p.shift {
		p.shift++
	}
	p.words = (p.words + 1<<p.shift - 1) >> p.shift << p.shift
	return p
}

func (p *pool) empty() ruleBits { return make(ruleBits, p.words) }

func (b ruleBits) add(rule int)    { b[rule/64] |= 1 << (rule % 64) }
func (b ruleBits) remove(rule int) { b[rule/64] &^= 1 << (rule % 64) }

func (b ruleBits) or(other ruleBits) {
	for i, w := range other {
		b[i] |= w
	}
}

func (b ruleBits) and(other ruleBits) {
	for i, w := range other {
		b[i] &= w
	}
}

// set returns the set with a name, which must not be changed.
func (p *pool) set(name uint32) ruleBits { return p.array[name+1 : int(name)+1+p.words] }

// name returns the name of a set. It adds the set if it is new.
func (p *pool) name(b ruleBits) uint32 {
	sum, hash := uint64(0), uint64(1)
	for i, w := range b {
		if w != 0 {
			sum |= 1 << (i >> p.shift)
			hash = mix.Fold(hash^w, spread^uint64(i)<<1)
		}
	}
	n, ok := p.known[hash]
	if ok && slices.Equal(p.set(n), b) {
		return n
	}
	n = uint32(len(p.array))
	p.array = append(append(p.array, sum), b...)
	if !ok { // of two with one hash the second is never found again
		p.known[hash] = n
	}
	return n
}

// fix notes that the sets so far stay.
func (p *pool) fix() { p.fixed = len(p.array) }

// reserve makes room for n sets, and for half as many more, so that few changes have to collect those of no class.
func (p *pool) reserve(n int) {
	n = (n + n/2 + 256) * (p.words + 1)
	p.array = slices.Grow(p.array, n)
	p.spare = len(p.array) + n
}

// drop forgets the sets of classes. Readers keep the array that has them.
func (p *pool) drop() {
	p.array = slices.Clone(p.array[:p.fixed])
	for hash, n := range p.known {
		if int(n) >= p.fixed {
			delete(p.known, hash)
		}
	}
}

// next returns the first rule from a number on that is in all sets.
func next(array []uint64, shift int, sets []uint32, from int) int {
	first := from / 64
	sum := ^uint64(0) << (first >> shift)
	for _, s := range sets {
		sum &= array[s]
	}
	for ; sum != 0; sum &= sum - 1 {
		g := bits.TrailingZeros64(sum)
		for w := max(g<<shift, first); w < (g+1)<<shift; w++ {
			x := ^uint64(0)
			if w == first {
				x <<= from % 64
			}
			for _, s := range sets {
				x &= array[int(s)+1+w]
			}
			if x != 0 {
				return w<<6 + bits.TrailingZeros64(x)
			}
		}
	}
	return none
}
