package datapath

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestLost: a frame that is changed in part when the kernel fails is dropped under a name, and not counted as carried.
func TestLost(t *testing.T) {
	out := OutKey{Ifindex: 1, Dst: macFar, Src: macNear}
	tagged := out
	tagged.Tag = 5
	in := InKey{Peer: peerOf(0, 0).As16(), VNI: vni, Dst: macNear, Src: macFar}
	sends := func(routed bool, fam int) *Flow {
		f := &Flow{SrcEpoch: 1, DstEpoch: 2, Oif: oif, How: Neigh, Max: maxLen, Outer: outerTo(fam, 0)}
		if routed {
			f.NewDst, f.NewSrc = macHost, macGateway
		}
		return f
	}
	passes := func(routed bool, tag uint32) *Flow {
		f := sends(routed, 0)
		f.How, f.Tag = Egress, tag
		return f
	}
	plain := shape{dst: macFar, src: macNear}.bytes()
	packet := func(tos uint8) []byte {
		b := shape{dst: macNear, src: macFar, tos: 2, proto: layers.IPProtocolTCP}.bytes()
		return received(0, vxlan(b), tos)
	}
	for _, c := range []struct {
		fails asm.BuiltinFunc
		name  string
		key   Key
		flow  *Flow
		b     []byte
		tag   uint32
	}{
		{asm.FnSkbStoreBytes, "encapsulated", out, sends(false, 0), plain, 0},
		{asm.FnSkbStoreBytes, "encapsulated in IPv6", out, sends(false, 1), plain, 0},
		{asm.FnSkbStoreBytes, "routed", out, passes(true, 0), plain, 0},
		{asm.FnSkbStoreBytes, "decapsulated", in, passes(false, 0), packet(0), 0},
		{asm.FnL3CsumReplace, "encapsulated, routed", out, sends(true, 0), plain, 0},
		{asm.FnL3CsumReplace, "encapsulated in IPv6, routed", out, sends(true, 1), plain, 0},
		{asm.FnL3CsumReplace, "routed", out, passes(true, 0), plain, 0},
		{asm.FnL3CsumReplace, "decapsulated, with congestion", in, passes(false, 0), packet(3), 0},
		{asm.FnL3CsumReplace, "decapsulated, routed", in, passes(true, 0), packet(2), 0},
		{asm.FnSkbVlanPush, "tagged", out, passes(false, 7), plain, 0},
		{asm.FnSkbVlanPush, "decapsulated, tagged", in, passes(false, 7), packet(2), 0},
		{asm.FnSkbVlanPop, "untagged", tagged, passes(false, 0), plain, 0x81000005},
		{asm.FnSkbVlanPop, "untagged, encapsulated", tagged, sends(false, 0), plain, 0x81000005},
	} {
		t.Run(fmt.Sprintf("%v/%s", c.fails, c.name), func(t *testing.T) {
			for _, fails := range []bool{false, true} {
				d := loadWithout(t, c.fails, fails)
				d.Slot(0).Validate(Validity{1, 0, 0})
				which := PortIn
				if _, ok := c.key.(InKey); ok {
					which = TunnelIn
					c.flow.Outer.ZeroChecksum = true
				}
				check.OK(t, d.Put(c.key, c.flow))
				act, _, _, err := d.Run(which, c.b, Meta{Tag: c.tag})
				check.OK(t, err)
				packets, size, _ := d.Slot(0).Counters()
				misses := check.Must(d.Misses())(t)
				if !fails {
					check.True(t, act == Redirect && misses == Misses{} && packets == 1, "without a fault: action %d, %v, %d packets", act, misses, packets)
					continue
				}
				check.True(t, act == Dropped && misses == Misses{Lost: 1}, "action %d, %v", act, misses)
				check.True(t, packets == 0 && size == 0, "%d packets of %d bytes count as carried", packets, size)
			}
		})
	}
}

// loadWithout loads programs in which all calls of a function of the kernel fail, if it fails.
func loadWithout(t *testing.T, f asm.BuiltinFunc, fails bool) *Datapath {
	t.Helper()
	if !fails {
		return load(t)
	}
	whole := object
	defer func() { object = whole }()
	call, fault := []byte{0x85, 0, 0, 0, byte(f), 0, 0, 0}, []byte{0xb7, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff} // r0 = -EFAULT
	check.True(t, bytes.Contains(whole, call), "nothing calls %v", f)
	object = bytes.ReplaceAll(whole, call, fault)
	d := load(t)
	for _, p := range []Program{PortIn, TunnelIn} {
		check.Must(d.test(p))(t)
	}
	return d
}

// outerTo is the outer headers of packets to a peer.
func outerTo(fam, peer int) Outer {
	return Outer{Local: locals[fam], Remote: peerOf(fam, peer), Port: 4789, SrcPorts: srcPorts, VNI: vni}
}
