package flannel_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/flannel"
)

func ExampleParseLease() {
	l, err := flannel.ParseLease("10.230.33.0-24",
		[]byte(`{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}}`))
	fmt.Println(l.Subnet, "at", l.IPv4.PublicIP, err)
	_, err = flannel.ParseLease("10.230.33.7-24", nil)
	fmt.Println(err)
	// Output:
	// 10.230.33.0/24 at 10.9.0.1 <nil>
	// flannel: lease "10.230.33.7-24": host-bits: 10.230.33.7/24: must be 10.230.33.0/24
}
