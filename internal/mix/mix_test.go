package mix_test

import (
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

// Tables look at low bits, at high ones, and at some between: of flows, two buckets and a tag.
var ends = map[string]int{"low": 0, "tag": 12, "middle": 32 - 11, "high": 64 - 11}

func TestHashes(t *testing.T) {
	all := mixtest.Word{Hi: ^uint64(0), Lo: ^uint64(0)}
	word, mac, ip4 := mixtest.Word{Lo: ^uint64(0)}, mixtest.Word{Lo: 1<<48 - 1}, mixtest.Word{Lo: 1<<32 - 1}
	for end, shift := range ends {
		t.Run(end, func(t *testing.T) {
			t.Run("64", func(t *testing.T) {
				hash := func(k *mix.Key, w mixtest.Word) uint64 { return k.Hash64(w.Lo) >> shift }
				mixtest.Table(t, word, mixtest.Word{}, hash)
				mixtest.Table(t, mac, mixtest.Word{}, hash)
			})
			t.Run("addresses", func(t *testing.T) {
				hash := func(k *mix.Key, w mixtest.Word) uint64 {
					var a [16]byte
					binary.BigEndian.PutUint64(a[:], w.Hi)
					binary.BigEndian.PutUint64(a[8:], w.Lo)
					return k.HashAddr(&a) >> shift
				}
				mixtest.Table(t, all, mixtest.Word{}, hash)
				mixtest.Table(t, word, mixtest.Word{Hi: 0x20010db8 << 32}, hash)
				mixtest.Table(t, ip4, mixtest.Word{Lo: 0xffff << 32}, hash)
			})
			t.Run("flows", func(t *testing.T) { // ports and low bits of an IPv4 address, as one host has them
				some := mixtest.Word{Hi: 1<<32 - 1, Lo: (1<<32 - 1) << 32}
				mixtest.Table(t, some, mixtest.Word{Hi: 0xffff << 32, Lo: 6<<24 | 7}, func(k *mix.Key, w mixtest.Word) uint64 {
					return k.Hash320(&[5]uint64{0, 0xffff0a000001, 0, w.Hi, w.Lo}) >> shift
				})
			})
			for at := range 4 { // the pair of words that differs
				t.Run("320", func(t *testing.T) {
					mixtest.Table(t, all, mixtest.Word{}, func(k *mix.Key, w mixtest.Word) uint64 {
						five := [5]uint64{1, 2, 3, 4, 5}
						five[at], five[at+1] = w.Hi, w.Lo
						return k.Hash320(&five) >> shift
					})
				})
			}
		})
	}
}

func TestNew(t *testing.T) {
	if a, b := mix.New(), mix.New(); a == b || a[1]&1 == 0 || a[2]&1 == 0 {
		t.Errorf("%x, %x: two secrets wanted, the multipliers odd", a, b)
	}
}
