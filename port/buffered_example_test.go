package port_test

import (
	"fmt"
	"net"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
)

// Two frames are written although nobody reads yet.
func ExampleNewBuffered() {
	near, far := net.Pipe()
	b, err := port.NewBuffered(port.FromReadWriteCloser(near, nil), &port.BufferedConfig{Queue: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := b.Port() // attach it to a switch, or write to it
	defer p.Close()

	x, y := frame.Make([]byte("to-macfrommc\x88\xb5one")), frame.Make([]byte("to-macfrommc\x88\xb5two"))
	err = p.Writer(0).Write([]frame.Out{{F: &x}, {F: &y}})
	fmt.Println("written", err)

	buf := make([]byte, 1514)
	for range 2 {
		n, err := far.Read(buf)
		fmt.Printf("%s %v\n", buf[14:n], err)
	}
	// Output:
	// written <nil>
	// one <nil>
	// two <nil>
}
