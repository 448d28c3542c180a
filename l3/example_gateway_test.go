package l3_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A gateway between two segments of a switch: in each, neighbours, an interface, and its
// MAC as an entry of the FDB that says "the switch itself".
func ExampleVRF_NewInterface() {
	sw, err := vswitch.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sw.Close()
	gateway, err := l3.NewGateway(nil)
	if err != nil {
		log.Fatal(err)
	}
	red := gateway.VRF("red")
	mac := frame.MAC{2, 0, 0, 0, 0xff, 1}
	for vni, addr := range map[frame.VNI]string{10: "192.168.10.254/24", 20: "192.168.20.254/24"} {
		vsi, err := sw.VSI(vni, nil)
		if err != nil {
			log.Fatal(err)
		}
		table, err := arp.NewTable(&arp.TableConfig{VNI: vni, Notify: sw.Notify})
		if err != nil {
			log.Fatal(err)
		}
		neighbours, err := arp.NewResponder(&arp.Config{Table: table})
		if err != nil {
			log.Fatal(err)
		}
		i, err := red.NewInterface(&l3.InterfaceConfig{
			VNI: vni, Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}, MAC: mac,
			Neighbours: neighbours, Send: vsi.Send,
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := vsi.FDB().Set(mac, 0, fdb.Static); err != nil {
			log.Fatal(err)
		}
		slots := vswitch.Slots{Neighbour: neighbours, Gateway: i, TooBig: i.PathMTU()}
		if err := vsi.Configure(vswitch.VSIConfig{Slots: slots}); err != nil {
			log.Fatal(err)
		}
	}
	next := l3.NextHop{Interface: red.Interface(20), IP: netip.MustParseAddr("192.168.20.1")}
	if err := red.Add(l3.Route{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: []l3.NextHop{next}}); err != nil {
		log.Fatal(err)
	}
	for _, r := range red.Routes() {
		fmt.Println(r.Prefix, r.Via)
	}
	fmt.Println(red.Add(l3.Route{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Via: []l3.NextHop{{}}}))
	// Output:
	// 0.0.0.0/0 [vni 20 via 192.168.20.1]
	// l3: VRF red: route 10.0.0.0/8: next hop: Interface: nil, closed or of another VRF
}
