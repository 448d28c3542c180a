package evpn

import (
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/setting"
)

// BFD says how the path to a peer is probed.
type BFD = bfd.Probe

// checkBFD adds the errors of a peer's BFD.
func (p *Peer) checkBFD(w *setting.Check, at string) {
	if p.BFD == nil {
		return
	}
	w.Add(at+".BFD", p.BFD.Check())
	if p.Interface != "" {
		w.Wrong(at+".BFD", nil, "needs an address in place of an interface")
	} else if !p.Local.IsValid() {
		w.Wrong(at+".Local", nil, "an address of the node is required with bfd")
	}
}

// probed returns the peers that are to be probed.
func probed(peers []Peer) (list []bfd.Host) {
	for _, p := range peers {
		if p.BFD != nil {
			list = append(list, bfd.Host{Local: p.Local, Remote: p.Addr, Probe: *p.BFD})
		}
	}
	return list
}
