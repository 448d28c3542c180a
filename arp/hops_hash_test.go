package arp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/mix/mixtest"
)

func TestHopKeys(t *testing.T) {
	slot := func(k *mix.Key, w mixtest.Word) uint64 {
		var a [16]byte
		binary.BigEndian.PutUint64(a[:], w.Hi)
		binary.BigEndian.PutUint64(a[8:], w.Lo)
		h := hops{seed: *k}
		return h.key(netip.AddrFrom16(a))
	}
	mixtest.Table(t, mixtest.Word{Hi: ^uint64(0), Lo: ^uint64(0)}, mixtest.Word{}, slot)
	mixtest.Table(t, mixtest.Word{Lo: ^uint64(0)}, mixtest.Word{Hi: 0x20010db8 << 32}, slot)
	mixtest.Table(t, mixtest.Word{Lo: 1<<32 - 1}, mixtest.Word{Lo: 0xffff << 32}, slot)
}
