package resource

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// A Pool is an IPPool: a range of addresses of workloads, and how packets to them travel.
type Pool struct {
	Prefix        netip.Prefix
	Encapsulation bgp.Encapsulation
	Mode          bgp.Mode // with an encapsulation
	NoExport      bool     // its blocks are not announced
	NAT           bool     // packets out of all pools leave with the node's address
	Services      bool     // it is of load balancers alone, and no workload has an address of it
}

type rawPool struct {
	Spec struct {
		CIDR             string   `json:"cidr"`
		VXLANMode        string   `json:"vxlanMode"`
		IPIPMode         string   `json:"ipipMode"`
		NATOutgoing      bool     `json:"natOutgoing"`
		DisableBGPExport bool     `json:"disableBGPExport"`
		AllowedUses      []string `json:"allowedUses"`
	} `json:"spec"`
}

func (r *rawPool) read() (*Pool, error) {
	s := &r.Spec
	p := &Pool{NoExport: s.DisableBGPExport, NAT: s.NATOutgoing, Services: len(s.AllowedUses) == 1 && s.AllowedUses[0] == "LoadBalancer"}
	for _, x := range []struct {
		field, mode string
		kind        bgp.Encapsulation
	}{{"spec.ipipMode", s.IPIPMode, bgp.IPIP}, {"spec.vxlanMode", s.VXLANMode, bgp.VXLAN}} {
		if err := oneOrNone(x.field, x.mode, "Never", "Always", "CrossSubnet"); err != nil {
			return nil, err
		}
		switch {
		case x.mode == "" || x.mode == "Never":
			continue
		case p.Encapsulation != bgp.Never:
			return nil, wrong("spec.ipipMode", s.IPIPMode, "must be Never with vxlanMode %s", s.VXLANMode)
		case x.mode == "CrossSubnet":
			p.Mode = bgp.CrossSubnet
		}
		p.Encapsulation = x.kind
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
	case p.Encapsulation == bgp.IPIP && !p.Prefix.Addr().Is4():
		return nil, wrong("spec.ipipMode", s.IPIPMode, "must be Never in an IPv6 pool")
	}
	return p, nil
}
