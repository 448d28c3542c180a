package water_test

import (
	"fmt"

	songgao "github.com/songgao/water"

	"github.com/vxswitch/vxswitch/port/water"
)

// A device that was opened with water becomes a port. It needs the right to make
// devices.
func ExampleFrom() {
	ifce, err := songgao.New(songgao.Config{DeviceType: songgao.TUN})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := water.From(ifce, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(ifce.Name(), p.MTU(0)) // attach p to a VSI with a gateway
}

// Where OpenTAP is not supported, water opens the device.
func ExampleOpen() {
	p, err := water.Open(songgao.Config{DeviceType: songgao.TAP}, &water.Config{MTU: 1450})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.MTU(0)) // attach p to a switch
}
