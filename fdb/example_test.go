package fdb_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

func Example() {
	gens := fdb.NewGens()
	t := fdb.NewTable(&fdb.Config{VNI: 100, Gens: gens, Notify: func(e frame.Event) {
		fmt.Println(e.Kind, e.MAC, e.Dest)
	}})

	host := frame.MAC{0x02, 0, 0, 0, 0, 1}
	tap, tunnel := frame.NewDest(1, 0), frame.NewDest(2, 7)

	fmt.Println(t.Learn(host, tap, 0))
	fmt.Println(t.Learn(host, tap, 1))
	fmt.Println(t.Learn(host, tunnel, 2)) // it went to another machine

	d, ok := t.Lookup(host)
	fmt.Println(d, ok)

	gens.KillPeer(tunnel) // that machine is gone, for all tables
	_, ok = t.Lookup(host)
	fmt.Println(ok)

	// Output:
	// mac-learned 02:00:00:00:00:01 1
	// new
	// known
	// mac-moved 02:00:00:00:00:01 2/7
	// moved
	// 2/7 true
	// false
}

func ExampleTable_Set() {
	t := fdb.NewTable(nil)
	gateway := frame.MAC{0x02, 0, 0, 0, 0, 0xfe}
	t.Set(gateway, 0, fdb.Static)

	fmt.Println(t.Learn(gateway, frame.NewDest(1, 0), 0)) // somebody claims our MAC
	e, _ := t.Get(gateway)
	fmt.Println(e.Dest, e.Origin)

	// Output:
	// own
	// 0 static
}
