package port_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
)

// Print what the kernel sends out of a device. The example needs CAP_NET_ADMIN.
func ExampleOpenTAP() {
	tap, err := port.OpenTAP("tap0", &port.DeviceConfig{MTU: 1450})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tap.Close()

	b := frame.NewBatch(nil)
	for tap.Readers()[0].Read(b) == nil {
		for i := range b.Frames {
			fmt.Printf("%s: %x\n", tap.Name(), b.Frames[i].Bytes())
		}
	}
}
