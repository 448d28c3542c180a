package model

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What FelixConfigurations say of VXLAN: that of the node before the one that selects it, and that before the one of all nodes.
func TestFelix(t *testing.T) {
	base := data{"nodes/a": `{"bgp":{"ipv4Address":"192.0.2.1/24"}}`}
	for _, c := range []struct {
		more data
		want string
	}{
		{nil, "{0 } {0 } []"},
		{data{"felixconfigurations/default": `{"vxlanVNI":4097,"vxlanPort":4444}`, "felixconfigurations/node.b": `{"vxlanVNI":1}`, "felixconfigurations/other": `{"vxlanVNI":2}`},
			"{4097 felixconfigurations/default} {4444 felixconfigurations/default} []"},
		{data{"felixconfigurations/default": `{"vxlanVNI":4097,"vxlanPort":4444}`, "felixconfigurations/all": `{"nodeSelector":"all()","vxlanPort":4445}`},
			"{4097 felixconfigurations/default} {4445 felixconfigurations/all} []"},
		{data{"felixconfigurations/all": `{"nodeSelector":"all()","vxlanVNI":4097,"vxlanPort":4445}`, "felixconfigurations/node.a": `{"vxlanPort":4446}`},
			"{4097 felixconfigurations/all} {4446 felixconfigurations/node.a} []"},
		{data{"felixconfigurations/default": `{"vxlanPort":-1}`}, `{0 } {0 } [felixconfigurations/default: spec.vxlanPort "-1": must be 1 to 65535]`},
	} {
		plan := Compile(settings("a"), base.onto(c.more).store("a"))
		check.Equal(t, fmt.Sprint(c.more), fmt.Sprint(plan.VNI, plan.Port, plan.Problems), c.want)
	}
}
