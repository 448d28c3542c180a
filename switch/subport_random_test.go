package vswitch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// place is an attachment of a model: those of two trunks, by plain Go.
type place struct {
	a    *Attachment
	port int
	vni  frame.VNI
	tag  uint32
	src  byte // that it matches; 0 = all
}

// TestAttachmentsRandom: attachments with and without Match come and go in any order, with their segments. A broadcast reaches what a model
// says, an address is learned where it came in, and every frame is counted.
func TestAttachmentsRandom(t *testing.T) {
	for seed := range uint64(20) {
		inLab(t, func(l *lab) { randomAttachments(t, l, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomAttachments(t *testing.T, l *lab, r *rand.Rand) {
	var all []place
	trunks := []*stub{newStub("x"), newStub("y")}
	keep := check.Must(l.s.VSI(9, nil))(t) // so that the trunks stay
	for _, p := range trunks {
		check.Must(keep.Attach(p, 99))(t)
	}
	tagsOf := []uint32{0, 10, 20, frame.ServiceTag | 20}
	for range 150 {
		switch op := r.IntN(10); {
		case op < 5:
			x := place{port: r.IntN(2), vni: frame.VNI(1 + r.IntN(3)), tag: tagsOf[r.IntN(4)], src: byte(r.IntN(4))}
			cfg := &AttachConfig{}
			if n := x.src; n != 0 {
				cfg.Match = matchFunc(func(f *frame.Frame) bool { return f.Bytes()[11] == n })
			}
			taken := slices.ContainsFunc(all, func(y place) bool {
				return y.port == x.port && y.tag == x.tag && (y.vni == x.vni || y.src == 0 && x.src == 0)
			})
			v := check.Must(l.s.VSI(x.vni, nil))(t)
			a, err := v.AttachWith(trunks[x.port], x.tag, cfg)
			if errors.Is(err, ErrTagTaken) != taken || err != nil && !taken {
				t.Fatalf("%+v: %v, taken %v", x, err, taken)
			}
			if x.a = a; err == nil {
				all = append(all, x)
			}
		case op < 8 && len(all) > 0:
			i := r.IntN(len(all))
			check.OK(t, all[i].a.Detach())
			all = slices.Delete(all, i, i+1)
		case op == 8:
			vni := frame.VNI(1 + r.IntN(3))
			check.OK(t, check.Must(l.s.VSI(vni, nil))(t).Delete())
			all = slices.DeleteFunc(all, func(y place) bool { return y.vni == vni })
		default:
			check.OK(t, l.s.FlushPort(trunks[r.IntN(2)]))
		}
		broadcast(t, l, r, trunks, all, tagsOf)
	}
	for _, x := range all {
		check.OK(t, x.a.Detach())
	}
	check.Equal(t, "ports left", len(l.s.Stats().Ports), 3)
	n := 0
	for _, p := range *l.s.ports.Load() {
		if p != nil {
			n++
		}
	}
	check.Equal(t, "numbers left", n, 3)
	for _, p := range l.s.Stats().Ports[1:] {
		check.Equal(t, "accepted and dropped", p.Accepted.Frames+p.RxDrops.Total(), p.Rx.Frames)
		check.Equal(t, "flooded", p.Flood.Broadcast, p.Accepted.Frames)
	}
}

// broadcast sends one frame, and compares where it goes with the model.
func broadcast(t *testing.T, l *lab, r *rand.Rand, trunks []*stub, all []place, tagsOf []uint32) {
	t.Helper()
	from, tag, src := r.IntN(2), tagsOf[r.IntN(4)], byte(1+r.IntN(4))
	var in *place
	for i := range all {
		x := &all[i]
		if x.port != from || x.tag != tag || x.src != 0 && x.src != src {
			continue
		}
		if in == nil || in.src == 0 || x.src != 0 && x.vni < in.vni {
			in = x
		}
	}
	b := eth(frame.Broadcast, frame.MAC{2, 0, 0, 0, 0, src}, 0x800)
	switch {
	case tag&frame.ServiceTag != 0:
		b = tagged(0x88a8, uint16(tag), b)
	case tag != 0:
		b = tagged(0x8100, uint16(tag), b)
	}
	trunks[0].sent()
	trunks[1].sent()
	trunks[from].send(b)
	var want, got []string
	for _, y := range all {
		if in != nil && y.vni == in.vni && y.a != in.a {
			want = append(want, fmt.Sprintf("%d/%#x", y.port, y.tag))
		}
	}
	for i, p := range trunks {
		for _, o := range p.sent() {
			got = append(got, fmt.Sprintf("%d/%#x", i, o.Tag))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("from %d/%#x, MAC %d, in %+v: %s, want %s", from, tag, src, in, strings.Join(got, " "), strings.Join(want, " "))
	}
	if in != nil {
		if e, ok := in.a.vsi.FDB().Get(frame.MAC{2, 0, 0, 0, 0, src}); !ok || e.Dest != in.a.Dest(0) {
			t.Fatalf("learned at %v, %v; want %v", e.Dest, ok, in.a.Dest(0))
		}
	}
}
