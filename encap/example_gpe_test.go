package encap_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

func ExamplePutGPE() {
	var b [encap.VXLANLen]byte
	encap.PutGPE(b[:], 77, frame.IPv4, false)
	h, drop := encap.ParseGPE(b[:])
	kind, known := h.Kind()
	fmt.Printf("% x\n", b)
	fmt.Println("vni", h.VNI(), "drop", drop, "IPv4", known && kind == frame.IPv4)
	// Output:
	// 0c 00 00 01 00 00 4d 00
	// vni 77 drop none IPv4 true
}

func ExampleParseIP() {
	packet := []byte{
		0x45, 0, 0, 20, 0, 0, 0, 0, // 20 bytes long
		64, 253, 0, 0,
		10, 0, 0, 1,
		10, 0, 0, 2,
		0, 0, 0, // padding
	}
	n, drop := encap.ParseIP(packet, frame.IPv4)
	fmt.Println(n, drop)
	n, drop = encap.ParseIP(packet, frame.IPv6)
	fmt.Println(n, drop)
	// Output:
	// 20 none
	// 0 bad-header
}

func ExampleFlowHashIP() {
	a := make([]byte, 28)
	a[0], a[9] = 0x45, 17
	b := append([]byte(nil), a...)
	b[8] = 9 // TTL: the same flow
	fmt.Println(encap.FlowHashIP(a, 1) == encap.FlowHashIP(b, 1))
	b[21] = 9 // source port
	fmt.Println(encap.FlowHashIP(a, 1) == encap.FlowHashIP(b, 1))
	// Output:
	// true
	// false
}

func ExampleType_Outer() {
	for _, t := range []encap.Type{encap.TypeGPE, encap.TypeIPIP} {
		fmt.Println(t, 1500-t.Outer(false), 1500-t.Outer(true))
	}
	// Output:
	// gpe 1464 1444
	// ipip 1480 1460
}
