package policy_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Web servers are open to everybody at port 80, and may ask a name server themselves. One
// port is held to its own MAC and address besides.
func Example() {
	p, err := policy.New(&policy.Config{
		Default: policy.Deny,
		Sets:    map[string][]netip.Prefix{"web": {netip.MustParsePrefix("10.0.0.80/32")}},
		Rules: []policy.Rule{
			{Name: "web", DstSet: "web", Protocol: 6, DstPorts: []policy.PortRange{policy.Port(80)}},
			{Name: "dns", SrcSet: "web", Protocol: 17, DstPorts: []policy.PortRange{policy.Port(53)}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := policy.NewGuard(&policy.GuardConfig{
		MACs:  []frame.MAC{{2, 0, 0, 0, 0, 0x80}},
		Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.80/32")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	sw, err := vswitch.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = sw.VSI(100, &vswitch.VSIConfig{Slots: vswitch.Slots{
		Ingress: vswitch.Chain(guard, p.Ingress()),
		Egress:  p.Egress(),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sw.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}

	// Another server, under traffic.
	fmt.Println(p.AddToSet("web", netip.MustParsePrefix("10.0.0.81/32")))
	fmt.Println(p.Set("web"))
	_, err = policy.New(&policy.Config{Rules: []policy.Rule{{Protocol: 1, DstPorts: []policy.PortRange{{First: 80, Last: 70}}}}})
	fmt.Println(err)
	// Output:
	// <nil>
	// [10.0.0.80/32 10.0.0.81/32]
	// policy: Config.Rules[0].DstPorts[0]: 80-70: must be a range in ascending order
	// policy: Config.Rules[0].DstPorts: protocol 1 has no ports
}
