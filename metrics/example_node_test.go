package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/metrics"
	"github.com/vxswitch/vxswitch/node"
)

// A node is shown as a whole, whatever its configuration makes of it.
func ExampleOfNode() {
	n, err := node.New(nil)
	if err != nil {
		panic(err)
	}
	defer n.Close()
	cfg, err := node.Parse([]byte(`{
	  "policies": [{"name": "web", "rules": [{"name": "http", "protocol": 6, "dstPorts": ["80"]}]}],
	  "segments": [{"vni": 100, "policy": "web"}]
	}`))
	if err != nil {
		panic(err)
	}
	if err := n.Apply(cfg); err != nil {
		panic(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.New(metrics.OfNode(n)))
	all, err := reg.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range all {
		if f.GetName() == "vxswitch_policy_packets_total" {
			for _, m := range f.Metric {
				fmt.Println(f.GetName(), m.Label[0].GetValue(), m.Label[2].GetValue(), m.Counter.GetValue())
			}
		}
	}
	// Output:
	// vxswitch_policy_packets_total default  0
	// vxswitch_policy_packets_total neighbours  0
	// vxswitch_policy_packets_total rule http 0
}
