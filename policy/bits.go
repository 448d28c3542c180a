package policy

import "math/bits"

// none is the result of match if no rule is in all sets.
const none = -1

// A pool holds sets of rules, each once, in one array. The name of a set is its index there:
//
//	summary  which of the words are not zero
//	words    bit i of word w is rule 64*w + i
//
// Sets are added and never changed, so readers of an older, shorter array go on.
type pool struct {
	words int // of a set: at most 64
	array []uint64
	known map[string]uint32 // by the bytes of its words; for adding only
}

func newPool(rules int) *pool {
	return &pool{words: (rules + 63) / 64, known: map[string]uint32{}}
}

// ruleBits is a set under construction.
type ruleBits []uint64

func (p *pool) empty() ruleBits { return make(ruleBits, p.words) }

func (b ruleBits) add(rule int) { b[rule/64] |= 1 << (rule % 64) }

func (b ruleBits) or(other ruleBits) {
	for i, w := range other {
		b[i] |= w
	}
}

// set returns a copy of the set with a name.
func (p *pool) set(name uint32) ruleBits {
	return append(ruleBits(nil), p.array[name+1:int(name)+1+p.words]...)
}

// name returns the name of a set. It adds the set if it is new.
func (p *pool) name(b ruleBits) uint32 {
	key := make([]byte, 0, 8*len(b))
	sum := uint64(0)
	for i, w := range b {
		for s := 0; s < 64; s += 8 {
			key = append(key, byte(w>>s))
		}
		if w != 0 {
			sum |= 1 << i
		}
	}
	if n, ok := p.known[string(key)]; ok {
		return n
	}
	n := uint32(len(p.array))
	p.array = append(append(p.array, sum), b...)
	p.known[string(key)] = n
	return n
}

// match returns the first rule that is in all sets.
func match(array []uint64, sets []uint32) int {
	sum := ^uint64(0)
	for _, s := range sets {
		sum &= array[s]
	}
	for sum != 0 {
		w := bits.TrailingZeros64(sum)
		x := ^uint64(0)
		for _, s := range sets {
			x &= array[int(s)+1+w]
		}
		if x != 0 {
			return w<<6 + bits.TrailingZeros64(x)
		}
		sum &= sum - 1
	}
	return none
}
