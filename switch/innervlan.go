package vswitch

import (
	"encoding/binary"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// VLANMode says how a VSI handles frames with an 802.1Q or 802.1ad tag that is not the tag of an
// attachment: inside a tunnel (RFC 7348, section 6.1), or behind the tag that an attachment removes.
type VLANMode uint8

// Modes of [VSIConfig.InnerVLAN].
const (
	// VLANDiscard drops them as frame.InnerVLAN.
	VLANDiscard VLANMode = iota

	// VLANStrip removes one or two tags from frames that come from a tunnel, and drops frames with more.
	// The VLANs can then no longer be told apart. A frame to which the tunnel has given no priority takes that of the first
	// tag. On other ports it works like VLANDiscard.
	VLANStrip

	// VLANPass keeps the tags. An access attachment also accepts tagged frames, and they cross the
	// tunnel as they are (Q-in-VNI). The exception is a VLAN that another attachment of the same port
	// has: its frames belong to the other segment, and are dropped here in both directions, as
	// frame.InnerVLAN. Tags count towards the MTU of a tunnel; an access port takes one tag on top of
	// its MTU, as Ethernet does.
	//
	// All VLANs of the VSI share one MAC table, so a MAC that is in two VLANs at two places moves with
	// every frame. Slot Neighbour and the gateway get untagged frames only, and a tagged frame to the
	// gateway's MAC is dropped. Other stages see the tags.
	VLANPass
)

func isTag(etherType uint16) bool { return etherType == typeVLAN || etherType == typeQinQ }

// tagged handles the tags of a frame that wellFormed refused for r. It returns NotDropped if the frame
// is accepted after all.
func (c *circuit) tagged(f *frame.Frame, r frame.Reason) frame.Reason {
	switch {
	case r != frame.InnerVLAN || c.innerVLAN == VLANDiscard:
		return r
	case c.innerVLAN == VLANPass:
		if f.Len() < ethLen+vlanLen {
			return frame.Short
		}
		if c.native && c.port.of.inOtherVLAN(f.Bytes()) {
			return r
		}
		return frame.NotDropped
	case !f.Tunnel:
		return r
	}
	return stripTags(f)
}

// stripTags removes up to two tags. The offsets of a superframe count from the start of its buffer, so
// they do not change.
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
	if f.Priority == 0 {
		f.Priority = b[macsLen+2] >> 5
	}
	copy(b[n:n+macsLen], b[:macsLen])
	f.Pull(n)
	return frame.NotDropped
}

// keepsTag reports whether f has a tag that the VSI passes on.
func (c *circuit) keepsTag(f *frame.Frame) bool {
	return c.innerVLAN == VLANPass && f.Kind == frame.Ethernet && isTag(binary.BigEndian.Uint16(f.Bytes()[macsLen:]))
}

// room returns the length of the longest frame like f that e takes, where mtu holds for untagged frames:
// an Ethernet frame may be longer by its tag (IEEE 802.3, 3.2.7).
func (e *circuit) room(f *frame.Frame, mtu int) int {
	if e.native && e.keepsTag(f) {
		return mtu + vlanLen
	}
	return mtu
}

// inOtherVLAN reports whether another attachment of p has the VLAN of b. Bridges and hosts remove one
// priority tag and look at the next; with two of them the VLAN is anyone's guess.
func (p *port) inOtherVLAN(b []byte) bool {
	for n := macsLen; n+vlanLen <= len(b) && isTag(binary.BigEndian.Uint16(b[n:])); n += vlanLen {
		if vid := binary.BigEndian.Uint16(b[n+2:]) & 0xfff; vid != 0 {
			tag := uint32(vid)
			if binary.BigEndian.Uint16(b[n:]) == typeQinQ {
				tag |= frame.ServiceTag
			}
			return p.attached(tag)
		}
		if n > macsLen {
			return true
		}
	}
	return false
}

// takeVLAN removes the tag of an attachment and returns its VLAN, or 0 for an untagged frame. The frame keeps the priority.
// A frame tagged with VLAN 0 has only a priority and counts as untagged (IEEE 802.1Q, 6.9.1). If the access
// attachment passes tags, takeVLAN leaves the tags that no attachment of the port has. Of service tags it always does.
func (w *worker) takeVLAN(f *frame.Frame) uint32 {
	b := f.Bytes()
	if len(b) < ethLen+vlanLen {
		return 0
	}
	t := binary.BigEndian.Uint16(b[12:])
	if !isTag(t) {
		return 0
	}
	tci := binary.BigEndian.Uint16(b[14:])
	f.Priority = uint8(tci >> 13)
	tag := uint32(tci & 0xfff)
	if t == typeQinQ {
		tag |= frame.ServiceTag
		if (w.circuit == nil || w.tag != tag) && !w.port.attached(tag) {
			return 0
		}
	} else if tag != 0 && (w.circuit == nil || w.tag != tag) && w.port.passes(tag) {
		return 0
	}
	copy(b[vlanLen:ethLen+2], b[:macsLen])
	f.Pull(vlanLen)
	return tag
}

// attached reports whether the port has an attachment with the tag.
func (p *port) attached(tag uint32) bool {
	if _, ok := p.circuits.Load(tagKey(tag)); ok {
		return true
	}
	list := p.matching.Load()
	return list != nil && slices.ContainsFunc(*list, func(c *circuit) bool { return c.tag == tag })
}

// passes reports whether an access attachment takes the frames of a VLAN with their tag.
func (p *port) passes(vid uint32) bool {
	if p.attached(vid) {
		return false
	}
	if c, ok := p.circuits.Load(0); ok && c.innerVLAN == VLANPass {
		return true
	}
	list := p.matching.Load()
	return list != nil && slices.ContainsFunc(*list, func(c *circuit) bool { return c.tag == 0 && c.innerVLAN == VLANPass })
}
