package resource

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// A Mode says when packets to a pool are encapsulated.
type Mode string

// Modes.
const (
	Never       Mode = "Never"
	Always      Mode = "Always"
	CrossSubnet Mode = "CrossSubnet"
)

// A Pool is an IPPool: a range of addresses of workloads, and how packets to them travel.
type Pool struct {
	Prefix      netip.Prefix
	IPIP, VXLAN Mode // one of them is Never
	NoExport    bool // its blocks are not announced
	NAT         bool // packets out of all pools leave with the node's address
	Services    bool // it is of load balancers alone, and no workload has an address of it
}

type rawPool struct {
	Spec struct {
		CIDR             string   `json:"cidr"`
		VXLANMode        Mode     `json:"vxlanMode"`
		IPIPMode         Mode     `json:"ipipMode"`
		NATOutgoing      bool     `json:"natOutgoing"`
		DisableBGPExport bool     `json:"disableBGPExport"`
		AllowedUses      []string `json:"allowedUses"`
	} `json:"spec"`
}

func (r *rawPool) read() (*Pool, error) {
	s := &r.Spec
	p := &Pool{IPIP: s.IPIPMode, VXLAN: s.VXLANMode, NoExport: s.DisableBGPExport, NAT: s.NATOutgoing}
	for field, m := range map[string]*Mode{"spec.ipipMode": &p.IPIP, "spec.vxlanMode": &p.VXLAN} {
		if *m == "" {
			*m = Never
		}
		if err := one(field, string(*m), string(Never), string(Always), string(CrossSubnet)); err != nil {
			return nil, err
		}
	}
	var err error
	if p.Prefix, err = prefix("spec.cidr", s.CIDR); err != nil {
		return nil, err
	}
	switch err := hostaddr.Routed(p.Prefix); {
	case err != nil:
		return nil, wrong("spec.cidr", s.CIDR, "%v", err)
	case p.Prefix.Bits() == 0:
		return nil, wrong("spec.cidr", s.CIDR, "must not be all there is")
	case p.IPIP != Never && p.VXLAN != Never:
		return nil, wrong("spec.ipipMode", p.IPIP, "must be Never with vxlanMode %s", p.VXLAN)
	case p.IPIP != Never && !p.Prefix.Addr().Is4():
		return nil, wrong("spec.ipipMode", p.IPIP, "must be Never in an IPv6 pool")
	}
	p.Services = len(s.AllowedUses) == 1 && s.AllowedUses[0] == "LoadBalancer"
	return p, nil
}
