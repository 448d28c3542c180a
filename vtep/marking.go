package vtep

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// DSCP says what becomes of the outer DSCP of a received packet (RFC 2983). Frames without an IP header have none.
type DSCP uint8

// DSCP modes.
const (
	DSCPDefault  DSCP = iota // DSCPKeep; for a segment, the mode of the tunnel
	DSCPKeep                 // nothing: the inner packet keeps its own (pipe model)
	DSCPInherit              // the inner packet gets it (uniform model, if the sender has TOS Inherit)
	DSCPPriority             // its three high bits become the priority of the frame (802.1p), for the tag of a trunk
)

// Marking is the DSCP of the frames of one VNI; see [VTEP.SetMarking].
type Marking struct {
	TOS  Value `json:"tos,omitzero"`  // outer TOS or traffic class without its two ECN bits: 4 to 252 in steps of 4, Inherit, FromPriority, or TOSZero; 0 = as the peer or the tunnel has it
	DSCP DSCP  `json:"dscp,omitzero"` // what becomes of the outer DSCP of received packets; default as the tunnel has it
}

// Check returns what is wrong with the settings. SetMarking returns the same error.
func (m *Marking) Check() error {
	w := setting.Of("vtep: Marking")
	checkTOS(w, m.TOS)
	checkDSCP(w, m.DSCP)
	return w.Err()
}

func checkTOS(w *setting.Check, v Value) {
	if v < FromPriority || v > 255 {
		w.Want("TOS", v, `0 to 252, "inherit", "priority" or "none"`)
	} else if v > 0 && v&3 != 0 {
		w.Want("TOS", v, "a multiple of 4; the two low bits are ECN")
	}
}

func checkDSCP(w *setting.Check, d DSCP) {
	if d > DSCPPriority {
		w.Want("DSCP", uint8(d), "DSCPKeep, DSCPInherit or DSCPPriority")
	}
}

// marking is a Marking as readers and writers use it: immutable.
type marking struct {
	Marking
	tos tos // of TOS, if it is not 0
}

// SetMarking sets the DSCP of the frames of a VNI, which need not be open. What is not zero comes before the settings
// of the tunnel and of peers, and lasts until the next call.
func (v *VTEP) SetMarking(vni frame.VNI, m Marking) error {
	if !vni.Valid() {
		return fmt.Errorf("vtep: VNI %d: must be 0 to %d", vni, frame.MaxVNI)
	}
	if err := m.Check(); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	if v.markingOf(vni) == m {
		return nil
	}
	n := v.network(vni)
	var c *marking
	if m != (Marking{}) {
		c = &marking{m, tosOf(m.TOS)}
		v.marked.Add(1)
	}
	if n.marking.Swap(c) != nil {
		v.marked.Add(-1)
	}
	v.changed()
	v.forget(vni, n)
	return nil
}

// markingOf returns what SetMarking has set.
func (v *VTEP) markingOf(vni frame.VNI) Marking {
	if n, ok := v.networks.Load(vniKey(vni)); ok {
		if m := n.marking.Load(); m != nil {
			return m.Marking
		}
	}
	return Marking{}
}

// dscpOf returns the mode for frames of a network.
func (v *VTEP) dscpOf(n *network) DSCP {
	if m := n.marking.Load(); m != nil && m.DSCP != DSCPDefault {
		return m.DSCP
	}
	return v.cfg.DSCP
}

// tosOf returns the TOS for frames that leave with a tag, nil if that of the hop is for them.
func (v *VTEP) tosOf(tag uint32) *tos {
	if n, ok := v.networks.Load(vniKey(tag)); ok {
		if m := n.marking.Load(); m != nil && m.TOS != 0 {
			return &m.tos
		}
	}
	return nil
}

// received does with the outer DSCP of a frame what the mode says.
func (d DSCP) received(f *frame.Frame, outer uint8) {
	if d == DSCPPriority {
		f.Priority = outer >> 5
		return
	}
	var in innerIP
	if in.find(f); in.isIP {
		setTOS(f.Bytes()[in.at:], in.is4, outer&^3|in.tos&3)
	}
}

// tos says which TOS the outer header gets, without its two ECN bits.
type tos struct {
	fixed           uint8
	inner, priority bool // of the inner header, or a class selector by the frame's priority
}

func tosOf(v Value) (t tos) {
	switch {
	case v == Inherit:
		t.inner = true
	case v == FromPriority:
		t.priority = true
	case v > 0:
		t.fixed = uint8(v)
	}
	return t
}

// value returns the Value of which tosOf returns t.
func (t tos) value() Value {
	switch {
	case t.inner:
		return Inherit
	case t.priority:
		return FromPriority
	case t.fixed == 0:
		return TOSZero
	}
	return Value(t.fixed)
}

// of returns the TOS for a frame of this priority (class selectors: RFC 2474, section 4.2.2).
func (t *tos) of(in *innerIP, priority uint8) uint8 {
	switch {
	case t.priority:
		return priority << 5
	case t.inner && in.isIP:
		return in.tos &^ 3
	}
	return t.fixed
}
