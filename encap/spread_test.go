package encap

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Whatever the seed, flows that differ in a counter spread over all 16 source ports,
// which are picked by the top of the low 16 bits.
func TestFlowHashSpreadsForEverySeed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		flow func(i int) []byte
	}{
		{"UDP source ports", func(i int) []byte { return eth(nil, typeIPv4, ip4(protoUDP, 0, uint16(i))) }},
		{"IPv6 source ports", func(i int) []byte { return eth(nil, typeIPv6, ip6(protoTCP, uint16(i))) }},
		{"source MACs", func(i int) []byte {
			b := eth(nil, 0x88b5, make([]byte, 46))
			b[10], b[11] = byte(i>>8), byte(i)
			return b
		}},
	} {
		bad := 0
		for range 500 {
			var bucket [16]int
			seed := r.Uint64()
			for i := range 512 {
				bucket[uint16(FlowHash(c.flow(i), seed))>>12]++
			}
			chi := 0.0
			for _, n := range bucket {
				d := float64(n - 32)
				chi += d * d / 32
			}
			if chi > 50 { // 15 degrees of freedom: one in 80,000
				bad++
			}
		}
		if bad > 1 {
			t.Errorf("%s: uneven for %d of 500 seeds", c.name, bad)
		}
	}
}

// A word of an address that makes a factor of the hash zero for one seed does not for another: with
// a constant alone in front of it, all prefixes of such an interface identifier were one flow.
func TestFlowHashHasNoZero(t *testing.T) {
	for _, id := range []uint64{0xd1b54a32d192ed03, 0x9e3779b97f4a7c15, 0} {
		hashes := map[uint32]bool{}
		const flows = 512
		for i := range uint64(flows) {
			p := make([]byte, ipv6Len)
			p[0], p[6] = 0x60, 59
			binary.BigEndian.PutUint64(p[8:], 0x20010db8<<32|i) // source
			binary.BigEndian.PutUint64(p[16:], id^59<<32)
			p[39] = 1
			hashes[FlowHashIP(p, 7)] = true
		}
		if len(hashes) < flows-8 {
			t.Errorf("identifier %x: %d flows have %d hashes", id, flows, len(hashes))
		}
	}
}
