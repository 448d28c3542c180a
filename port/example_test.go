package port_test

import (
	"context"
	"fmt"
	"os"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
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

// A router's way into a network namespace: IP packets, four queues. The example needs
// CAP_NET_ADMIN and CAP_SYS_ADMIN.
func ExampleOpenTUN() {
	tun, err := port.OpenTUN("tun0", &port.DeviceConfig{Namespace: "blue", Queues: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tun.Close()
	fmt.Println(tun.Name(), len(tun.Readers()), tun.MTU(0))
}

// A switch between two network interfaces, such as veths of containers. The example needs
// CAP_NET_RAW.
func ExampleOpenPacket() {
	sw, err := vswitch.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sw.Close()
	vsi, err := sw.VSI(1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"veth-a", "veth-b"} {
		p, err := port.OpenPacket(name, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := vsi.Attach(p, 0); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := sw.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

// A child without privileges gets a queue from its parent as descriptor 3, as with
// [os/exec.Cmd.ExtraFiles].
func ExampleFromFiles() {
	dev, err := port.FromFiles([]*os.File{os.NewFile(3, "tap0")}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	fmt.Println(dev.Name())
}

// A guest in a network namespace of its own, blue, gets its end of a veth pair. The example needs CAP_NET_ADMIN and CAP_SYS_ADMIN.
func ExampleOpenVeth() {
	veth, err := port.OpenVeth("eth0", &port.DeviceConfig{Namespace: "blue", MTU: 1450})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer veth.Close()
	fmt.Println(veth.Name(), veth.MTU(0))
}
