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

// PeerConfig overrides settings of the tunnel for one peer; see [VTEP.SetPeers]. Zero fields are as the
// tunnel has them.
type PeerConfig struct {
	Address netip.Addr `json:"address"`       // needed: of one host
	Port    uint16     `json:"port,omitzero"` // UDP destination port, which overrides the one that the peer is listed with; not for IP-in-IP

	// TTL: outer TTL or hop limit, 1 to 255, or Inherit; 0 = as the tunnel has it; TOS: outer TOS or
	// traffic class without its two ECN bits: 4 to 252 in steps of 4, Inherit, FromPriority, or TOSZero; 0 = as the
	// tunnel has it; DF: outer DF bit over IPv4; ECN: outer ECN bits
	Header
}

// Check returns what is wrong with the settings for any VTEP. SetPeers returns the same error.
func (p *PeerConfig) Check() error {
	w := setting.Of("vtep: PeerConfig")
	if !p.Address.IsValid() {
		w.Wrong("Address", nil, "an address is required")
	} else if err := hostaddr.Check(p.Address); err != nil {
		w.Wrong("Address", p.Address.Unmap(), "%v", err)
	}
	w.Add("Header", p.Header.check())
	return w.Err()
}

// peerSetting is a PeerConfig as hops use it.
type peerSetting struct {
	port   uint16  // 0 = the one that the peer is listed with
	header *header // nil = that of the VTEP
}

// SetPeers replaces the settings of single peers. They apply to the address, regardless of how the peer
// is listed or learned, and also to next hops at the address; only a port given to NextHop takes
// precedence. They take effect at the next frame, and last until the next call.
//
// On an error, which names the peer, nothing has changed.
func (v *VTEP) SetPeers(peers []PeerConfig) error {
	set := make(map[hostKey]peerSetting, len(peers))
	headers := map[header]*header{*v.header: nil} // peers with equal headers share one, so that flooding can share datagrams
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
			return fmt.Errorf("vtep: peer %v: listed twice", p.Address.Unmap())
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
	changed := false
	for h := range v.hops.all {
		if h.family >= 0 {
			v.setHeader(h, set[h.key()].header)
			changed = v.updatePort(h) || changed
		}
	}
	if changed {
		v.updateFloodPorts()
	}
	return nil
}

// over returns h with its zero fields taken from base.
func (h Header) over(base Header) *Header {
	return &Header{
		TTL: cmp.Or(h.TTL, base.TTL), TOS: cmp.Or(h.TOS, base.TOS), DF: cmp.Or(h.DF, base.DF),
		ECN: cmp.Or(h.ECN, base.ECN), Sockets: cmp.Or(h.Sockets, base.Sockets),
	}
}

// key returns the address of a hop.
func (h *hop) key() hostKey { return hostKey(h.to.Load()[0].Host()) }

// updatePort sets the destination port of a hop and reports whether it has changed. v.mu is held.
func (v *VTEP) updatePort(h *hop) bool {
	if v.cfg.Type == encap.TypeIPIP {
		return false
	}
	e := h.to.Load()[0]
	set, own := v.settings[h.key()].port, v.families[h.family].port
	was := e.Port
	if e.Port = cmp.Or(set, h.given, own); h.vni != 0 {
		e.Port = cmp.Or(h.given, set, own)
	}
	if e.Port != was {
		h.to.Store(&[1]frame.Endpoint{e})
	}
	return e.Port != was
}

// updateFloodPorts copies the ports of hops, which have changed, into the flood lists. v.mu is held.
func (v *VTEP) updateFloodPorts() {
	for _, n := range v.networks.All() {
		old := n.flood.Load()
		l := &floodList{hops: old.hops, groups: old.groups, given: old.given, no: old.no, single: old.single}
		differs := false
		for s := range old.hops {
			for i, h := range old.hops[s] {
				l.to[s] = append(l.to[s], h.to.Load()[0])
				differs = differs || l.to[s][i] != old.to[s][i]
			}
		}
		if differs {
			l.prune()
			n.flood.Store(l)
			old.replaced()
		}
	}
	v.changed()
}

// setHeader gives a hop its own header; nil removes it. v.mu is held.
func (v *VTEP) setHeader(h *hop, c *header) {
	if c != nil {
		v.varied.Add(1)
	}
	old := h.header.Swap(c)
	if old != nil {
		v.varied.Add(-1)
	}
	if old != c {
		v.changed()
	}
}
