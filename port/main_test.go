package port

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

// outs stages packets for a Writer.
func outs(packets ...[]byte) []frame.Out {
	o := make([]frame.Out, len(packets))
	for i, p := range packets {
		f := frame.Make(p)
		o[i].F = &f
	}
	return o
}

// ethernet returns a frame of n bytes with two addresses, a type and a payload
// that counts from seed on.
func ethernet(n int, seed byte) []byte {
	p := make([]byte, n)
	copy(p, []byte{0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xb5})
	for i := ethLen; i < n; i++ {
		p[i] = seed + byte(i)
	}
	return p
}

// tagged is the frame p with an 802.1Q tag: what a port must make of it.
func tagged(p []byte, tci ...byte) []byte {
	t := append([]byte(nil), p[:12]...)
	t = append(t, 0x81, 0x00)
	t = append(t, tci...)
	return append(t, p[12:]...)
}
