package evpn

import (
	"errors"
	"net"
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
func (p *Peer) checkBFD(w *setting.Check, at string) {
	if p.BFD == nil {
		return
	}
	c := p.BFD.session()
	w.Add(at+".BFD", c.Check())
	if p.Interface != "" {
		w.Wrong(at+".BFD", nil, "needs an address in place of an interface")
	} else if !p.Local.IsValid() {
		w.Wrong(at+".Local", nil, "an address of the node is required with bfd")
	}
}

// A prober has the BFD sessions of peers.
type prober struct {
	reset func(peer netip.Addr)
	in    func(f func())

	mu       sync.Mutex
	speaker  *bfd.Speaker // nil = no peer is probed
	udp      *bfd.UDP
	locals   []netip.Addr // that udp receives on
	multihop bool
	on       map[netip.Addr]probe
}

// A probe is a session, and how it is set.
type probe struct {
	peer bfd.Peer
	cfg  BFD
}

// set has those peers probed that are to be. Sessions that stay as they are go on, unless the sockets have to be other ones.
func (p *prober) set(peers []Peer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	peers = slices.DeleteFunc(slices.Clone(peers), func(x Peer) bool { return x.BFD == nil })
	var locals []netip.Addr
	multihop := false
	for _, x := range peers {
		locals, multihop = append(locals, x.Local.Unmap()), multihop || x.BFD.Multihop
	}
	slices.SortFunc(locals, netip.Addr.Compare)
	locals = slices.Compact(locals)
	if !slices.Equal(locals, p.locals) || multihop != p.multihop {
		p.close()
	}
	if len(peers) > 0 && p.speaker == nil {
		if err := p.open(locals, multihop); err != nil {
			return err
		}
	}
	was := p.on
	p.on = map[netip.Addr]probe{}
	var errs []error
	for _, x := range peers {
		addr := x.Addr.Unmap()
		to, err := p.udp.Peer(x.Local, x.Addr, x.BFD.Multihop)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now := probe{to, *x.BFD}
		if was[addr] == now {
			delete(was, addr)
			p.on[addr] = now
			continue
		}
		if old, ok := was[addr]; ok {
			delete(was, addr)
			errs = append(errs, p.speaker.Remove(old.peer))
		}
		c := now.cfg.session()
		c.Notify = func(ch bfd.Change) {
			if ch.Status == bfd.Dead {
				p.reset(addr)
			}
		}
		if err = p.speaker.Add(to, &c); err == nil {
			p.on[addr] = now
		}
		errs = append(errs, err)
	}
	for _, old := range was {
		if p.speaker != nil {
			errs = append(errs, p.speaker.Remove(old.peer))
		}
	}
	return errors.Join(errs...)
}

// open opens the sockets.
func (p *prober) open(locals []netip.Addr, multihop bool) error {
	s := bfd.New()
	c := bfd.UDPConfig{Local: locals, Multihop: multihop, Listen: func(network, address string) (conn net.PacketConn, err error) {
		p.in(func() { conn, err = net.ListenPacket(network, address) })
		return conn, err
	}}
	udp, err := bfd.ListenUDP(s, &c)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	p.speaker, p.udp, p.locals, p.multihop = s, udp, locals, multihop
	return nil
}

// close ends all sessions. The peers are told that this is no failure.
func (p *prober) close() {
	if p.speaker != nil {
		for _, x := range p.on {
			p.speaker.Remove(x.peer)
		}
		p.speaker.Close()
		p.udp.Close()
	}
	p.speaker, p.udp, p.locals, p.multihop, p.on = nil, nil, nil, false, nil
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
	x, ok := p.on[peer]
	if !ok {
		return ""
	}
	s, _ := p.speaker.Session(x.peer)
	return s.Status.String()
}
