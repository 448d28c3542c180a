package main

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
)

func TestOuterPort(t *testing.T) {
	vxlan := make([]byte, 14+20+8+encap.VXLANLen+14+20)
	vxlan[23], vxlan[34], vxlan[35], vxlan[36], vxlan[37] = 17, 0xc0, 1, 0x12, 0xb5
	vxlan[62], vxlan[73] = 8, 17
	if p, ok := outerPort(vxlan); !ok || p != 0xc001 {
		t.Errorf("port %#x, %v", p, ok)
	}
	for _, i := range []int{23, 36, 62, 73} { // outer protocol, port, inner type, inner protocol
		b := slices.Clone(vxlan)
		b[i]++
		if _, ok := outerPort(b); ok {
			t.Errorf("byte %d is another", i)
		}
	}
	if _, ok := outerPort(vxlan[:len(vxlan)-1]); ok {
		t.Error("too short")
	}
}
