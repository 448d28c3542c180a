package encap_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/encap"
)

func ExamplePutVXLAN() {
	var b [encap.VXLANLen]byte
	encap.PutVXLAN(b[:], 4100)
	h, drop := encap.ParseVXLAN(b[:])
	fmt.Printf("% x\n", b)
	fmt.Println("vni", h.VNI(), "drop", drop)
	// Output:
	// 08 00 00 00 00 10 04 00
	// vni 4100 drop none
}

func ExampleType_Overhead() {
	fmt.Println("inner MTU over a 1500-byte underlay:", 1500-encap.TypeVXLAN.Overhead(false), 1500-encap.TypeVXLAN.Overhead(true))
	// Output: inner MTU over a 1500-byte underlay: 1450 1430
}
