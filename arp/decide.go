package arp

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
)

// decide returns what to do with a message, and why. The order of its steps is fixed.
func (r *Responder) decide(f *frame.Frame, m *message, at frame.At) (Outcome, frame.Verdict) {
	g := r.gateway.Load()
	if m.Spoofed() {
		return r.unanswered(f, m, Spoofed)
	}
	r.snoop(f, m, g, at)
	if m.Kind == neighbour.Question && g != nil && slices.Contains(g.IPs, m.Target) {
		if f.Tunnel && g.Anycast {
			return RemoteAnycast, frame.FloodLocal
		}
		return r.reply(f, m, g.MAC, Router, AnsweredGateway)
	}
	if m.Kind == neighbour.Advertise && f.From == 0 && g != nil { // the gateway's own
		if g.Anycast {
			return NotQuestion, frame.FloodLocal
		}
		return NotQuestion, frame.Continue
	}
	if m.Kind == neighbour.Solicit && g != nil && g.Solicited != nil && !(f.Tunnel && (g.Anycast || f.From.Peer() == 0)) {
		mac := m.Src
		if m.Told {
			mac = m.SenderMAC
		}
		g.Solicited(m.Sender, mac, f.From, at.Tick)
	}
	if m.Kind == neighbour.Answer && r.isLocalMAC(m.Dst, g) {
		return r.relayBack(f, m, g)
	}
	switch {
	case r.mode == Off:
		return ModeOff, frame.Continue
	case m.Kind != neighbour.Question:
		return r.unanswered(f, m, NotQuestion)
	case f.Tunnel:
		if r.mode == Proxy && g != nil && m.Dst.IsGroup() && !m.Sender.IsUnspecified() {
			return r.relay(f, m, g.MAC, frame.FloodLocal)
		}
		return FromTunnel, frame.Continue
	case m.Sender.IsUnspecified():
		return r.unanswered(f, m, Probe)
	case m.gratuitous():
		return r.unanswered(f, m, Gratuitous)
	case r.mode == Access:
		return r.reply(f, m, r.cfg.AccessMAC, Router, Answered)
	case !m.Dst.IsGroup() && (r.mode != Proxy || !r.isLocalMAC(m.Dst, g)):
		return Unicast, frame.Continue
	}
	return r.answer(f, m, g, at)
}

// unanswered returns what to do with a message that gets no answer.
func (r *Responder) unanswered(f *frame.Frame, m *message, b Outcome) (Outcome, frame.Verdict) {
	switch {
	case r.mode == Access && !f.Tunnel:
		if b == Spoofed || b == NotQuestion && m.Dst != r.cfg.AccessMAC {
			return Forbidden, frame.Drop(frame.NotGateway)
		}
		return b, frame.Consume
	case r.cfg.LocalOnly && r.mode != Off && !f.Tunnel && m.Dst.IsGroup() && (b == Probe || m.gratuitous()):
		return b, frame.FloodLocal
	}
	return b, frame.Continue
}

// answer answers a question from a local port, if the table and the FDB know its target.
func (r *Responder) answer(f *frame.Frame, m *message, g *Gateway, at frame.At) (Outcome, frame.Verdict) {
	e, known := r.table.Lookup(m.Target)
	if !known {
		r.missed(m.Target, f.From, at.Tick, f)
		return r.ask(f, m, g, UnknownIP)
	}
	if e.State == Duplicate {
		return Frozen, frame.Continue
	}
	if e.MAC == m.Src || e.MAC == m.SenderMAC && m.Told {
		return OwnMAC, frame.Continue
	}
	d, found := r.cfg.Locate(e.MAC)
	switch {
	case !found || d == frame.Filter || d.Port() == 0:
		return r.ask(f, m, g, UnknownMAC)
	case d.Peer() == 0 && m.Dst.IsGroup():
		return Local, frame.FloodLocal
	case r.mode == Proxy && g != nil:
		return r.reply(f, m, g.MAC, Router, Answered)
	}
	return r.reply(f, m, e.MAC, e.Flags, Answered)
}

// ask passes on a question without a known answer, in mode Proxy from the VTEP's own MAC.
func (r *Responder) ask(f *frame.Frame, m *message, g *Gateway, b Outcome) (Outcome, frame.Verdict) {
	switch {
	case !m.Dst.IsGroup(): // Proxy, to a local MAC: the host will broadcast next
		return b, frame.Consume
	case r.mode == Proxy && g != nil:
		return r.relay(f, m, r.cfg.MAC, frame.FloodAll)
	}
	return b, frame.Continue
}

// snoop learns the sender, unless it uses an address of the gateway.
func (r *Responder) snoop(f *frame.Frame, m *message, g *Gateway, at frame.At) {
	if !m.Told || m.Sender.IsUnspecified() || g != nil && slices.Contains(g.IPs, m.Sender) || r.isLocalMAC(m.SenderMAC, g) {
		return
	}
	c := Claim{IP: m.Sender, MAC: m.SenderMAC, Flags: m.flags, Weak: m.weak, From: f.Origin(), Foreign: at.NoLearn || g != nil && g.foreign(m.Sender)}
	r.table.Learn(&c, at.Tick)
}

// foreign reports whether an address is outside all of the gateway's prefixes of its family,
// and there are some.
func (g *Gateway) foreign(ip netip.Addr) (foreign bool) {
	if ip.Is6() && ip.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range g.Prefixes {
		if p.Contains(ip) {
			return false
		}
		foreign = foreign || p.Addr().Is4() == ip.Is4()
	}
	return foreign
}

// isLocalMAC reports whether a MAC is the VTEP's or the gateway's.
func (r *Responder) isLocalMAC(mac frame.MAC, g *Gateway) bool {
	return !mac.IsZero() && (mac == r.cfg.MAC || g != nil && (mac == g.MAC || mac == g.VTEPMAC))
}

// receiver returns the entry of the host that an answer is for, and its Dest.
func (r *Responder) receiver(ip netip.Addr) (Entry, frame.Dest, bool) {
	e, ok := r.table.Lookup(ip)
	if !ok || r.cfg.Locate == nil {
		return e, 0, false
	}
	d, ok := r.cfg.Locate(e.MAC)
	return e, d, ok && d != frame.Filter && d.Port() != 0
}
