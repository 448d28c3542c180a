package vswitch

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A port gets of each frame what it takes as it is, and the rest done.
func TestOffloads(t *testing.T) {
	for _, k := range flows() {
		segments := k.segments(t, 5, 1400)
		lone := k.segments(t, 1, 333)[0]
		for takes := range 2 * frame.OffloadVLAN {
			for _, tag := range []uint32{0, 0x123} {
				if k.bare {
					takes |= frame.IPOnly
					tag = 0
				}
				p := &far{takes: takes}
				p.mtu = 1514
				w, _ := to(p)
				plain := frame.Make(lone)
				plain.Kind = k.kind()
				out := []frame.Out{{F: &plain, Tag: tag}, {F: k.super(t, segments), Tag: tag}, {F: k.unfinished(t, lone), Tag: tag}, {F: &plain, Tag: tag}}
				before := bytes.Clone(out[1].F.Bytes())
				check.OK(t, w.Write(out))
				name := fmt.Sprintf("%v, takes %b, tag %d", k, takes, tag)
				for i := range out {
					check.True(t, out[i].Drop == frame.NotDropped, "%s: %d dropped: %v", name, i, out[i].Drop)
				}
				frames := 3
				if g := out[1].F.GSO; takes.Take(g) {
					frames++
				} else {
					frames += len(segments)
				}
				check.True(t, len(p.got) == frames, "%s: %d frames, want %d", name, len(p.got), frames)
				var want [][]byte
				for _, s := range append(append([][]byte{lone}, segments...), lone, lone) {
					want = append(want, tag8021Q(s, tag))
				}
				got := plainly(t, p.got)
				check.Need(t, len(got) == len(want), "%s: %d segments, want %d", name, len(got), len(want))
				for i := range want {
					if !bytes.Equal(got[i], want[i]) {
						t.Errorf("%s: segment %d:\n got %.100x\nwant %.100x", name, i, got[i], want[i])
					}
				}
				for _, o := range p.got {
					if !takes.Take(o.F.GSO) || o.F.Kind != k.kind() || o.Tag != 0 && takes&frame.OffloadVLAN == 0 {
						t.Errorf("%s: got %+v of kind %d, tag %d", name, o.F.GSO, o.F.Kind, o.Tag)
					}
				}
				if o := p.got[1]; o.F.VNI != 5 || o.F.From != frame.NewDest(3, 4) || o.F.Hash != 77 {
					t.Errorf("%s: VNI %d, from %v, hash %d", name, o.F.VNI, o.F.From, o.F.Hash)
				}
				if out[0].Tag != tag || !bytes.Equal(out[1].F.Bytes(), before) {
					t.Errorf("%s: what came in was changed", name)
				}
			}
		}
	}
}

// Nothing stands between a worker and a port that takes everything.
func TestOffloadsAll(t *testing.T) {
	for _, takes := range []frame.Offloads{frame.OffloadAll, frame.OffloadAll | frame.IPOnly} {
		p := &far{takes: takes}
		if w, x := to(p); w != frame.Writer(p) || x.adapter != nil {
			t.Errorf("takes %b: %T", takes, w)
		}
	}
}

// What cannot be made fit is dropped under a name, and the others go.
func TestUnfitFrames(t *testing.T) {
	k := flow{}
	segments := k.segments(t, 3, 1460)
	good := frame.Make(segments[0])
	with := func(f *frame.Frame, change func(f *frame.Frame)) *frame.Frame {
		c := f.Clone()
		change(&c)
		return &c
	}
	long := k.super(t, k.segments(t, 3, 1461))
	tagged := flow{vlan: 9}.super(t, flow{vlan: 9}.segments(t, 3, 1460))
	for _, c := range []struct {
		name string
		f    *frame.Frame
		tag  uint32
		want frame.Reason
	}{
		{"superframe", k.super(t, segments), 0, 0},
		{"superframe, tag", k.super(t, segments), 5, 0},
		{"superframe with a tag", tagged, 0, 0},
		{"segments of 1515 bytes", long, 0, frame.TooBig},
		{"1515 bytes", with(&good, func(f *frame.Frame) { *f = frame.Make(make([]byte, 1515)) }), 5, frame.TooBig},
		{"IP", with(&good, func(f *frame.Frame) { f.Pull(14); f.Kind = frame.IPv4 }), 0, frame.BadKind},
		{"13 bytes", with(&good, func(f *frame.Frame) { f.Trim(13) }), 0, frame.Short},
		{"no size", with(k.super(t, segments), func(f *frame.Frame) { f.GSO.Size = 0; f.Trim(1514) }), 0, frame.BadHeader},
		{"another type", with(k.super(t, segments), func(f *frame.Frame) { f.GSO.Type = frame.GSOTCP6 }), 0, frame.BadHeader},
		{"unknown type", with(k.super(t, segments), func(f *frame.Frame) { f.GSO.Type = 77 }), 7, frame.BadHeader},
		{"checksum in an address", with(&good, func(f *frame.Frame) {
			f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: frame.Headroom, CsumOffset: 4}
		}), 7, frame.BadHeader},
	} {
		p := &far{}
		p.mtu = 1514
		w, _ := to(p)
		out := []frame.Out{{F: &good}, {F: c.f, Tag: c.tag}, {F: &good}}
		if err := w.Write(out); err != nil || out[0].Drop != 0 || out[1].Drop != c.want || out[2].Drop != 0 {
			t.Errorf("%s: %v; %v, %v, %v; want %v", c.name, err, out[0].Drop, out[1].Drop, out[2].Drop, c.want)
		}
		if c.want != 0 && len(p.got) != 2 || c.want == 0 && len(p.got) != 6 {
			t.Errorf("%s: %d frames", c.name, len(p.got))
		}
	}
	p := &far{takes: frame.IPOnly}
	p.mtu = 1500
	w, _ := to(p)
	ip := with(&good, func(f *frame.Frame) { f.Pull(14); f.Kind = frame.IPv4 })
	out := []frame.Out{{F: ip}, {F: &good}, {F: ip, Tag: 5}, {F: with(ip, func(f *frame.Frame) { f.Extend(0); f.Trim(1499) })}}
	if err := w.Write(out); err != nil || out[0].Drop != 0 || out[1].Drop != frame.BadKind || out[2].Drop != frame.BadKind || out[3].Drop != 0 || len(p.got) != 2 {
		t.Errorf("IP only: %v; %v, %v, %v, %v; %d frames", err, out[0].Drop, out[1].Drop, out[2].Drop, out[3].Drop, len(p.got))
	}
}

// More segments than a batch holds: they leave in order. One of which a part is lost is dropped,
// and when the port breaks, so is what was not written.
func TestOffloadsInParts(t *testing.T) {
	k := flow{udp: true}
	segments := k.segments(t, 100, 200)
	send := func(p *far) []frame.Out {
		p.mtu = 1514
		w, _ := to(p)
		plain := frame.Make(segments[0])
		out := []frame.Out{{F: &plain}, {F: k.super(t, segments)}, {F: k.super(t, segments)}, {F: &plain}}
		if err := w.Write(out); err != p.err {
			t.Errorf("%v, want %v", err, p.err)
		}
		return out
	}
	p := &far{}
	out := send(p)
	if len(p.got) != 2*len(segments)+2 || p.writes > 5 {
		t.Errorf("%d frames in %d writes", len(p.got), p.writes)
	}
	for i, o := range p.got[1 : 2*len(segments)+1] {
		if !bytes.Equal(o.F.Bytes(), segments[i%len(segments)]) || out[1].Drop != 0 {
			t.Fatalf("frame %d is another", i)
		}
	}
	p = &far{refuse: map[int]frame.Reason{90: frame.PortFull}}
	if out = send(p); out[0].Drop != 0 || out[1].Drop != frame.PortFull || out[2].Drop != 0 || out[3].Drop != 0 {
		t.Errorf("%v, %v, %v, %v", out[0].Drop, out[1].Drop, out[2].Drop, out[3].Drop)
	}
	p = &far{err: errors.New("broken")}
	for i, o := range send(p) {
		check.True(t, o.Drop == frame.PortDown, "%d: %v", i, o.Drop)
	}
	check.Equal(t, "writes to a broken port", p.writes, 1)
}

// A tunnel of another make has kinds, tags and MTUs of its own; what it does not take is cut for it
// too.
func TestOffloadsOfATunnel(t *testing.T) {
	p := farTunnel{&far{}}
	p.mtu = 100
	w, _ := to(p)
	k, bare := flow{}, flow{bare: true}
	out := []frame.Out{{F: k.super(t, k.segments(t, 3, 1400)), Tag: 1 << 20, Peer: 3}, {F: bare.super(t, bare.segments(t, 3, 1400)), Tag: 7}}
	if err := w.Write(out); err != nil || out[0].Drop != 0 || out[1].Drop != 0 || len(p.got) != 8 {
		t.Fatalf("%v, %v, %v, %d frames", err, out[0].Drop, out[1].Drop, len(p.got))
	}
	for i, o := range p.got {
		if o.Tag != out[i/4].Tag || o.Peer != out[i/4].Peer || o.F.Kind != out[i/4].F.Kind || o.F.GSO != (frame.GSO{}) {
			t.Errorf("frame %d: tag %d, peer %d, kind %d, %+v", i, o.Tag, o.Peer, o.F.Kind, o.F.GSO)
		}
	}
}

type farTunnel struct{ *far }

func (f farTunnel) Control() frame.TunnelControl { return f }
func (farTunnel) Tell(func(frame.Event))         {}
func (farTunnel) Peers() []uint16                { return nil }

func (farTunnel) Open(uint32) error { return nil }

func (farTunnel) Shut(uint32) {}

func (farTunnel) Retire(func(uint16) bool) []uint16 { return nil }

func (farTunnel) Free([]uint16) {}

func (farTunnel) PeerName(uint16) string { return "" }

func TestOffloadsAllocateNothing(t *testing.T) {
	k := flow{}
	segments := k.segments(t, 44, 1400)
	plain := frame.Make(segments[0])
	out := []frame.Out{{F: &plain}, {F: k.super(t, segments)}, {F: k.super(t, segments), Tag: 7}, {F: k.unfinished(t, segments[0])}}
	w, x := to(&plainSink{sink{newStub("sink")}})
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { w.Write(out) }), 0)
	if out[1].Drop != 0 || out[2].Drop != 0 || x.adapter.batch.Frames != nil {
		t.Errorf("%v, %v, %d frames kept", out[1].Drop, out[2].Drop, len(x.adapter.batch.Frames))
	}
}

type plainSink struct{ sink }

func (*plainSink) Offloads() frame.Offloads { return 0 }

// Whatever a frame's metadata says, a port that says nothing gets ordinary frames or none, and
// what can be read of them is right.
func FuzzOffloads(f *testing.F) {
	for i, k := range flows() {
		s := k.super(f, k.segments(f, 3, 100))
		f.Add(s.Bytes(), uint8(i), s.GSO.Flags, uint8(s.GSO.Type), s.GSO.Size, s.GSO.CsumStart, s.GSO.CsumOffset, s.GSO.DataStart, uint8(k.kind()), uint16(i%2*5))
	}
	f.Fuzz(func(t *testing.T, packet []byte, takes, flags, typ uint8, size, start, offset, data uint16, kind uint8, tag uint16) {
		x := frame.Make(packet)
		x.Kind = frame.Kind(kind % 3)
		x.GSO = frame.GSO{Flags: flags, Type: frame.GSOType(typ), Size: size, CsumStart: start, CsumOffset: offset, DataStart: data}
		if x.Drop = gso.Check(&x); x.Drop != frame.NotDropped {
			return
		}
		p := &far{takes: frame.Offloads(takes) & (frame.OffloadAll | frame.IPOnly)}
		p.mtu = 1514
		w, _ := to(p)
		before := bytes.Clone(x.Bytes())
		out := []frame.Out{{F: &x, Tag: uint32(tag & 0xfff)}}
		check.OK(t, w.Write(out))
		if p.takes&frame.OffloadAll == frame.OffloadAll {
			return
		}
		if (out[0].Drop == frame.NotDropped) != (len(p.got) > 0) {
			t.Fatalf("%v, and %d frames", out[0].Drop, len(p.got))
		}
		for _, o := range p.got {
			if !p.takes.Take(o.F.GSO) || o.Tag != 0 && p.takes&frame.OffloadVLAN == 0 || o.F.SegLen() > 1514+4 || x.Kind == frame.Ethernet && o.F.Len() < 14 ||
				(o.F.Kind != frame.Ethernet) != (p.takes&frame.IPOnly != 0) {
				t.Fatalf("takes %b: got %d bytes of kind %d, %+v, tag %d", p.takes, o.F.Len(), o.F.Kind, o.F.GSO, o.Tag)
			}
		}
		check.Need(t, bytes.Equal(x.Bytes(), before), "the frame was changed")
		if len(p.got) == 0 {
			return
		}
		got, want := plainly(t, p.got), plainly(t, out)
		check.Need(t, len(got) == len(want), "%d frames, want %d", len(got), len(want))
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d of %d: %x, want %x", i, len(got), got[i], want[i])
			}
		}
	})
}

// Through a switch: a superframe that is flooded goes whole to a port that takes it, in segments to
// one that says nothing, and what does not fit there is counted under its name.
func TestOffloadsOnASwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := check.Must(New(nil))(t)
		vsi := check.Must(sw.VSI(1, nil))(t)
		all, none, ip := &far{stub: stub{mtu: 1514}, takes: frame.OffloadAll}, &far{stub: stub{mtu: 1514}}, &far{stub: stub{mtu: 1514}, takes: frame.IPOnly}
		for _, p := range []*far{all, none, ip} {
			p.in, p.end, p.stub.err = make(chan [][]byte), make(chan struct{}), net.ErrClosed
			check.Must(vsi.Attach(p, 0))(t)
		}
		go sw.Run(t.Context())
		k := flow{}
		segments := k.segments(t, 5, 1400)
		f := k.super(t, segments)
		f.From = 0
		check.Need(t, sw.Inject(vsi, f), "not injected")
		synctest.Wait()
		if len(all.got) != 1 || all.got[0].F.GSO.Type != frame.GSOTCP4 || len(ip.got) != 0 {
			t.Errorf("%d frames to a port that takes all, %d to one of IP packets", len(all.got), len(ip.got))
		}
		if len(none.got) != len(segments) {
			t.Fatalf("%d frames to a port that says nothing, want %d", len(none.got), len(segments))
		}
		for i, o := range none.got {
			check.True(t, bytes.Equal(o.F.Bytes(), segments[i]), "segment %d is another", i)
		}
		if n := sw.Stats().Ports[3].TxDrops[frame.BadKind]; n != 1 {
			t.Errorf("%d dropped as %v, want 1", n, frame.BadKind)
		}
		sw.Close()
	})
}
