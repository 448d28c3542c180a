package frame_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
)

func Example() {
	f := frame.Make([]byte("payload"))
	copy(f.Push(4), "head") // into the headroom: nothing moves
	fmt.Printf("%s, %d bytes of headroom left\n", f.Bytes(), f.Headroom())
	fmt.Printf("%s\n", f.Pull(4))
	// Output:
	// headpayload, 60 bytes of headroom left
	// payload
}

func ExampleDrops_All() {
	var d frame.Drops
	d[frame.UnknownVNI] += 2
	d[frame.Short]++
	for reason, n := range d.All() {
		fmt.Println(reason, n)
	}
	// Output:
	// short 1
	// unknown-vni 2
}

func ExampleVerdict() {
	v := frame.Forward(frame.NewDest(3, 7))
	fmt.Println(v, v.Dest().Port(), v.Dest().Peer())
	fmt.Println(frame.Drop(frame.Reflect))
	// Output:
	// forward 3/7 3 7
	// drop reflect
}
