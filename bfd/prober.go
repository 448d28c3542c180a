package bfd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Probe says how the path to a peer of BGP is probed (RFC 5882, section 10.2): if it is dead, the session ends at once, and the peer's
// routes are gone.
type Probe struct {
	Interval   time.Duration `json:"interval,omitzero"`   // between packets, in both directions; 10ms to 1m; default "300ms"
	Multiplier int           `json:"multiplier,omitzero"` // so many missing packets in a row mean that the path is dead, 1 to 255; default 3
	Multihop   bool          `json:"multihop,omitzero"`   // the peer is not on the same link (RFC 5883): UDP port 4784 instead of 3784
}

// Check returns what is wrong with p as [setting.Errors], or nil.
func (p *Probe) Check() error {
	c := p.session()
	return c.Check()
}

func (p *Probe) session() SessionConfig {
	return SessionConfig{Interval: p.Interval, Multiplier: p.Multiplier}
}

// A Host is to be probed by a [Prober].
type Host struct {
	Local, Remote netip.Addr // as [UDP.Peer] takes them
	Probe
}

// A Prober probes the paths to hosts through the host's sockets, for a program that has other sessions with them, such as those of BGP. It
// has a [Speaker] and a [UDP] while there are hosts to probe. The zero value works; its fields are set before its first method is called.
type Prober struct {
	// Dead, unless nil, is called when the path to a host is found dead; see [SessionConfig].Notify. It must not call the Prober, whose
	// methods may wait for it.
	Dead func(remote netip.Addr)

	// In runs f in the network namespace of the sockets; nil = in that of the process.
	In func(f func())

	mu      sync.Mutex
	running bool
	hosts   []Host
	speaker *Speaker // nil = there is nothing to probe
	udp     *UDP
	locals  []netip.Addr // that udp receives on
	over    bool         // several hops
	on      map[netip.Addr]probed
}

// A probed is a session, and how it is set.
type probed struct {
	peer Peer
	how  Probe
}

// Start begins to probe the hosts, from now on also those of a later Set. Hosts that an error is not about are probed.
func (p *Prober) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
	return p.update()
}

// Set says which hosts are to be probed, each Remote once. Sessions that stay as they are go on, and others with other intervals, unless
// the sockets have to be other ones.
func (p *Prober) Set(hosts []Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts = slices.Clone(hosts); !p.running {
		return nil
	}
	return p.update()
}

// Stop ends all sessions. The hosts are told that this is no failure.
func (p *Prober) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	p.close()
}

// Status returns what is known of the path to a host: unknown, alive or dead, or "" if it is not probed.
func (p *Prober) Status(remote netip.Addr) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.on[remote.Unmap()]
	if !ok {
		return ""
	}
	s, _ := p.speaker.Session(x.peer)
	return s.Status.String()
}

// Sessions returns the sessions with the hosts, in the order of their addresses.
func (p *Prober) Sessions() (list []Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.speaker == nil {
		return nil
	}
	list, _ = p.speaker.Sessions() // fails after Close
	slices.SortFunc(list, func(a, b Session) int { return a.Peer.Remote.Compare(b.Peer.Remote) })
	return list
}

// update has those hosts probed that are to be.
func (p *Prober) update() error {
	var locals []netip.Addr
	over := false
	for _, h := range p.hosts {
		locals, over = append(locals, h.Local.Unmap()), over || h.Multihop
	}
	slices.SortFunc(locals, netip.Addr.Compare)
	locals = slices.Compact(locals)
	if !slices.Equal(locals, p.locals) || over != p.over {
		p.close()
	}
	if len(locals) == 0 {
		return nil
	}
	if p.speaker == nil {
		if err := p.open(locals, over); err != nil {
			return err
		}
	}
	was := p.on
	p.on = map[netip.Addr]probed{}
	var errs []error
	for _, h := range p.hosts {
		errs = append(errs, p.probe(h, was))
	}
	for _, old := range was {
		errs = append(errs, p.speaker.Remove(old.peer))
	}
	return errors.Join(errs...)
}

// probe begins a session, or takes the one there is out of those that were.
func (p *Prober) probe(h Host, was map[netip.Addr]probed) (err error) {
	remote := h.Remote.Unmap()
	if _, ok := p.on[remote]; ok {
		return fmt.Errorf("bfd: Prober: two hosts are %v", remote)
	}
	now, old := probed{how: h.Probe}, was[remote]
	p.in(func() { now.peer, err = p.udp.Peer(h.Local, h.Remote, h.Multihop) })
	if err != nil {
		return err
	}
	c := h.session()
	c.Notify = func(x Change) {
		if x.Status == Dead && p.Dead != nil {
			p.Dead(remote)
		}
	}
	switch {
	case now == old:
	case now.peer == old.peer:
		err = p.speaker.Change(now.peer, &c)
	default:
		err = p.speaker.Add(now.peer, &c)
	}
	if err != nil {
		return err
	}
	if now.peer == old.peer {
		delete(was, remote)
	}
	p.on[remote] = now
	return nil
}

// open opens the sockets.
func (p *Prober) open(locals []netip.Addr, over bool) error {
	s := New()
	udp, err := ListenUDP(s, &UDPConfig{Local: locals, Multihop: over, Listen: func(network, address string) (conn net.PacketConn, err error) {
		p.in(func() { conn, err = net.ListenPacket(network, address) })
		return conn, err
	}})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	p.speaker, p.udp, p.locals, p.over = s, udp, locals, over
	return nil
}

func (p *Prober) in(f func()) {
	if p.In == nil {
		f()
		return
	}
	p.In(f)
}

// close ends all sessions, and closes the sockets.
func (p *Prober) close() {
	if p.speaker != nil {
		for _, x := range p.on {
			_ = p.speaker.Remove(x.peer)
		}
		_ = p.speaker.Close()
		_ = p.udp.Close()
	}
	p.speaker, p.udp, p.locals, p.over, p.on = nil, nil, nil, false, nil
}
