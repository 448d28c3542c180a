package vswitch

import (
	"encoding/binary"
	"math/bits"

	"github.com/vxswitch/vxswitch/frame"
)

// route asks the FIB of slot Gateway about a Flow, and does to its frame x what Process would. It returns the attachment from which x
// goes on, the switch's own in the segment of the Hop, and what stages have looked at so far. What it returns holds until the FIB
// calls s.rerouted. s.mu is held.
func (s *Switch) route(c *circuit, f *Flow, x *frame.Frame) (*circuit, look, error) {
	if c.fib == nil || f.Tuple == (frame.Tuple{}) {
		return nil, atAll, ErrGateway
	}
	if s.fibs[c.fib] == nil {
		s.fibs[c.fib] = c.fib.Watch(s.rerouted) // before it is asked
	}
	hop, carried, ok := c.fib.Lookup(f.Dst, f.Tuple)
	if !ok {
		return nil, atAll, ErrGateway
	}
	own, ok := s.own.circuits.Load(tagKey(uint32(hop.VNI)))
	if !ok {
		return nil, atAll, ErrGateway
	}
	switch d, known := own.vsi.fdb.Lookup(hop.Dst); {
	case !known:
		return nil, atAll, ErrUnknownMAC
	case d.Port() == 0 && d != frame.Filter:
		return nil, atAll, ErrGateway // of another gateway
	}
	f.Hop = hop
	if carried != nil {
		f.carried = append(f.carried, carried)
	}
	if c.port.tunnel == nil && hop.VNI == c.vsi.vni {
		x.Horizon = c.group
	}
	copy(x.Bytes(), hop.Dst[:])
	copy(x.Bytes()[6:], hop.Src[:])
	x.From, x.VNI, x.Tunnel = 0, hop.VNI, false
	if hop.Ports {
		return own, max(c.enters, atTuple), nil
	}
	return own, max(c.enters, atHosts), nil
}

// rerouted voids the decisions of a FIB that lead to a MAC; the zero MAC voids all.
func (s *Switch) rerouted(mac frame.MAC) {
	if o := s.offload.Load(); o != nil {
		(*o).Changed(0, mac)
	}
}

// An arrival is what of a frame the gateway writes over.
type arrival struct {
	kept bool
	macs [macsLen]byte
	from frame.Dest
}

// arrived keeps it for hintRouted. It reports whether a hint may come of it.
func (w *worker) arrived(f *frame.Frame, c *circuit) bool {
	b := f.Bytes()
	if f.Kind != frame.Ethernet || len(b) < macsLen || c.enters == atAll {
		return false
	}
	w.arrival.macs, w.arrival.from = [macsLen]byte(b), f.From
	return true
}

// hintRouted is hint for a frame that came in on w.circuit and leaves where a stage has sent it, if that is a FIB.
func (w *worker) hintRouted(f *frame.Frame, e *circuit) {
	c, a := w.circuit, &w.arrival
	if !a.kept || f.Kind != frame.Ethernet {
		return
	}
	if l := max(c.enters, e.leaves, atHosts); l != atAll && !(c.port.tunnel != nil && a.from.Peer() == 0) {
		w.hintAs(a.macs[:], a.from, c.tag, f.Bytes(), l)
	}
}

// addresses returns a hash of what packets between two addresses have in common. Other frames may have any.
func addresses(b []byte) (x uint64) {
	switch t := binary.BigEndian.Uint16(b[macsLen:]); {
	case t == typeIPv4 && len(b) >= ethLen+20:
		return binary.BigEndian.Uint64(b[ethLen+12:]) * hashPrime
	case t == typeIPv6 && len(b) >= ethLen+40:
		for i := ethLen + 8; i < ethLen+40; i += 8 {
			x = (bits.RotateLeft64(x, 29) ^ binary.BigEndian.Uint64(b[i:])) * hashPrime
		}
	}
	return x
}
