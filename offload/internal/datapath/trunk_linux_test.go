package datapath

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A trunk is the programs and a switch in user space that runs, which are told the same: near is at port a, in each of these VLANs;
// far is at port b, or behind the tunnel.
//
//	a: 0 5 6 7      b: 9 0 6 4094      each in a segment of its own
//	a: 8            tunnel: vni
type trunk struct {
	t    testing.TB
	d    *Datapath
	a, b *port.Pipe
	far  *memory.Underlay
	got  *frame.Batch
}

var trunkTags = [][2]uint32{{0, 9}, {5, 0}, {6, 6}, {7, 4094}}

const (
	tunnelTag = 8
	dot1q     = 0x8100 << 16
)

func newTrunk(t testing.TB) *trunk {
	t.Helper()
	r := &trunk{t: t, d: load(t), a: port.NewPipe(nil), b: port.NewPipe(nil), got: frame.NewBatch(nil)}
	sw := check.Must(vswitch.New(nil))(t)
	attach := func(v *vswitch.VSI, p vswitch.Port, tag uint32, peer uint16, mac frame.MAC) {
		a := check.Must(v.AttachWith(p, tag, nil))(t)
		check.OK(t, v.FDB().Set(mac, a.Dest(peer), fdb.Static))
	}
	slot := uint32(0)
	flow := func() *Flow {
		r.d.Slot(slot).Validate(Validity{1, 0, 0})
		slot++
		return &Flow{Slot: slot - 1, SrcEpoch: 1, DstEpoch: 2, Oif: oif, How: Egress, Max: maxLen}
	}
	for i, tags := range trunkTags {
		v := check.Must(sw.VSI(frame.VNI(i+1), nil))(t)
		attach(v, r.a, tags[0], 0, macNear)
		attach(v, r.b, tags[1], 0, macFar)
		f := flow()
		f.Tag = tags[1]
		check.OK(t, r.d.Put(OutKey{Ifindex: 1, Dst: macFar, Src: macNear, Tag: tags[0]}, f))
	}
	net := memory.NewNetwork(&memory.NetworkConfig{MTU: tunMTU})
	local, peer := netip.AddrPortFrom(locals[0], 4789), netip.AddrPortFrom(peerOf(0, 0), 4789)
	r.far = check.Must(net.Listen(peer, nil))(t)
	v := check.Must(vtep.New(nil, check.Must(net.Listen(local, nil))(t)))(t)
	s := check.Must(sw.VSI(vni, nil))(t)
	attach(s, r.a, tunnelTag, 0, macNear)
	attach(s, v, vni, check.Must(v.AddPeer(peer))(t), macFar)
	out := flow()
	out.How, out.Outer = Neigh, Outer{Local: locals[0], Remote: peer.Addr(), Port: 4789, SrcPorts: srcPorts, VNI: vni, TTL: 64}
	check.OK(t, r.d.Put(OutKey{Ifindex: 1, Dst: macFar, Src: macNear, Tag: tunnelTag}, out))
	in := flow()
	in.Tag, in.Outer = tunnelTag, Outer{Local: locals[0], Port: 4789, ZeroChecksum: true}
	check.OK(t, r.d.Put(InKey{Peer: peer.Addr().As16(), VNI: vni, Dst: macNear, Src: macFar}, in))
	t.Cleanup(func() { sw.Close(); net.Close() })
	check.Run(t, sw.Run)
	return r
}

// tagged returns a frame with a tag, such as 0x81000005, in it.
func tagged(b []byte, tag uint32) []byte {
	if tag == 0 {
		return b
	}
	return append(binary.BigEndian.AppendUint32(bytes.Clone(b[:12]), tag), b[12:]...)
}

// recv returns the next frame that the switch sends by a port.
func (r *trunk) recv(p *port.Pipe) []byte {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	b, err := p.Recv(ctx)
	if err != nil {
		r.t.Fatalf("user space forwards nothing: %v", err)
	}
	return b
}

// sends runs a program on a frame from near with a tag beside it. It fails the test unless that is a miss that changes nothing, or
// what leaves is what the switch makes of the frame with the tag in it. It reports which.
func (r *trunk) sends(which Program, b []byte, tag uint32) bool {
	r.t.Helper()
	act, got, after, err := r.d.Run(which, b, Meta{Tag: tag})
	if errors.Is(err, unix.EINVAL) && len(b) < 54 {
		return false // BPF_PROG_TEST_RUN takes no packets without a whole IP header
	}
	check.OK(r.t, err)
	if act == Miss {
		if !bytes.Equal(got, b) || after.Tag != tag {
			r.t.Fatalf("a miss is changed\nfrom %x, tag %#x\nto   %x, tag %#x", b, tag, got, after.Tag)
		}
		return false
	}
	check.OK(r.t, r.a.Send(tagged(b, tag)))
	var want []byte
	if tag&0xfff == tunnelTag {
		check.OK(r.t, r.far.Readers()[0].Read(r.got))
		got, want = got[34+8:], r.got.Frames[0].Bytes()
	} else {
		want = r.recv(r.b)
	}
	if got = tagged(got, after.Tag); act != Redirect || !bytes.Equal(got, want) {
		r.t.Fatalf("action %d: frame\n%x, tag %#x\ngot\n%x\nwant\n%x", act, b, tag, got, want)
	}
	return true
}

// reads runs tunnel_in on a frame from far, and fails the test unless that is a miss, or what the switch sends.
func (r *trunk) reads(b []byte) bool {
	r.t.Helper()
	packet := received(0, vxlan(b), 0)
	act, got, after, err := r.d.Run(TunnelIn, packet, Meta{})
	check.OK(r.t, err)
	if act == Miss {
		if !bytes.Equal(got, packet) || after.Tag != 0 {
			r.t.Fatalf("a miss is changed\nfrom %x\nto   %x, tag %#x", packet, got, after.Tag)
		}
		return false
	}
	to := check.Must(frame.EndpointFrom(netip.AddrPortFrom(locals[0], 4789)))(r.t)
	check.OK(r.t, r.far.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{vxlan(b)}, To: []frame.Endpoint{to}, TTL: 64}}))
	got, want := tagged(got, after.Tag), r.recv(r.a)
	if len(want) < len(got) {
		got = got[:len(want)] // unfinished: padding is cut off
	}
	if act != Redirect || !bytes.Equal(got, want) {
		r.t.Fatalf("action %d: frame\n%x\ngot\n%x\nwant\n%x", act, b, got, want)
	}
	return true
}

// Each VLAN goes to its segment, whatever the priority; all other tags are for user space.
func TestTags(t *testing.T) {
	r := newTrunk(t)
	plain := shape{dst: macFar, src: macNear, size: 100}.bytes()
	const carried = NumCauses
	for _, c := range []struct {
		name string
		b    []byte
		tag  uint32
		want Cause
	}{
		{"none", plain, 0, carried},
		{"VLAN", plain, dot1q | 5, carried},
		{"priority", plain, dot1q | 7<<13 | 5, carried},
		{"the same VLAN again", plain, dot1q | 6, carried},
		{"with priority", plain, dot1q | 5<<13 | 6, carried},
		{"another", plain, dot1q | 3<<13 | 7, carried},
		{"into the tunnel", plain, dot1q | 1<<13 | tunnelTag, carried},
		{"of no segment", plain, dot1q | 9, NoFlow},
		{"the last", plain, dot1q | 4095, NoFlow},
		{"priority alone", plain, dot1q | 5<<13, Kind},
		{"nothing", plain, dot1q, Kind},
		{"DEI", plain, dot1q | 1<<12 | 5, Kind},
		{"802.1ad", plain, 0x88a8<<16 | 5, Kind},
		{"one in the frame", tagged(plain, dot1q|5), 0, Kind},
		{"one beside, one in the frame", tagged(plain, dot1q|5), dot1q | 5, Kind},
		{"the longest", shape{dst: macFar, src: macNear, size: maxLen - 42}.bytes(), dot1q | 5, carried},
		{"longer", shape{dst: macFar, src: macNear, size: maxLen - 41}.bytes(), dot1q | 5, TooBig},
	} {
		for _, p := range []Program{PortIn, PortOut} {
			if got := r.d.why(t, p, c.b, Meta{Tag: c.tag}); got != c.want {
				t.Errorf("%s, program %d: %v, want %v", c.name, p, got, c.want)
			}
			if r.sends(p, c.b, c.tag) != (c.want == carried) {
				t.Errorf("%s, program %d: carried %v", c.name, p, c.want != carried)
			}
		}
	}
	check.True(t, r.reads(shape{dst: macNear, src: macFar, size: 100}.bytes()), "out of the tunnel is a miss")
}

// For random frames with random tags, the programs and user space do the same, or it is a miss.
func TestRandomTags(t *testing.T) {
	g := newTrunk(t)
	r := dice{rand.New(rand.NewPCG(5, 6))}
	sent, read := 0, 0
	const rounds = 10000
	for range rounds {
		b := r.frame(macFar, macNear)
		if r.one(10) {
			b = tagged(b, r.tag())
		}
		if g.sends(Program(r.IntN(2)), b, r.tag()) {
			sent++
		}
		if g.reads(r.frame(macNear, macFar)) {
			read++
		}
	}
	t.Log(sent, read)
	if sent < rounds/10 || read < rounds/10 {
		t.Errorf("%d and %d of %d carried", sent, read, rounds)
	}
}

// tag is a random tag, or none.
func (r dice) tag() uint32 {
	vid := []uint32{5, 6, 7, 8, 5, 6, 7, 8, 9, 0, 4095}[r.IntN(11)]
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return 0x88a8<<16 | vid
	case 2:
		return dot1q | uint32(r.IntN(1<<16))
	}
	return dot1q | uint32(r.IntN(8))<<13 | vid
}
