package capture_test

import (
	"errors"
	"io"
	"testing"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestWatched: a switch is watched as long as any file of any capture is open.
func TestWatched(t *testing.T) {
	open := func() (*vswitch.Switch, func() bool) {
		sw := check.Must(vswitch.New(nil))(t)
		t.Cleanup(func() { sw.Close() })
		v := check.Must(sw.VSI(1, nil))(t)
		p := vswitch.Pair{Src: frame.MAC{2, 1}, Dst: frame.MAC{2, 2}}
		for i, m := range []frame.MAC{p.Src, p.Dst} {
			a := check.Must(v.Attach(port.NewPipe(nil), 0))(t)
			check.OK(t, v.FDB().Set(m, a.Dest(0), fdb.Static))
			if i == 0 {
				p.From = a.Dest(0)
			}
		}
		return sw, func() bool {
			_, err := sw.Flow(p)
			if err != nil && !errors.Is(err, vswitch.ErrWatched) {
				t.Fatal(err)
			}
			return err != nil
		}
	}
	s1, watched1 := open()
	s2, watched2 := open()
	want := func(what string, one, two bool) {
		t.Helper()
		if watched1() != one || watched2() != two {
			t.Errorf("%s: %v and %v are watched", what, watched1(), watched2())
		}
	}
	want("at first", false, false)
	a, b := check.Must(capture.New(nil))(t), check.Must(capture.New(nil))(t)
	a.Segments(s1)
	b.Segments(s1)
	fa, fb := check.Must(a.Open(io.Discard, nil))(t), check.Must(b.Open(io.Discard, nil))(t)
	want("two captures", true, false)
	check.OK(t, fb.Stop())
	want("one capture", true, false)
	a.Segments(s2)
	want("of another switch", false, true)
	a.Segments(s2)
	want("still", false, true)
	check.OK(t, fa.Stop())
	want("no capture", false, false)
	check.OK(t, a.Close())
	check.OK(t, b.Close())
}

// told is an Offload that counts how often all decisions were void.
type told struct{ all int }

func (*told) Hint(vswitch.Pair) {}
func (*told) Settle()           {}

func (o *told) Changed(_ frame.VNI, mac frame.MAC) {
	if mac.IsZero() {
		o.all++
	}
}

// TestSegmentsNoMore: flows past the ports of a capture end when it is the switch's no more, which is not told of files then.
func TestSegmentsNoMore(t *testing.T) {
	sw, other := check.Must(vswitch.New(nil))(t), check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	defer other.Close()
	o := &told{}
	check.OK(t, sw.SetOffload(o))
	for _, next := range []*vswitch.Switch{nil, other} {
		c := check.Must(capture.New(nil))(t)
		c.Segments(sw)
		o.all = 0
		c.Segments(sw)
		check.Equal(t, "void, still of the switch", o.all, 0)
		c.Segments(next)
		check.Equal(t, "void", o.all, 1)
		f := check.Must(c.Open(io.Discard, nil))(t)
		check.OK(t, f.Stop())
		check.OK(t, c.Close())
	}
}
