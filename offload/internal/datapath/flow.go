package datapath

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// An OutKey identifies frames that enter at a port.
type OutKey struct {
	Ifindex  uint32 // the device that the program is attached to
	Dst, Src frame.MAC
	Tag      uint32 // VLAN of an 802.1Q tag, whatever its priority, which the frame keeps, without DEI; 0: frames without a tag

	// Frames with this tuple; without a protocol, all between the addresses; zero: all. An entry for all comes first, then that of
	// the whole tuple.
	Tuple frame.Tuple
}

// An InKey identifies frames that come out of a tunnel.
type InKey struct {
	Peer     [16]byte // outer source address; IPv4 is IPv4-mapped
	VNI      frame.VNI
	Dst, Src frame.MAC

	Tuple frame.Tuple // as in OutKey
}

// How says how a frame leaves.
type How uint8

// Ways out.
const (
	Neigh   How = 1 + iota // encapsulated, out of an underlay device, which resolves the next hop's MAC
	Egress                 // sent out of a port's device
	Ingress                // received by a port's device, as a TAP of the host's own
	Peer                   // received by the other end of a veth pair, which must be in another network namespace
)

// String returns the name.
func (h How) String() string {
	if names := [...]string{"none", "neigh", "egress", "ingress", "peer"}; int(h) < len(names) {
		return names[h]
	}
	return fmt.Sprintf("How(%d)", uint8(h))
}

// DF says whether the outer IPv4 header has the DF bit.
type DF uint8

// DF modes.
const (
	DFSet     DF = iota // always
	DFUnset             // never
	DFInherit           // copied from the inner IPv4 header; set for IPv6
)

// ECN says which ECN field the outer header gets (see vtep.ECN).
type ECN uint8

// ECN modes.
const (
	ECNNormal  ECN = iota // a copy of the inner field
	ECNCompat             // Not-ECT
	ECNRFC3168            // a copy, but CE becomes ECT(0)
)

// An Outer is the outer headers of packets that are sent, with [Neigh], or are expected, in table in.
type Outer struct {
	Local    netip.Addr // outer source; of received packets the destination
	Remote   netip.Addr // outer destination; for table in, the key has it
	Port     uint16     // UDP destination port
	SrcPorts [16]uint16 // UDP source ports, of which each inner flow has one
	VNI      frame.VNI  // for table in, the key has it
	GPE      bool       // the tunnel header is that of VXLAN-GPE with an Ethernet frame, not that of VXLAN
	TTL      uint8      // 0: inherited from the inner header
	TOS      uint8      // without its two ECN bits
	TOSIn    bool       // TOS is inherited from the inner header
	DF       DF         // over IPv4
	ECN      ECN        // of packets that are sent; those received follow RFC 6040, section 4.2
	Mark     uint32     // as SO_MARK; routing looks at it

	Iif uint32 // of received packets: the device at which they must arrive; 0: any

	// Of received packets: a UDP checksum of zero is accepted (RFC 6935; over IPv4 it should be), and one that is
	// not zero even if no network card has verified it (RFC 7348, section 5). The UDP checksum of packets that are
	// sent is always zero.
	ZeroChecksum, Unverified bool
}

// A Flow is what happens to the frames with one key.
type Flow struct {
	Slot               uint32 // validity and counters
	SrcEpoch, DstEpoch uint32 // which epochs count the changes of the two MACs
	Oif                uint32 // the device that they leave by: Ethernet, and in the namespace of the program
	How                How
	Max                uint32    // length of the longest frame, from the destination MAC on and without a VLAN tag; of a superframe, of each segment
	Tag                uint32    // VLAN of the tag that they leave with, in place of the one they have; 0: none
	NewDst, NewSrc     frame.MAC // of frames that are routed: they leave with these, and with a TTL or hop limit that is less by one; zero: as they came
	Outer              Outer     // with Neigh, and in table in
}

// Sizes of struct flow and struct path in bpf/maps.h.
const (
	flowLen = 44
	pathLen = 84
)

const flagRouted = 1 // of struct flow

// Bits of flags in struct path.
const (
	flagIPv6 = 1 << iota
	flagTOSIn
	flagZeroChecksum
	flagUnverified
)

// A path is struct path: what the packets of many flows to or from one peer have in common.
type path [pathLen]byte

// path returns the path of an Outer. Headers are in network order, other fields in that of the machine.
func (o *Outer) path() (b path) {
	ne := binary.NativeEndian
	if o.Local.IsValid() {
		*(*[16]byte)(b[:]) = o.Local.As16()
	}
	if o.Remote.IsValid() {
		*(*[16]byte)(b[16:]) = o.Remote.As16()
	}
	ne.PutUint32(b[32:], o.Mark)
	if o.GPE {
		encap.PutGPE(b[36:], 0, frame.Ethernet, false) // what follows is written over its VNI
	} else {
		encap.PutVXLAN(b[36:], 0)
	}
	ne.PutUint32(b[40:], o.Iif)
	for _, x := range [...]struct {
		bit uint8
		on  bool
	}{{flagIPv6, o.Local.Unmap().Is6()}, {flagTOSIn, o.TOSIn}, {flagZeroChecksum, o.ZeroChecksum}, {flagUnverified, o.Unverified}} {
		if x.on {
			b[44] |= x.bit
		}
	}
	b[45], b[46], b[47], b[48] = o.TTL, o.TOS, uint8(o.DF), uint8(o.ECN)
	binary.BigEndian.PutUint16(b[50:], o.Port)
	for i, p := range o.SrcPorts {
		binary.BigEndian.PutUint16(b[52+2*i:], p)
	}
	return b
}

// put writes f as struct flow.
func (f *Flow) put(path uint32) (b [flowLen]byte) {
	ne := binary.NativeEndian
	ne.PutUint32(b[:], f.Slot)
	ne.PutUint32(b[4:], path)
	ne.PutUint16(b[8:], uint16(f.SrcEpoch))
	ne.PutUint16(b[10:], uint16(f.DstEpoch))
	ne.PutUint32(b[12:], f.Oif)
	ne.PutUint32(b[16:], f.Max)
	binary.BigEndian.PutUint32(b[20:], uint32(f.Outer.VNI)<<8)
	ne.PutUint32(b[24:], f.Tag)
	b[28] = uint8(f.How)
	if f.routed() {
		b[29] = flagRouted
	}
	copy(b[32:], f.NewDst[:])
	copy(b[38:], f.NewSrc[:])
	return b
}

func (f *Flow) routed() bool { return !f.NewDst.IsZero() }

// check returns what is wrong with a flow of table out, or of table in.
func (f *Flow) check(in bool, slots uint32) error {
	o := &f.Outer
	want := func(field string, value any, allowed string) error {
		return fmt.Errorf("datapath: Flow: %s is %v; must be %s", field, value, allowed)
	}
	local, remote := o.Local.Unmap(), o.Remote.Unmap()
	switch {
	case f.Slot >= slots:
		return want("Slot", f.Slot, fmt.Sprintf("less than %d", slots))
	case f.SrcEpoch >= Epochs:
		return want("SrcEpoch", f.SrcEpoch, fmt.Sprintf("less than %d", Epochs))
	case f.DstEpoch >= Epochs:
		return want("DstEpoch", f.DstEpoch, fmt.Sprintf("less than %d", Epochs))
	case f.Oif == 0:
		return want("Oif", f.Oif, "the index of a device")
	case f.How < Neigh || f.How > Peer || in && f.How == Neigh:
		return want("How", f.How, "Neigh (not out of a tunnel), Egress, Ingress or Peer")
	case f.Tag > 4094 || f.How == Neigh && f.Tag != 0:
		return want("Tag", f.Tag, "0 to 4094, and 0 with Neigh")
	case f.routed() && (!f.NewDst.IsHost() || !f.NewSrc.IsHost()):
		return want("NewDst, NewSrc", []frame.MAC{f.NewDst, f.NewSrc}, "the MACs of two hosts, or both zero")
	case !in && f.How != Neigh:
		return nil
	case !local.IsValid() || local.Zone() != "" || local.Is6() && local.IsLinkLocalUnicast():
		return want("Outer.Local", o.Local, "an address that is not link-local") // the key has no interface
	case o.Port == 0:
		return want("Outer.Port", o.Port, "1 to 65535")
	case in:
		return nil
	case !remote.IsValid() || remote.Zone() != "" || remote.Is4() != local.Is4() || remote.IsMulticast() || remote.Is6() && remote.IsLinkLocalUnicast():
		return want("Outer.Remote", o.Remote, "the address of one host, of the family of Outer.Local, not link-local")
	case !o.VNI.Valid():
		return want("Outer.VNI", uint32(o.VNI), "at most 16777215")
	case o.TOS&3 != 0:
		return want("Outer.TOS", o.TOS, "a multiple of 4; the two low bits are ECN")
	case o.DF > DFInherit:
		return want("Outer.DF", uint8(o.DF), "DFSet, DFUnset or DFInherit")
	case o.ECN > ECNRFC3168:
		return want("Outer.ECN", uint8(o.ECN), "ECNNormal, ECNCompat or ECNRFC3168")
	}
	for _, p := range o.SrcPorts {
		if p == 0 {
			return want("Outer.SrcPorts", o.SrcPorts, "16 ports from 1 to 65535")
		}
	}
	return nil
}
