package vtep

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestGoldenDatagram(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	f := frame.Make(inner(5))
	o := []frame.Out{{F: &f, Peer: n, Tag: 4100}}
	check.OK(t, v.Writer(0).Write(o))
	want := append([]byte{0x08, 0, 0, 0, 0, 0x10, 0x04, 0}, inner(5)...)
	if s := u.sent[0]; !bytes.Equal(s.payload, want) || s.ttl != 64 || s.tos != 0 || !s.df || s.flow != uint16(f.Hash) || f.Hash == 0 {
		t.Errorf("%+v", s)
	}
}

func TestOuterSettings(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Header: Header{TTL: 9, TOS: 0xb8, DF: DFUnset}}, u)
	check.OK(t, v.Writer(0).Write(out(addPeer(t, v, at(1)), 1)))
	if s := u.sent[0]; s.ttl != 9 || s.tos != 0xb8 || s.df {
		t.Errorf("%+v", s)
	}
}

// A flood list of both address families is one Send for each, however many peers and
// frames.
func TestFloodOfTwoFamilies(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	flood(t, v, vni, at6(1), at(2), at6(3), at(1), at(2), local4, local6)
	want4, want6 := []netip.AddrPort{at(2), at(1)}, []netip.AddrPort{at6(1), at6(3)}
	check.Slice(t, "list", v.Flood(vni), slices.Concat(want4, want6))
	outs := out(0, 10)
	check.OK(t, v.Writer(0).Write(outs))
	if a.sends != 1 || b.sends != 1 || len(a.sent) != 10 || len(b.sent) != 10 {
		t.Fatalf("%d and %d sends, %d and %d datagrams", a.sends, b.sends, len(a.sent), len(b.sent))
	}
	for i := range outs {
		if !slices.Equal(a.sent[i].to, want4) || !slices.Equal(b.sent[i].to, want6) || outs[i].Drop != 0 {
			t.Errorf("frame %d to %v and %v: %v", i, a.sent[i].to, b.sent[i].to, outs[i].Drop)
		}
		if !bytes.Equal(a.sent[i].payload, vx(vni, inner(i))) || a.sent[i].flow != b.sent[i].flow {
			t.Errorf("frame %d: % x", i, a.sent[i].payload)
		}
	}
	// A frame for one family alone does not wake the other.
	check.OK(t, v.Writer(0).Write(out(addPeer(t, v, at6(1)), 1)))
	check.True(t, a.sends == 1 && b.sends == 2, "%d and %d sends", a.sends, b.sends)
}

func TestFloodSkips(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	flood(t, v, vni, at(1), at(2), at(3), at6(1))
	n := addPeer(t, v, at(2))
	outs := out(0, 3)
	outs[1].Skip = n
	outs[2].Skip = addPeer(t, v, at6(1))
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range [][]netip.AddrPort{{at(1), at(2), at(3)}, {at(1), at(3)}, {at(1), at(2), at(3)}} {
		check.True(t, slices.Equal(a.sent[i].to, want), "frame %d to %v", i, a.sent[i].to)
	}
	if len(b.sent) != 2 { // the third frame's only IPv6 peer is left out
		t.Errorf("%d datagrams over IPv6", len(b.sent))
	}
	flood(t, v, vni, at(2))
	outs = out(0, 1)
	outs[0].Skip = n
	check.OK(t, v.Writer(0).Write(outs))
	check.Equal(t, "nobody left", outs[0].Drop, frame.NoPeer)
}

func TestNobodyToSendTo(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	outs := out(0, 4)
	outs[1].Tag = 5 // no such network
	outs[2].Peer = 99
	outs[3].F.Kind = frame.IPv4
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range []frame.Reason{frame.NoPeer, frame.NoPeer, frame.NoPeer, frame.BadKind} {
		check.True(t, outs[i].Drop == want, "frame %d: %v, want %v", i, outs[i].Drop, want)
	}
	check.True(t, u.sends == 0, "something was sent")
}

// Drop is set when no copy has left; of a frame that left in part the lost copies are
// counted.
func TestLostCopies(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2), at(3))
	n := addPeer(t, v, at(1))
	lose := []uint16{0, 1, 3, 1, 0}
	u.send = func(ds []frame.Datagram) error {
		for i := range ds {
			if ds[i].Lost = lose[i]; lose[i] > 0 {
				ds[i].Drop = frame.Unreachable
			}
		}
		return nil
	}
	outs := out(0, 5)
	outs[3].Peer, outs[4].Peer = n, n
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range []frame.Reason{0, 0, frame.Unreachable, frame.Unreachable, 0} {
		check.True(t, outs[i].Drop == want, "frame %d: %v, want %v", i, outs[i].Drop, want)
	}
	if l := v.Stats().Lost; l[frame.Unreachable] != 1 || l.Total() != 1 {
		t.Errorf("lost %v", l)
	}
}

// With two families a frame is dropped only when neither has taken a copy.
func TestLostFamilies(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	flood(t, v, vni, at(1), at6(1))
	broken := errors.New("broken")
	all := func(why frame.Reason, err error) func([]frame.Datagram) error {
		return func(ds []frame.Datagram) error {
			for i := range ds {
				ds[i].Lost, ds[i].Drop = uint16(len(ds[i].To)), why
			}
			return err
		}
	}
	a.send = all(frame.PortDown, broken)
	outs := out(0, 1)
	if err := v.Writer(0).Write(outs); err != broken || outs[0].Drop != 0 {
		t.Errorf("%v, %v", err, outs[0].Drop)
	}
	b.send = all(frame.PortFull, nil)
	outs = out(0, 1)
	if err := v.Writer(0).Write(outs); err != broken || outs[0].Drop != frame.PortFull {
		t.Errorf("%v, %v", err, outs[0].Drop)
	}
	if l := v.Stats().Lost; l.Total() != 1 { // the copy of the frame that left in part
		t.Errorf("lost %v", l)
	}
}

// Copies of one frame that are lost for several causes are counted under each.
func TestLostForSeveralCauses(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	flood(t, v, vni, at(1), at(2), at(3), at6(1), at6(2))
	a.path(endpoint(t, at(2)), 700, nil)
	lose := func(n uint16, why frame.Reason) func([]frame.Datagram) error {
		return func(ds []frame.Datagram) error { ds[0].Lost, ds[0].Drop = n, why; return nil }
	}
	a.send, b.send = lose(1, frame.Unreachable), lose(2, frame.PortFull)
	f := frame.Make(append(inner(1), make([]byte, 700)...))
	o := []frame.Out{{F: &f, Tag: vni}}
	check.OK(t, v.Writer(0).Write(o))
	l := v.Stats().Lost
	if o[0].Drop != 0 || l[frame.TooBig] != 1 || l[frame.Unreachable] != 1 || l[frame.PortFull] != 2 || l.Total() != 4 {
		t.Errorf("%v, lost %v", o[0].Drop, l)
	}
	a.send = lose(2, frame.Unreachable)
	check.OK(t, v.Writer(0).Write(o))
	if o[0].Drop != frame.PortFull || v.Stats().Lost != l {
		t.Errorf("to nobody: %v, lost %v", o[0].Drop, v.Stats().Lost)
	}
}

// A frame may be on its way out of other ports: the writer does not touch its bytes,
// nor those around it.
func TestWriterLeavesFramesAlone(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2))
	buf := bytes.Repeat([]byte{0xaa}, 64)
	buf = append(append(buf, inner(1)...), bytes.Repeat([]byte{0xbb}, 64)...)
	was := bytes.Clone(buf)
	f := frame.Over(buf, 64, len(buf)-64)
	outs := []frame.Out{{F: &f, Tag: vni}, {F: &f, Peer: addPeer(t, v, at(3)), Tag: 7}, {F: &f, Tag: vni, Skip: addPeer(t, v, at(1))}}
	check.OK(t, v.Writer(0).Write(outs))
	if !bytes.Equal(buf, was) || f.Headroom() != 64 || f.Len() != len(inner(1)) {
		t.Error("the frame has changed")
	}
	for i, n := range []frame.VNI{vni, 7, vni} {
		check.True(t, bytes.Equal(u.sent[i].payload, vx(n, inner(1))), "% x", u.sent[i].payload)
	}
}

// A hash that is there already is used: a stage may have set it.
func TestWriterKeepsHash(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	outs := out(addPeer(t, v, at(1)), 1)
	outs[0].F.Hash = 0x12345678
	check.OK(t, v.Writer(0).Write(outs))
	check.True(t, u.sent[0].flow == 0x5678 && outs[0].F.Hash == 0x12345678, "%+v", u.sent[0])
}

// More frames at once than a batch has, and after a batch with many, one with few.
func TestWriterGrows(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	w := v.Writer(0)
	for _, k := range []int{1, 200, 3, 0, 64} {
		u.sent = nil
		check.OK(t, w.Write(out(n, k)))
		check.Need(t, len(u.sent) == k, "%d of %d", len(u.sent), k)
		for i := range u.sent {
			if !bytes.Equal(u.sent[i].payload, vx(vni, inner(i))) {
				t.Fatalf("frame %d of %d: % x", i, k, u.sent[i].payload)
			}
		}
	}
}

// Every frame and every copy is in exactly the counters it belongs to.
func TestStatsAreExact(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	flood(t, v, vni, at(1), at(2), at(3))
	p := []uint16{0, addPeer(t, v, at(1)), addPeer(t, v, at(2)), addPeer(t, v, at(3))}
	w := v.Writer(0)
	// Runs and changes: 2 floods, 3 floods without 2, 1 to peer 1, 2 to peer 3, 1 flood, 1 to peer 1.
	way := []struct{ peer, skip uint16 }{{}, {}, {0, p[2]}, {0, p[2]}, {0, p[2]}, {p[1], 0}, {p[3], 0}, {p[3], 0}, {}, {p[1], 0}}
	outs := out(0, len(way))
	for i := range outs {
		outs[i].Peer, outs[i].Skip = way[i].peer, way[i].skip
	}
	check.OK(t, w.Write(outs))
	check.OK(t, w.Write(out(p[2], 4)))

	r := v.Readers()[0]
	for i, from := range []int{1, 1, 2, 1, 3, 3, 3, 2} {
		u.in = append(u.in, packetIn{src: endpoint(t, at(from)), data: vx(vni, inner(i))})
	}
	u.in = append(u.in, packetIn{src: endpoint(t, at(1)), data: vx(5, inner(9))}, // unknown VNI: not counted
		packetIn{src: endpoint(t, at(1)), data: vx(vni, inner(9)), drop: frame.TooBig})
	check.OK(t, r.Read(frame.NewBatch(nil)))
	u.hear(t, r, at(2), vx(vni, inner(1)))

	for _, s := range v.Stats().Peers {
		want := map[uint16][2]uint64{p[1]: {3, 6 + 2}, p[2]: {3, 3 + 4}, p[3]: {3, 6 + 2}}[s.Peer]
		if s.Rx.Frames != want[0] || s.Tx.Frames != want[1] || !s.Listed {
			t.Errorf("%v: rx %d tx %d, want %v", s.Addr, s.Rx.Frames, s.Tx.Frames, want)
		}
	}
	total := 0
	for _, s := range u.sent {
		total += len(s.to)
	}
	check.True(t, total == 8+7+8, "%d copies", total)
}

func TestWriterAllocatesNothing(t *testing.T) {
	a, b := fake4(), fake6()
	a.send = func(ds []frame.Datagram) error { return nil }
	b.send = a.send
	v := newVTEP(t, nil, a, b)
	var peers []netip.AddrPort
	for i := range 100 {
		peers = append(peers, at(i+1), at6(i+1))
	}
	flood(t, v, vni, peers...)
	n := addPeer(t, v, at(1))
	g := check.Must(v.Group(n, addPeer(t, v, at6(2))))(t)
	w, outs := v.Writer(0), out(0, frame.MaxBatch)
	for i := range outs {
		outs[i].Peer = []uint16{0, n, g, 0, 999}[i%5]
		if i%5 == 3 {
			outs[i].Skip = n
		}
	}
	if k := testing.AllocsPerRun(100, func() {
		for i := range outs {
			outs[i].F.Hash = 0
		}
		check.OK(t, w.Write(outs))
	}); k != 0 {
		t.Errorf("%v allocations", k)
	}
}
