// Package mixtest looks for keys that pile up in a hash table.
package mixtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// A Word is one of 128 bits: an address, or in its low bits less than one.
type Word struct{ Hi, Lo uint64 }

// size is how many keys a set has. It is looked up in a table of twice as many slots.
const size = 1024

// Odd constants that hashes multiply with. A factor that was blended with one of them is made
// zero by the constant itself.
var constants = []uint64{
	0x9e3779b97f4a7c15, 0x9ddfea08eb382d69, 0xd1b54a32d192ed03, 0xbf58476d1ce4e5b9,
	0x94d049bb133111eb, 0xd6e8feb86659fd93, 0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53,
}

// Keys returns some keys, the same ones each time.
func Keys() []mix.Key {
	r := rand.New(rand.NewPCG(10, 1))
	ks := make([]mix.Key, 3)
	for i := range ks {
		ks[i] = mix.Key{r.Uint64(), r.Uint64() | 1, r.Uint64() | 1}
	}
	return ks
}

// Sets returns sets of keys as a stranger might choose them, none twice in one set. Bits that are not
// in free are those of base.
func Sets(free, base Word) map[string][]Word {
	r := rand.New(rand.NewPCG(10, 2))
	sets := map[string][]Word{}
	add := func(name string, f func(i uint64) Word) {
		seen, set := map[Word]bool{}, []Word(nil)
		for i := range uint64(size) {
			w := f(i)
			w = Word{w.Hi&free.Hi | base.Hi&^free.Hi, w.Lo&free.Lo | base.Lo&^free.Lo}
			if !seen[w] {
				seen[w] = true
				set = append(set, w)
			}
		}
		if len(set) == size { // else the free bits do not have it
			sets[name] = set
		}
	}
	for _, shift := range []int{0, 1, 4, 8, 12, 16, 20, 24, 32, 36, 40, 48, 52} {
		add(fmt.Sprint("counted at bit ", shift), func(i uint64) Word { return Word{base.Hi, i << shift} })
		add(fmt.Sprint("prefixes counted at bit ", shift), func(i uint64) Word { return Word{i << shift, 1} })
	}
	for _, c := range constants {
		for _, shift := range []int{0, 32} {
			add(fmt.Sprintf("one identifier %x in prefixes at bit %d", c, shift), func(i uint64) Word { return Word{0x20010db8<<32 ^ i<<shift, c} })
			add(fmt.Sprintf("one prefix %x, counted at bit %d", c, shift), func(i uint64) Word { return Word{c, i << shift} })
		}
		add(fmt.Sprintf("multiples of %x", c), func(i uint64) Word { return Word{0, i * c} })
		add(fmt.Sprintf("prefixes that are multiples of %x", c), func(i uint64) Word { return Word{i * c, c} })
		add(fmt.Sprintf("both multiples of %x", c), func(i uint64) Word { return Word{i * c, i * c} })
	}
	for _, stride := range []uint64{3, 5, 7, 17, 255, 257, 4095, 4097, 65521, 65537, 1<<20 + 1} {
		add(fmt.Sprint("stride ", stride), func(i uint64) Word { return Word{base.Hi, i * stride} })
	}
	add("equal halves", func(i uint64) Word { return Word{i, i} })
	add("complements", func(i uint64) Word { return Word{i, ^i} })
	add("two counters", func(i uint64) Word { return Word{i >> 6, i & 63} })
	add("products", func(i uint64) Word { return Word{1 + i, size / (1 + i)} })
	x := Word{r.Uint64(), r.Uint64()}
	add("two bits turned", func(i uint64) Word {
		w := x
		for _, b := range []uint64{i & 63, 64 + i>>6} {
			if b < 64 {
				w.Lo ^= 1 << b
			} else {
				w.Hi ^= 1 << (b - 64)
			}
		}
		return w
	})
	add("a bit and a counter", func(i uint64) Word { return Word{0, 1<<(i&31+16) ^ i>>5} })
	add("at random", func(uint64) Word { return Word{r.Uint64(), r.Uint64()} })
	return sets
}

// Table looks for keys that pile up in a table whose slots are chosen by the low bits of what
// slot returns. It fails where a set hits fewer slots than keys at random do, or is found later
// by linear probing.
func Table(t testing.TB, free, base Word, slot func(k *mix.Key, w Word) uint64) {
	t.Helper()
	sets := Sets(free, base)
	if len(sets) < 8 { // nothing would have been looked at
		t.Fatalf("%d sets of keys only", len(sets))
	}
	for n, k := range Keys() {
		for name, set := range sets {
			if err := check(set, func(w Word) uint64 { return slot(&k, w) }); err != nil {
				t.Errorf("key %d: %s: %v", n, name, err)
			}
		}
	}
}

// check puts a set into a table with twice as many slots. Of n keys at random in m slots about
// m(1-exp(-n/m)) slots are hit, and one that is in the table is found after (1+1/(1-n/m))/2 looks on average (Knuth,
// The Art of Computer Programming, volume 3, section 6.4).
func check(set []Word, slot func(Word) uint64) error {
	const slots = 2 * size
	n, m := float64(size), float64(slots)
	hit, taken := make([]bool, slots), make([]bool, slots)
	used, looks, longest := 0, 0, 0
	for _, w := range set {
		i := slot(w) % slots
		if !hit[i] {
			hit[i] = true
			used++
		}
		length := 1
		for ; taken[i]; i = (i + 1) % slots {
			length++
		}
		taken[i] = true
		looks += length
		longest = max(longest, length)
	}
	load := n / m
	mean := m * (1 - math.Exp(-load))
	deviation := math.Sqrt(m * math.Exp(-load) * (1 - (1+load)*math.Exp(-load)))
	switch average := float64(looks) / n; {
	case float64(used) < mean-7*deviation:
		return fmt.Errorf("%d slots are hit, keys at random hit %.0f", used, mean)
	case average > 1.4*(1+1/(1-load))/2: // of 12,000 sets at random the worst has 1.2 times as many
		return fmt.Errorf("found after %.2f looks, keys at random after %.2f", average, (1+1/(1-load))/2)
	case longest > 80:
		return fmt.Errorf("found after %d looks", longest)
	}
	return nil
}
