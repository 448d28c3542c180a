package vswitch

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// VLANMode says what becomes of frames that have a VLAN tag, 802.1Q or 802.1ad, where a VSI
// has none: behind a tunnel's header (RFC 7348, section 6.1), or behind the tag that an
// attachment takes off.
type VLANMode uint8

// Modes of [VSIConfig.InnerVLAN].
const (
	// VLANDiscard drops them under frame.InnerVLAN.
	VLANDiscard VLANMode = iota

	// VLANStrip takes the tags of frames from a tunnel off, one or two of them, and the frame
	// goes on untagged: nothing tagged is ever delivered, so that one with more tags is
	// dropped. What tells two VLANs apart is lost. From other ports it is VLANDiscard.
	VLANStrip

	// VLANPass leaves the tags where they are. An access attachment then takes tagged frames
	// too, and they cross the tunnel whole: Q-in-VNI. What another attachment of its port has
	// the VLAN of neither comes in there, nor goes out: it would be in that one's segment
	// (frame.InnerVLAN). A tag counts towards the MTU of a tunnel; an access port takes one
	// on top of its own, as Ethernet does.
	//
	// The VSI has one MAC table for all of them: a MAC that is in two VLANs at two places
	// moves with every frame. Neighbour slot and gateway get untagged frames only; a tagged
	// one for the gateway's MAC is dropped. Other stages see the tags.
	VLANPass
)

func isTag(etherType uint16) bool { return etherType == typeVLAN || etherType == typeQinQ }

// tagged says whether a frame that wellFormed refuses for r is welcome all the same, with
// its tags or without.
func (c *circuit) tagged(f *frame.Frame, r frame.Reason) frame.Reason {
	switch {
	case r != frame.InnerVLAN || c.innerVLAN == VLANDiscard:
		return r
	case c.innerVLAN == VLANPass:
		if f.Len() < ethLen+vlanLen {
			return frame.Short
		}
		if c.native && c.port.inOtherVLAN(f.Bytes()) {
			return r
		}
		return frame.NotDropped
	case !f.Tunnel:
		return r
	}
	return stripTags(f)
}

// stripTags takes up to two tags off. Offsets of a superframe count from the start of its
// buffer, and stay.
func stripTags(f *frame.Frame) frame.Reason {
	b := f.Bytes()
	n := 0
	for isTag(binary.BigEndian.Uint16(b[macsLen+n:])) {
		if n == 2*vlanLen {
			return frame.InnerVLAN
		}
		if n += vlanLen; len(b) < ethLen+n {
			return frame.Short
		}
	}
	copy(b[n:n+macsLen], b[:macsLen])
	f.Pull(n)
	return frame.NotDropped
}

// keepsTag reports whether f has a tag that stays in it.
func (c *circuit) keepsTag(f *frame.Frame) bool {
	return c.innerVLAN == VLANPass && f.Kind == frame.Ethernet && isTag(binary.BigEndian.Uint16(f.Bytes()[macsLen:]))
}

// room returns the longest frame of f's kind that e takes, if it is mtu for others: an
// Ethernet frame may be longer by its tag (IEEE 802.3, 3.2.7), and MTUs of ports are given
// without it.
func (e *circuit) room(f *frame.Frame, mtu int) int {
	if e.native && e.keepsTag(f) {
		return mtu + vlanLen
	}
	return mtu
}

// inOtherVLAN reports whether another attachment of p has the VLAN that b is in. Bridges and
// hosts take a priority tag off and look again; b with two of them is nobody's to judge.
func (p *port) inOtherVLAN(b []byte) bool {
	for n := macsLen; n+vlanLen <= len(b) && isTag(binary.BigEndian.Uint16(b[n:])); n += vlanLen {
		if vid := binary.BigEndian.Uint16(b[n+2:]) & 0xfff; vid != 0 {
			_, ok := p.circuits.Load(tagKey(vid))
			return ok && binary.BigEndian.Uint16(b[n:]) == typeVLAN
		}
		if n > macsLen {
			return true
		}
	}
	return false
}

// takeVLAN strips an 802.1Q tag and returns its VLAN, 0 for an untagged frame. VLAN
// 0 means priority only: the frame counts as untagged (IEEE 802.1Q, 6.9.1). A tag that
// no attachment of the port has stays, if the access attachment passes tags.
func (w *worker) takeVLAN(f *frame.Frame) uint32 {
	b := f.Bytes()
	if len(b) < ethLen+vlanLen || binary.BigEndian.Uint16(b[12:]) != typeVLAN {
		return 0
	}
	vid := uint32(binary.BigEndian.Uint16(b[14:]) & 0xfff)
	if vid != 0 && (w.circuit == nil || w.tag != vid) && w.port.passes(vid) {
		return 0
	}
	copy(b[vlanLen:ethLen+2], b[:macsLen])
	f.Pull(vlanLen)
	return vid
}

// passes reports whether frames of a VLAN are for the access attachment, as they are.
func (p *port) passes(vid uint32) bool {
	if _, ok := p.circuits.Load(tagKey(vid)); ok {
		return false
	}
	c, ok := p.circuits.Load(0)
	return ok && c.innerVLAN == VLANPass
}
