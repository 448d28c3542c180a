package policy

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

// Flows that a stranger has chosen lie where flows at random would, in both buckets and by tag.
func TestKeyHash(t *testing.T) {
	all := mixtest.Word{Hi: ^uint64(0), Lo: ^uint64(0)}
	for name, end := range map[string]int{"first bucket": 64 - 11, "second bucket": 32 - 11, "tag": 12} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []int{0, 2, 3} {
				mixtest.Table(t, all, mixtest.Word{}, func(k *mix.Key, w mixtest.Word) uint64 {
					f := key{0, 0xffff0a000001, 0, 0xffff0a000002, 443<<32 | 6<<24 | 7}
					f[at], f[at+1] = w.Hi, w.Lo
					return f.hash(k) >> end
				})
			}
			// Ports and low bits of addresses, as one host behind an IPv4 address has them.
			mixtest.Table(t, mixtest.Word{Hi: 1<<32 - 1, Lo: (1<<32 - 1) << 32}, mixtest.Word{Hi: 0xffff << 32, Lo: 6<<24 | 7}, func(k *mix.Key, w mixtest.Word) uint64 {
				f := key{0, 0xffff0a000001, 0, w.Hi, w.Lo}
				return f.hash(k) >> end
			})
		})
	}
}
