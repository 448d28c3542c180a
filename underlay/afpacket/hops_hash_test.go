package afpacket

import (
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

func TestHopHash(t *testing.T) {
	slot := func(k *mix.Key, w mixtest.Word) uint64 {
		var h hopKey
		binary.BigEndian.PutUint64(h[:], w.Hi)
		binary.BigEndian.PutUint64(h[8:], w.Lo)
		return h.Hash(k)
	}
	mixtest.Table(t, mixtest.Word{Hi: ^uint64(0), Lo: ^uint64(0)}, mixtest.Word{}, slot)
	mixtest.Table(t, mixtest.Word{Lo: 1<<32 - 1}, mixtest.Word{Lo: 0xffff << 32}, slot)
}
