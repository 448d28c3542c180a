package mixtest

import (
	"math/bits"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// Hashes that strangers can defeat are found out.
func TestFound(t *testing.T) {
	all := Word{^uint64(0), ^uint64(0)}
	for name, hash := range map[string]func(k *mix.Key, w Word) uint64{
		"constant":  func(*mix.Key, Word) uint64 { return 1 },
		"no secret": func(_ *mix.Key, w Word) uint64 { return (w.Hi*0x9ddfea08eb382d69 ^ w.Lo) * 0x9e3779b97f4a7c15 >> 32 },
		"one factor": func(k *mix.Key, w Word) uint64 {
			return product(w.Hi^k[0], w.Lo^0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15 >> 32
		},
		"one round": func(k *mix.Key, w Word) uint64 { return product(w.Hi^k[0], w.Lo^k[1]) },
		"the sum":   func(k *mix.Key, w Word) uint64 { return product(product(w.Hi+w.Lo+k[0], k[1]), k[2]) },
	} {
		found := false
		for _, k := range Keys() {
			for _, set := range Sets(all, Word{}) {
				found = found || check(set, func(w Word) uint64 { return hash(&k, w) }) != nil
			}
		}
		if !found {
			t.Errorf("%s: passes for a good hash", name)
		}
	}
}

func product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
