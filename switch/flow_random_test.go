package vswitch

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestRandomFlows: with random settings, entries and routes, in two segments with ports, a trunk and a tunnel, a frame of each pair that has
// a Flow leaves as the Flow says, once and nowhere else. That of a pair that Flow says is dropped does not leave.
func TestRandomFlows(t *testing.T) {
	const rounds = 20000
	r := rand.New(rand.NewPCG(21, 21))
	inLab(t, func(l *lab) {
		check.OK(t, l.s.SetOffload(&told{macs: map[frame.MAC]int{}}))
		vsis := [2]*VSI{l.v, check.Must(l.s.VSI(2, nil))(t)}
		hops := [2]*hopper{{}, {}}
		tun := &stubTunnel{stub: newStub("t")}
		a, b, c, d := newStub("a"), newStub("b"), newStub("c"), newStub("d")
		type place struct {
			p    *stub
			at   *Attachment
			peer uint16
			tag  uint32
		}
		var places [2][]place
		var all []*Attachment
		attach := func(seg int, p Port, tag uint32) {
			at := check.Must(vsis[seg].Attach(p, tag))(t)
			all = append(all, at)
			if p == Port(tun) {
				for peer := range uint16(3) {
					places[seg] = append(places[seg], place{tun.stub, at, 3 + peer, tag})
				}
				return
			}
			places[seg] = append(places[seg], place{p.(*stub), at, 0, tag})
		}
		attach(0, a, 0)
		attach(0, b, 0)
		attach(0, c, 5)
		attach(0, tun, 7)
		attach(1, c, 6)
		attach(1, d, 0)
		attach(1, tun, 8)
		macs := []frame.MAC{mac(1), mac(2), mac(3), mac(4), gateMAC}
		flows, routed, hub, dropped := 0, 0, 0, 0
		for round := range rounds {
			switch r.IntN(4) {
			case 0:
				at := all[r.IntN(len(all))]
				cfg := AttachConfig{Group: uint8(r.IntN(4)), NoLearn: r.IntN(3) == 0, Locked: r.IntN(6) == 0}
				if _, tunnel := at.Port().(*stubTunnel); tunnel && r.IntN(3) == 0 {
					cfg.Group, cfg.Hub = 0, true
				}
				if r.IntN(4) == 0 {
					cfg.Slots = []Slots{{Ingress: &judge{port: 53}}, {Egress: &judge{port: 53}}}[r.IntN(2)]
				}
				check.OK(t, at.Configure(cfg))
			case 1:
				seg := r.IntN(2)
				h := hops[seg]
				h.hop = frame.Hop{VNI: frame.VNI(1 + r.IntN(2)), Dst: macs[r.IntN(len(macs))], Src: gateMAC, Ports: r.IntN(4) == 0}
				check.OK(t, vsis[seg].Configure(VSIConfig{RouteIsolated: r.IntN(2) == 0, ForwardPinned: r.IntN(4) == 0, Slots: Slots{Gateway: h}}))
			default:
				seg := r.IntN(2)
				m := macs[r.IntN(len(macs))]
				x := places[seg][r.IntN(len(places[seg]))]
				at := x.at.Dest(x.peer)
				if m == gateMAC && r.IntN(4) > 0 {
					at = 0
				} else if x.peer != 0 && r.IntN(10) == 0 {
					at = x.at.Dest(0)
				}
				check.OK(t, vsis[seg].FDB().Set(m, at, []fdb.Flags{fdb.Static, fdb.Static, fdb.Control | fdb.Override, fdb.Filter}[r.IntN(32)/8*r.IntN(2)]))
			}
			seg := r.IntN(2)
			src, dst := macs[r.IntN(len(macs))], macs[r.IntN(len(macs))]
			x := places[seg][r.IntN(len(places[seg]))]
			if at, ok := vsis[seg].FDB().Lookup(src); ok && r.IntN(8) > 0 {
				for _, y := range places[seg] {
					if y.at.Dest(y.peer) == at {
						x = y
					}
				}
			}
			bytesOf := udp(dst, src, 4000, uint16(53+r.IntN(2)))
			p := Pair{From: x.at.Dest(x.peer), Tag: x.tag, Src: src, Dst: dst}
			p.Tuple, _ = frame.TupleOf(bytesOf)
			f, err := l.s.Flow(p)
			if err != nil && !errors.Is(err, ErrDropped) {
				continue
			}
			in := bytes.Clone(bytesOf)
			switch {
			case x.p == tun.stub:
				in = fromPeer(x.peer, frame.VNI(x.tag), in)
			case x.tag != 0:
				in = append(append(bytes.Clone(in[:12]), 0x81, 0, 0, byte(x.tag)), in[12:]...)
			}
			x.p.send(in)
			var got []frame.Out
			var by *stub
			for _, s := range []*stub{a, b, c, d, tun.stub} {
				if out := s.sent(); len(out) > 0 {
					got, by = append(got, out...), s
				}
			}
			if err != nil {
				dropped++
				flooded := len(got) == 1 && by == tun.stub && got[0].Peer == 0 // to an entry for the flood list
				check.Need(t, len(got) == 0 || flooded, "round %d: %+v is dropped, and %d frames left", round, p, len(got))
				continue
			}
			flows++
			if f.To.Port() == p.From.Port() && f.In == Port(tun) && f.Hop == (frame.Hop{}) {
				hub++
			}
			wantDst, wantSrc := dst, src
			if f.Hop != (frame.Hop{}) {
				routed++
				wantDst, wantSrc = f.Hop.Dst, f.Hop.Src
			}
			if len(got) != 1 {
				t.Fatalf("round %d: %d frames left of %+v, to %v", round, len(got), p, f.To)
			}
			o := got[0]
			out := Port(by)
			if by == tun.stub {
				out = tun
			}
			if out != f.Out || o.Peer != f.To.Peer() || o.Tag != f.OutTag || frame.MAC(o.F.Bytes()) != wantDst || frame.MAC(o.F.Bytes()[6:]) != wantSrc {
				t.Fatalf("round %d: %+v leaves by %v, peer %d, tag %d, %v from %v; the flow: %+v", round, p, by.name, o.Peer, o.Tag,
					frame.MAC(o.F.Bytes()), frame.MAC(o.F.Bytes()[6:]), f)
			}
		}
		t.Logf("%d flows, %d of them routed, %d from peer to peer of a hub; %d dropped", flows, routed, hub, dropped)
		if routed < rounds/100 || flows < rounds/20 || hub < rounds/1000 || dropped < rounds/100 {
			t.Error("hardly anything was compared")
		}
	})
}
