package datapath

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Source MACs whose pairs have no flow.
func strangerOf(mode int) frame.MAC { return frame.MAC{2, 0, 0, 0, 2, byte(mode)} }

var macStranger = frame.MAC{2, 0, 0, 0, 2, 0xff}

// A judged rig knows which tuples of strangers have flows, those of the modes.
type judgedRig struct {
	*rig
	flows map[Key]bool

	carried [2]int // out and in
}

func newJudgedRig(t testing.TB) *judgedRig {
	return &judgedRig{rig: newRig(t), flows: map[Key]bool{}}
}

// put puts a flow. If there are many, it deletes them first.
func (r *judgedRig) put(k Key, f *Flow) {
	r.t.Helper()
	if len(r.flows) > 900 {
		for k := range r.flows {
			check.OK(r.t, r.d.Delete(k))
		}
		clear(r.flows)
	}
	check.OK(r.t, r.d.Put(k, f))
	r.flows[k] = true
}

// sends fails the test unless the frame of a stranger is carried exactly if its tuple has a flow, and that of the guest of the
// mode would be. Then its tuple has one.
func (r *judgedRig) sends(fam, m int, b []byte) {
	r.t.Helper()
	whole := r.rig.sends(fam, m, b)
	c, src := bytes.Clone(b), strangerOf(m)
	copy(c[6:], src[:])
	t, ok := frame.TupleOf(c)
	k := OutKey{Ifindex: 1, Dst: frame.MAC(b), Src: src, Tuple: t}
	if got := r.rig.sends(fam, m, c); got != (whole && ok && r.flows[k]) {
		r.t.Fatalf("carried is %v, that of the guest %v; tuple %v, which has a flow: %v\n%x", got, whole, t, r.flows[k], c)
	}
	if !ok || r.flows[k] {
		return
	}
	r.put(k, r.flow(0, fam, m))
	if got := r.rig.sends(fam, m, c); got != whole {
		r.t.Fatalf("with a flow of tuple %v: carried is %v, that of the guest %v\n%x", t, got, whole, c)
	} else if got {
		r.carried[0]++
	}
}

// reads is sends for a datagram of the peer.
func (r *judgedRig) reads(fam int, inner []byte, tos uint8) {
	r.t.Helper()
	whole := r.rig.reads(fam, vxlan(inner), tos)
	c := bytes.Clone(inner)
	copy(c[6:], macStranger[:])
	t, ok := frame.TupleOf(c)
	k := r.inKey(fam)
	k.Src, k.Tuple = macStranger, t
	if got := r.rig.reads(fam, vxlan(c), tos); got != (whole && ok && r.flows[k]) {
		r.t.Fatalf("carried is %v, that of the other %v; tuple %v, which has a flow: %v\n%x", got, whole, t, r.flows[k], c)
	}
	if !ok || r.flows[k] {
		return
	}
	f := r.flow(0, fam, 0)
	f.How, f.Outer.ZeroChecksum = Egress, true
	r.put(k, f)
	if got := r.rig.reads(fam, vxlan(c), tos); got != whole {
		r.t.Fatalf("with a flow of tuple %v: carried is %v, that of the other %v\n%x", t, got, whole, c)
	} else if got {
		r.carried[1]++
	}
}

// both tries a frame in both directions, and with another byte.
func (r *judgedRig) both(fam, m int, payload []byte, tos uint8, at uint16, to uint8) {
	r.t.Helper()
	k := r.key(fam, m)
	for range 2 {
		r.sends(fam, m, append(append(k.Dst[:], k.Src[:]...), payload...))
		r.reads(fam, append(append(macNear[:], macFar[:]...), payload...), tos)
		payload = bytes.Clone(payload)
		payload[int(at)%min(len(payload), 60)] = to
	}
}

// For random frames, the flow of a tuple carries those of which frame.TupleOf returns it, as the flow of a pair would, and no others.
func TestRandomTuples(t *testing.T) {
	g := newJudgedRig(t)
	r := dice{rand.New(rand.NewPCG(5, 6))}
	const rounds = 5000
	for range rounds {
		g.both(r.IntN(2), r.IntN(len(g.modes)), r.frame(macFar, macNear)[12:], uint8(r.Uint32()), uint16(r.Uint32()), uint8(r.Uint32()))
	}
	check.True(t, min(g.carried[0], g.carried[1]) > rounds/5, "%v of %d carried", g.carried, rounds)
}

// FuzzTuples is TestRandomTuples with the frames of the fuzzer.
func FuzzTuples(f *testing.F) {
	r := dice{rand.New(rand.NewPCG(7, 8))}
	for i := range 64 {
		f.Add(r.frame(macFar, macNear)[12:], uint16(i), uint8(i), uint16(i), uint8(i))
	}
	g := newJudgedRig(f)
	f.Fuzz(func(t *testing.T, b []byte, how uint16, tos uint8, at uint16, to uint8) {
		if len(b) < 2 || len(b) > 3000 {
			return
		}
		g.t = t
		g.both(int(how&1), int(how>>1)%len(g.modes), b, tos, at, to)
	})
}

// Every field of a tuple counts, and so do the MACs, the device and the VNI. What has no ports in reach is a miss.
func TestTuples(t *testing.T) {
	d := load(t)
	s := shape{dst: macFar, src: macNear}
	tuple, ok := frame.TupleOf(s.bytes())
	check.True(t, ok, "no tuple")
	k := OutKey{Ifindex: 1, Dst: macFar, Src: macNear, Tuple: tuple}
	d.Slot(3).Validate(Validity{1, 0, 0})
	f := &Flow{Slot: 3, SrcEpoch: 1, DstEpoch: 2, Oif: 1, How: Egress, Max: 1500, Outer: Outer{Local: locals[0], Port: 4789, ZeroChecksum: true}}
	for _, c := range []struct {
		name   string
		change func(k *OutKey)
	}{
		{"protocol", func(k *OutKey) { k.Tuple.Protocol = 6 }},
		{"source", func(k *OutKey) { k.Tuple.Src = k.Tuple.Src.Next() }},
		{"destination", func(k *OutKey) { k.Tuple.Dst = k.Tuple.Dst.Next() }},
		{"IPv6", func(k *OutKey) {
			k.Tuple.Src, k.Tuple.Dst = netip.AddrFrom16(k.Tuple.Src.As16()), netip.AddrFrom16(k.Tuple.Dst.As16())
		}},
		{"source port", func(k *OutKey) { k.Tuple.SrcPort++ }},
		{"destination port", func(k *OutKey) { k.Tuple.DstPort++ }},
		{"back", func(k *OutKey) { k.Tuple = k.Tuple.Back() }},
		{"source MAC", func(k *OutKey) { k.Src[5]++ }},
		{"destination MAC", func(k *OutKey) { k.Dst[5]++ }},
		{"device", func(k *OutKey) { k.Ifindex++ }},
	} {
		other := k
		c.change(&other)
		check.OK(t, d.Put(other, f))
		check.Equal(t, "flow of another "+c.name, d.why(t, PortIn, s.bytes(), Meta{}), NoFlow)
		check.OK(t, d.Delete(other))
	}
	check.OK(t, d.Put(k, f))
	check.ErrorIs(t, "again", d.Put(k, f), ErrExist)
	check.Equal(t, "the flow", d.why(t, PortIn, s.bytes(), Meta{}), NumCauses)
	check.Equal(t, "a superframe of it", d.why(t, PortIn, s.bytes(), Meta{GSOSize: 1000, GSOSegs: 2}), NumCauses)
	for name, change := range map[string]func(s *shape){
		"first fragment": func(s *shape) { s.more = true },
		"later fragment": func(s *shape) { s.offset = 100 },
		"ICMP":           func(s *shape) { s.proto = layers.IPProtocolICMPv4 },
		"TCP":            func(s *shape) { s.proto = layers.IPProtocolTCP },
	} {
		x := s
		change(&x)
		check.Equal(t, name, d.why(t, PortIn, x.bytes(), Meta{}), NoFlow)
	}
	d.Bump(Global)
	check.Equal(t, "after a change", d.why(t, PortIn, s.bytes(), Meta{}), Stale)
	d.Slot(3).Validate(Validity{d.Epoch(Global), 0, 0})

	// A flow of all packets comes first, and the same tuple out of a tunnel is another entry.
	all := k
	all.Tuple = frame.Tuple{}
	dead := *f
	dead.Slot = 4
	check.OK(t, d.Put(all, &dead))
	check.Equal(t, "a void flow of all packets", d.why(t, PortIn, s.bytes(), Meta{}), Stale)
	in := InKey{Peer: peerOf(0, 0).As16(), VNI: vni, Dst: macFar, Src: macNear, Tuple: tuple}
	packet := received(0, vxlan(s.bytes()), 0)
	check.Equal(t, "out of a tunnel", d.why(t, TunnelIn, packet, Meta{}), NoFlow)
	other := in
	other.VNI++
	check.OK(t, d.Put(other, f))
	check.Equal(t, "of another VNI", d.why(t, TunnelIn, packet, Meta{}), NoFlow)
	check.OK(t, d.Put(in, f))
	check.Equal(t, "out of a tunnel", d.why(t, TunnelIn, packet, Meta{}), NumCauses)
	for _, k := range []Key{other, in, all, k} {
		check.OK(t, d.Delete(k))
	}
	check.Equal(t, "deleted", d.why(t, TunnelIn, packet, Meta{}), NoFlow)
	check.Equal(t, "deleted", d.why(t, PortIn, s.bytes(), Meta{}), NoFlow)
}
