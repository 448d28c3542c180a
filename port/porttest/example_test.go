package porttest_test

import (
	"context"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/porttest"
)

// A port that duplicates everything on the way out, and then loses everything.
func ExampleNewFaulty() {
	host := port.NewPipe(nil)
	f, err := porttest.NewFaulty(host, &porttest.FaultyConfig{Out: porttest.Faults{Duplicate: 1}, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := f.Port() // attach it to a switch, or write to it
	defer p.Close()

	x := frame.Make([]byte("to-macfrommc\x88\xb5hello"))
	_ = p.Writer(0).Write([]frame.Out{{F: &x}})
	for range 2 {
		packet, err := host.Recv(context.Background())
		fmt.Printf("%s %v\n", packet[14:], err)
	}
	_ = f.Set(porttest.Faults{}, porttest.Faults{Loss: 1})
	_ = p.Writer(0).Write([]frame.Out{{F: &x}})
	fmt.Println(f.Stats().Out.Lost, "lost")
	// Output:
	// hello <nil>
	// hello <nil>
	// 1 lost
}
