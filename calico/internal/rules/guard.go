package rules

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
)

// readFelix reads what the FelixConfigurations of the node allow workloads.
func (x *Compiler) readFelix(node string) {
	x.felix = resource.Felix{IPIP: new(false), VXLAN: new(false), Spoofing: new(false)}
	for _, f := range model.Felixes(x.s, node) {
		for _, b := range []struct{ to, is *bool }{{x.felix.IPIP, f.IPIP}, {x.felix.VXLAN, f.VXLAN}, {x.felix.Spoofing, f.Spoofing}} {
			if b.is != nil {
				*b.to = *b.is
			}
		}
		if f.VXLANPort != 0 {
			x.felix.VXLANPort = f.VXLANPort
		}
	}
}

// guard returns what keeps a workload to its own addresses.
func (x *Compiler) guard(e *resource.Endpoint) *policy.GuardConfig {
	g := &policy.GuardConfig{IPIP: *x.felix.IPIP, VXLAN: *x.felix.VXLAN, Tunnels: *x.felix.IPIP && *x.felix.VXLAN}
	if e.MAC != (frame.MAC{}) {
		g.MACs = []frame.MAC{e.MAC}
	}
	for _, a := range e.Addrs {
		g.Addrs = append(g.Addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	g.Addrs = append(g.Addrs, e.Spoofs...)
	if p := x.felix.VXLANPort; p != 0 {
		g.VXLANPorts = []uint16{p}
	}
	return g
}

// spoofing is why an endpoint has no traffic that asks for addresses of others, as in Felix; "" if it may, or asks for none.
func (x *Compiler) spoofing(e *resource.Endpoint) string {
	if len(e.Spoofs) == 0 || *x.felix.Spoofing {
		return ""
	}
	return "spec.allowSpoofedSourcePrefixes is there, and no felixconfigurations of the node has workloadSourceSpoofing: Any"
}
