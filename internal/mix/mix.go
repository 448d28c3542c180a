// Package mix is the hash for tables that strangers fill. They choose addresses, MACs and ports, so the hash has a secret,
// and each word of a key is multiplied twice with it: nobody can choose keys that collide, or a word that cancels the
// others.
//
// The hash is not cryptographic: do not show its results to strangers.
package mix

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// A Key is the secret of a table. Make one with New; under the zero Key, hashes may be equal.
type Key [3]uint64

// New returns a random Key.
func New() Key { return Key{rand.Uint64(), rand.Uint64() | 1, rand.Uint64() | 1} }

// Fold multiplies two words and folds the product into one. Combine each factor with a secret, so that nobody can make
// one zero and cancel the other.
func Fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Hash64 hashes a word. A single multiplication would not do: consecutive words and strides would collide.
func (k *Key) Hash64(a uint64) uint64 { return Fold(Fold(a^k[0], k[1]), k[2]) }

// Hash128 hashes two words. Both factors have a secret, so that neither can be made zero.
func (k *Key) Hash128(a, b uint64) uint64 { return Fold(Fold(a^k[0], b^k[1]), k[2]) }

// HashAddr hashes an address of 16 bytes.
func (k *Key) HashAddr(a *[16]byte) uint64 {
	return k.Hash128(binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:]))
}

// Hash320 hashes five words.
func (k *Key) Hash320(w *[5]uint64) uint64 {
	ab := Fold(w[0]^k[0], w[1]^k[1])
	cd := Fold(w[2]^k[1], w[3]^k[2])
	return Fold(cd^k[0], Fold(w[4]^k[2], ab^k[0])^k[1])
}
