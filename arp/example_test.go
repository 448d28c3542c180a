package arp_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A responder takes the slot Neighbour of a segment; it asks the segment's FDB where a MAC
// is, and needs no gateway.
func ExampleNewResponder() {
	sw, err := vswitch.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sw.Close()
	vsi, err := sw.VSI(100, nil)
	if err != nil {
		log.Fatal(err)
	}
	table, err := arp.NewTable(&arp.TableConfig{VNI: 100, Notify: sw.Notify})
	if err != nil {
		log.Fatal(err)
	}
	r, err := arp.NewResponder(&arp.Config{Table: table, Mode: arp.Suppress, Locate: vsi.FDB().Lookup})
	if err != nil {
		log.Fatal(err)
	}
	if err := vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Mode(), table.Len())
	// Output: suppress 0
}

// A control plane tells the table what it knows; entries show where they come from.
func ExampleTable_Set() {
	table, err := arp.NewTable(nil)
	if err != nil {
		log.Fatal(err)
	}
	router := frame.MAC{2, 0, 0, 0, 0, 1}
	if err := table.Set(netip.MustParseAddr("2001:db8::1"), router, arp.Control, arp.Router); err != nil {
		log.Fatal(err)
	}
	for e := range table.All() {
		fmt.Println(e.IP, e.MAC, e.Origin, e.State, e.Flags&arp.Router != 0)
	}
	fmt.Println(table.Set(netip.MustParseAddr("ff02::1"), router, arp.Static, 0))
	// Output:
	// 2001:db8::1 02:00:00:00:00:01 control permanent true
	// arp: address ff02::1: is a multicast group; must be the address of one host
}
