package vtep

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
)

// PeerConfig is what is different towards one peer: see [VTEP.SetPeers]. A zero field stands for
// what holds for all peers.
type PeerConfig struct {
	Address netip.Addr `json:"address"`       // needed: of one host
	Port    uint16     `json:"port,omitzero"` // UDP destination port, whatever port it is listed with; not in IP-in-IP

	// TTL: outer TTL or hop limit, 1 to 255, or Inherit; 0 = as the tunnel has it; TOS: outer TOS or
	// traffic class without its two ECN bits: 4 to 252 in steps of 4, Inherit, or TOSZero; 0 = as the
	// tunnel has it; DF: outer DF bit, over IPv4; ECN: outer ECN bits
	Header
}

// Check returns what SetPeers refuses, whatever the VTEP is.
func (p *PeerConfig) Check() error {
	w := setting.Of("vtep: PeerConfig")
	if !p.Address.IsValid() {
		w.Wrong("Address", "an address is needed")
	} else if err := hostaddr.Check(p.Address); err != nil {
		w.Wrong("Address", "%v %v", p.Address.Unmap(), err)
	}
	w.Add("Header", p.Header.check())
	return w.Err()
}

// peerSetting is a PeerConfig as hops use it.
type peerSetting struct {
	port   uint16  // 0: as it is listed
	header *header // nil: the VTEP's
}

// SetPeers sets what is different towards single peers, all of them at once, and takes back what an
// earlier call has set. It holds by address for as long as the VTEP lasts: whoever lists or learns
// the peer, whatever number it has, and for next hops at this address too. A port given to NextHop
// stays, though. Under traffic it takes effect at the next frame.
//
// On an error, which names the peer, nothing has changed.
func (v *VTEP) SetPeers(peers []PeerConfig) error {
	set := make(map[hostKey]peerSetting, len(peers))
	headers := map[header]*header{*v.header: nil} // neighbours in a flood list with one header share a datagram
	for i := range peers {
		p := &peers[i]
		if err := p.Check(); err != nil {
			return fmt.Errorf("vtep: peer %v: %w", p.Address, err)
		}
		e, err := v.endpoint(netip.AddrPortFrom(p.Address, p.Port))
		if err != nil {
			return err
		}
		key := hostKey(e.Host())
		if _, twice := set[key]; twice {
			return fmt.Errorf("vtep: peer %v: is there twice", p.Address.Unmap())
		}
		c := p.Header.over(v.cfg.Header).compile(v.cfg.Type)
		if _, ok := headers[*c]; !ok {
			headers[*c] = c
		}
		set[key] = peerSetting{p.Port, headers[*c]}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	v.settings = set
	aimed := false
	for h := range v.hops.all {
		if h.side >= 0 {
			v.setHeader(h, set[h.key()].header)
			aimed = v.updatePort(h) || aimed
		}
	}
	if aimed {
		v.updateFloodPorts()
	}
	return nil
}

// over returns h with what it leaves out filled in from base.
func (h Header) over(base Header) *Header {
	return &Header{
		TTL: cmp.Or(h.TTL, base.TTL), TOS: cmp.Or(h.TOS, base.TOS), DF: cmp.Or(h.DF, base.DF),
		ECN: cmp.Or(h.ECN, base.ECN), Sockets: cmp.Or(h.Sockets, base.Sockets),
	}
}

// key returns the address of a hop.
func (h *hop) key() hostKey { return hostKey(h.to.Load()[0].Host()) }

// updatePort sets the port that a hop is sent to on, and reports whether it was another. v.mu is held.
func (v *VTEP) updatePort(h *hop) bool {
	if v.cfg.Type == encap.TypeIPIP {
		return false
	}
	e := h.to.Load()[0]
	set, own := v.settings[h.key()].port, v.sides[h.side].port
	was := e.Port
	if e.Port = cmp.Or(set, h.given, own); h.vni != 0 {
		e.Port = cmp.Or(h.given, set, own)
	}
	if e.Port != was {
		h.to.Store(&[1]frame.Endpoint{e})
	}
	return e.Port != was
}

// updateFloodPorts has flood lists send to where their hops are aimed. v.mu is held.
func (v *VTEP) updateFloodPorts() {
	for _, n := range v.networks.All() {
		old := n.flood.Load()
		l := &floodList{hops: old.hops, groups: old.groups, given: old.given}
		differs := false
		for s := range old.hops {
			for i, h := range old.hops[s] {
				l.to[s] = append(l.to[s], h.to.Load()[0])
				differs = differs || l.to[s][i] != old.to[s][i]
			}
		}
		if differs {
			n.flood.Store(l)
		}
	}
}

// setHeader gives a hop a header of its own, or with nil takes it away. v.mu is held.
func (v *VTEP) setHeader(h *hop, c *header) {
	if c != nil {
		v.varied.Add(1)
	}
	if h.header.Swap(c) != nil {
		v.varied.Add(-1)
	}
}
