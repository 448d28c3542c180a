package bgp_test

import (
	"encoding/json"
	"fmt"

	"github.com/vxswitch/vxswitch/bgp"
)

// A switch of the rack, of another AS, gets blocks of pods and a route of one other peer, and may announce a default route and services. The
// JSON is that of a file; what cannot be had is refused.
func ExampleFilter() {
	var c bgp.Config
	err := json.Unmarshal([]byte(`{
		"as": 64512, "routerID": "192.0.2.11", "vrf": "cluster", "segment": 200, "addresses": ["192.0.2.11"],
		"announce": ["10.65.1.0/26"], "pools": [{"prefix": "10.65.0.0/16"}],
		"import": [{"prefix": "10.96.0.0/12"}], "defaultRoute": true,
		"filters": [{
			"name": "rack",
			"importV4": [
				{"prefix": "0.0.0.0/0", "operator": "equal"},
				{"prefix": "10.96.0.0/12", "min": 24, "community": "65000:100"},
				{"action": "reject"}
			],
			"exportV4": [
				{"prefix": "10.65.9.0/26", "operator": "equal", "source": "remote-peers", "operations": [{"addCommunity": "65000:7"}]},
				{"source": "remote-peers", "action": "reject"},
				{"prefix": "10.65.0.0/16", "max": 26, "operations": [{"prependASPath": [64512, 64512]}]},
				{"action": "reject"}
			]
		}],
		"peers": [{"address": "192.0.2.1", "as": 65000, "filters": ["rack"]}]
	}`), &c)
	fmt.Println(err, c.Check())

	c.Filters[0].ExportV4[3].Interface = "*.calico"
	fmt.Println(c.Check())
	// Output:
	// <nil> <nil>
	// bgp: Config.Filters[0].ExportV4[3].Interface: "*.calico": cannot be had: routes have segments here, and no interfaces
}
