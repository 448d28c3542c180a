package arp

import "github.com/vxswitch/vxswitch/frame"

// In mode Proxy a host's MAC does not leave its site. Host 1 at VTEP A asks for host 3 at
// VTEP B:
//
//	host 1            A                          B                       host 3
//	  |-- who has 3? ->|                          |                        |
//	  |   from MAC 1   |-- who has 3? ----------->|                        |
//	  |                |   from A's own MAC       |-- who has 3? --------->|
//	  |                |                          |   from B's gateway MAC |
//	  |                |                          |<------- 3 is at MAC 3 -|
//	  |                |<---- 3 is at B's own MAC-|
//	  |<- 3 is at -----|
//	      A's gateway MAC
//
// Everything else that has MAC 1 stays at A, probes and announcements too: Hides says so. With Config.ExposeMACs it passes unchanged,
// so that every site sees duplicates and moves; LocalOnly keeps probes and announcements local even then.
//
// The sender's address is host 1's all the way. B's table has host 1 at A's own MAC, and A's
// has host 3 at B's own MAC: the gateways route packets there.

// Hides reports whether frames of hosts enter no tunnel: it implements vswitch.Hider.
func (r *Responder) Hides() bool { return r.mode == Proxy && !r.cfg.ExposeMACs }

// relay passes a question on with mac as its sender.
func (r *Responder) relay(f *frame.Frame, m *message, mac frame.MAC, v frame.Verdict) (Outcome, frame.Verdict) {
	if !setSender(f, m, mac) {
		return NoRoom, frame.Consume // RFC 4861, section 4.3: the option is required
	}
	return Relayed, v
}

// relayBack passes an answer to a local MAC on to the host that asked: through a tunnel with
// the VTEP's own MAC, to a local host with the gateway's. An answer to Refresh ends here.
func (r *Responder) relayBack(f *frame.Frame, m *message, g *Gateway) (Outcome, frame.Verdict) {
	if r.mode != Proxy || g == nil {
		return NotQuestion, frame.Consume
	}
	e, d, ok := r.receiver(m.To)
	if !ok || d == f.From || f.Tunnel && d.Peer() != 0 {
		return Lost, frame.Consume
	}
	mac := g.MAC
	if d.Peer() != 0 {
		mac = r.cfg.MAC
	}
	if !setSender(f, m, mac) {
		return NoRoom, frame.Consume
	}
	setReceiver(f, m, e.MAC)
	return Relayed, frame.Forward(d)
}
