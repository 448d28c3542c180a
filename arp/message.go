package arp

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A message is ARP or ND that a host may have sent. The sender of an advertisement is its
// target.
type message struct {
	neighbour.Message
	flags Flags
	weak  bool // an advertisement without O
}

// gratuitous reports whether m announces its sender.
func (m *message) gratuitous() bool { return m.Sender == m.Target }

// parse reads f into m. ok is true, or the outcome says what is wrong: NumOutcomes if f is
// neither ARP nor ND.
func (m *message) parse(f *frame.Frame) (b Outcome, ok bool) {
	switch m.Parse(f.Bytes(), f.GSO.Flags&frame.NeedsCsum != 0) {
	case neighbour.None:
		return NumOutcomes, false
	case neighbour.Malformed:
		return Malformed, false
	}
	probe := m.Sender.IsUnspecified()
	if !m.V6 {
		switch {
		case !m.SenderMAC.IsHost(), !probe && !isHost(m.Sender), probe && m.Kind == neighbour.Answer:
			return BadSender, false
		case m.Kind == neighbour.Question && !isHost(m.Target):
			return BadTarget, false
		}
		return 0, true
	}
	switch m.Kind {
	case neighbour.Question:
		if !isHost(m.Target) {
			return BadTarget, false
		}
		if probe && m.Told || (probe || m.Multicast()) && !m.Solicited() { // RFC 4861, section 7.1.1
			return Malformed, false
		}
	case neighbour.Answer:
		if m.Flags&wire.NASolicited != 0 && m.Multicast() || !isHost(m.Sender) { // section 7.1.2
			return Malformed, false
		}
		if !isHost(m.Target) {
			return BadTarget, false
		}
		m.Sender = m.Target
		m.flags, m.weak = Taught, m.Flags&wire.NAOverride == 0
		if m.Flags&wire.NARouter != 0 {
			m.flags |= Router
		}
		if m.weak {
			m.flags |= Anycast
		}
	case neighbour.Advertise:
		if !m.Sender.IsLinkLocalUnicast() { // section 6.1.2
			return Malformed, false
		}
		m.flags = Taught | Router
	default:
		if m.Told && probe { // section 6.1.1
			return Malformed, false
		}
	}
	if m.Told && !m.SenderMAC.IsHost() || !m.Sender.IsUnspecified() && !isHost(m.Sender) {
		return BadSender, false
	}
	return 0, true
}
