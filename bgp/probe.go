package bgp

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/setting"
)

// BFD probes the path to a peer (RFC 5882, section 10.2): if it is dead, the session ends at once, and the peer's routes are gone.
type BFD struct {
	Interval   time.Duration `json:"interval,omitzero"`   // between packets, in both directions; 10ms to 1m; default "300ms"
	Multiplier int           `json:"multiplier,omitzero"` // so many missing packets in a row mean that the path is dead, 1 to 255; default 3
	Multihop   bool          `json:"multihop,omitzero"`   // the peer is not on the same link (RFC 5883): UDP port 4784 instead of 3784
}

// session returns the settings for package bfd.
func (b *BFD) session() bfd.SessionConfig {
	return bfd.SessionConfig{Interval: b.Interval, Multiplier: b.Multiplier}
}

// checkBFD adds the errors of a peer's BFD.
func (p *Peer) checkBFD(w *setting.Check) {
	if p.BFD == nil {
		return
	}
	c := p.BFD.session()
	w.Add("BFD", c.Check())
	if !p.Local.IsValid() {
		w.Wrong("Local", nil, "an address of the node is required with bfd")
	}
}

// A prober has the BFD sessions of peers.
type prober struct {
	dead func(peer netip.Addr)

	mu      sync.Mutex
	speaker *bfd.Speaker // nil = no peer is probed
	udp     *bfd.UDP
	probed  []probe
}

// A probe is a session.
type probe struct {
	addr, local netip.Addr
	cfg         BFD
	peer        bfd.Peer
}

// set has those peers probed that are to be. If these are others than before, all sessions begin anew.
func (p *prober) set(peers []Peer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var want []probe
	for _, x := range peers {
		if x.BFD != nil {
			want = append(want, probe{addr: x.Addr, local: x.Local, cfg: *x.BFD})
		}
	}
	if slices.EqualFunc(want, p.probed, func(a, b probe) bool { return a.addr == b.addr && a.local == b.local && a.cfg == b.cfg }) {
		return nil
	}
	p.close()
	if len(want) == 0 {
		return nil
	}
	if err := p.open(want); err != nil {
		return err
	}
	var errs []error
	for _, x := range want {
		errs = append(errs, p.add(x))
	}
	return errors.Join(errs...)
}

// open opens the sockets.
func (p *prober) open(want []probe) error {
	c := bfd.UDPConfig{}
	for _, x := range want {
		c.Local, c.Multihop = append(c.Local, x.local), c.Multihop || x.cfg.Multihop
	}
	slices.SortFunc(c.Local, netip.Addr.Compare)
	c.Local = slices.Compact(c.Local)
	s := bfd.New()
	udp, err := bfd.ListenUDP(s, &c)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	p.speaker, p.udp = s, udp
	return nil
}

func (p *prober) add(x probe) (err error) {
	if x.peer, err = p.udp.Peer(x.local, x.addr, x.cfg.Multihop); err != nil {
		return err
	}
	c := x.cfg.session()
	c.Notify = func(ch bfd.Change) {
		if ch.Status == bfd.Dead {
			p.dead(x.addr)
		}
	}
	if err = p.speaker.Add(x.peer, &c); err == nil {
		p.probed = append(p.probed, x)
	}
	return err
}

// close ends all sessions. The peers are told that this is no failure.
func (p *prober) close() {
	if p.speaker != nil {
		for _, x := range p.probed {
			p.speaker.Remove(x.peer)
		}
		p.speaker.Close()
		p.udp.Close()
	}
	p.speaker, p.udp, p.probed = nil, nil, nil
}

// end is close for a Speaker that ends.
func (p *prober) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

// status returns what BFD knows of the path to a peer: unknown, alive or dead, and "" if it is not probed.
func (p *prober) status(peer netip.Addr) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.probed, func(x probe) bool { return x.addr == peer })
	if i < 0 {
		return ""
	}
	s, _ := p.speaker.Session(p.probed[i].peer)
	return s.Status.String()
}
