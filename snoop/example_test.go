package snoop_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A segment that asks its hosts which groups they listen to.
func Example() {
	sw, err := vswitch.New(nil)
	if err != nil {
		panic(err)
	}
	defer sw.Close()
	vsi, err := sw.VSI(100, nil)
	if err != nil {
		panic(err)
	}
	s, err := snoop.New(&snoop.Config{Querier: true, MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Send: vsi.Send})
	if err != nil {
		panic(err)
	}
	err = vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Multicast: s}})
	fmt.Println(s.Stats().Listeners, s.Config().Interval, err)
	// Output: 0 2m5s <nil>
}
