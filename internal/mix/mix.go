// Package mix is the hash of the tables that strangers fill. Who sends packets chooses
// addresses, MACs and ports, so the hash has a secret, and every word of a key goes through
// two multiplications with it: nobody can choose keys that pile up in one place, nor a word
// that makes the others count for nothing.
//
// The hash is no cryptographic one: its results must not be shown to strangers.
package mix

import (
	"math/bits"
	"math/rand/v2"
)

// A Key is the secret of a table. Make one with New: under the zero Key all hashes of a form
// may be equal.
type Key [3]uint64

// New returns a Key at random.
func New() Key { return Key{rand.Uint64(), rand.Uint64() | 1, rand.Uint64() | 1} }

// fold multiplies, and folds the product into a word.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Hash64 hashes a word. One multiplication would not be enough: words in rows and strides
// pile up then.
func (k *Key) Hash64(a uint64) uint64 { return fold(fold(a^k[0], k[1]), k[2]) }

// Hash128 hashes two words. Both factors have a secret, so that neither can be made zero.
func (k *Key) Hash128(a, b uint64) uint64 { return fold(fold(a^k[0], b^k[1]), k[2]) }

// Hash320 hashes five words.
func (k *Key) Hash320(w *[5]uint64) uint64 {
	ab := fold(w[0]^k[0], w[1]^k[1])
	cd := fold(w[2]^k[1], w[3]^k[2])
	return fold(cd^k[0], fold(w[4]^k[2], ab^k[0])^k[1])
}
