package port_test

import (
	"fmt"

	"github.com/songgao/water"

	"github.com/vxswitch/vxswitch/port"
)

// A device that was opened with water becomes a port. It needs the right to make
// devices.
func ExampleFromWater() {
	ifce, err := water.New(water.Config{DeviceType: water.TUN})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := port.FromWater(ifce, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(ifce.Name(), p.MTU(0)) // attach p to a VSI with a gateway
}

// Where OpenTAP is not supported, water opens the device.
func ExampleOpenWater() {
	p, err := port.OpenWater(water.Config{DeviceType: water.TAP}, &port.WaterConfig{MTU: 1450})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.MTU(0)) // attach p to a switch
}
