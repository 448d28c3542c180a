package main

import (
	"crypto/rand"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// neighbours fills the slots of ARP and ND, and of the gateway; it returns nil if there is
// neither.
func neighbours(o options, sw *vswitch.Switch, vsi *vswitch.VSI) (*arp.Responder, error) {
	if o.neigh == arp.Off && len(o.gateway) == 0 {
		return nil, nil
	}
	table, err := arp.NewTable(&arp.TableConfig{VNI: o.id, Limit: o.vsi.MaxMACs, Ageing: o.vsi.Ageing, Notify: sw.Notify})
	if err != nil {
		return nil, err
	}
	own := ownMAC()
	r, err := arp.NewResponder(arp.Config{Table: table, Mode: o.neigh, Locate: vsi.FDB().Lookup, MAC: own})
	if err != nil {
		return nil, err
	}
	o.vsi.Slots.Neighbour = r
	if len(o.gateway) > 0 {
		if err := gateway(&o, sw, vsi, r, own); err != nil {
			return nil, err
		}
	}
	return r, vsi.Configure(o.vsi)
}

// gateway puts a gateway into the segment, which other ends have too.
func gateway(o *options, sw *vswitch.Switch, vsi *vswitch.VSI, r *arp.Responder, own frame.MAC) error {
	g, err := l3.NewGateway(nil)
	if err != nil {
		return err
	}
	i, err := g.VRF("p2p").NewInterface(l3.InterfaceConfig{
		VNI: o.id, Addresses: o.gateway, MAC: o.gatewayMAC, Own: own, Anycast: true,
		Neighbours: r, Send: vsi.Send,
	})
	if err != nil {
		return err
	}
	o.vsi.Slots.Gateway = i
	o.vsi.Slots.TooBig = i.TooBig()
	// What is sent to these MACs is for the gateway. The common one may come out of the
	// tunnel as well: it is the other end's.
	if err := vsi.FDB().Set(o.gatewayMAC, 0, fdb.Static|fdb.Anycast); err != nil {
		return err
	}
	return vsi.FDB().Set(own, 0, fdb.Static)
}

// ownMAC is this end's: locally administered, and at random.
func ownMAC() (m frame.MAC) {
	rand.Read(m[:])
	m[0] = m[0]&^1 | 2
	return m
}
