package controltest_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
)

// A control plane can be tested without a switch.
func ExampleModel() {
	m := &controltest.Model{VNIs: []frame.VNI{100}, Owners: []string{"admin"}}
	host := frame.MAC{2, 0, 0, 0, 0, 1}
	say := func(owner, vtep string) {
		row := control.MAC{VNI: 100, MAC: host, VTEP: netip.MustParseAddrPort(vtep)}
		if err := m.Program(owner, control.Update{Add: []control.Row{row}}); err != nil {
			fmt.Println(err)
		}
	}
	say("bgp", "10.0.0.2:4789")
	say("admin", "10.0.0.3:4789")
	fmt.Println(m.MAC(100, host))
	m.Forget("admin")
	fmt.Println(m.MAC(100, host))
	// Output:
	// 10.0.0.3
	// 10.0.0.2
}
