package node

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

type counted struct{ n *int }

func (o *counted) Close() error { *o.n--; return nil }

// TestDatapath: the offload is open as the configuration says, and auto is content without one.
func TestDatapath(t *testing.T) {
	open, fails := 0, error(nil)
	n := check.Must(New(&Options{Offload: func(sw *vswitch.Switch) (io.Closer, error) {
		if fails != nil {
			return (*counted)(nil), fails // as func() (io.Closer, error) { return offload.New(sw, nil) }
		}
		open++
		return &counted{&open}, nil
	}}))(t)
	for _, x := range []struct {
		set   Datapath
		fails error
		is    Datapath
		why   bool // auto says why not
		err   bool
	}{
		{DatapathUser, nil, DatapathUser, false, false},
		{DatapathKernel, nil, DatapathKernel, false, false},
		{DatapathAuto, errors.New("not asked"), DatapathKernel, false, false},
		{DatapathUser, nil, DatapathUser, false, false},
		{DatapathAuto, errors.New("no tcx"), DatapathUser, true, false},
		{DatapathKernel, errors.New("no tcx"), DatapathUser, true, true},
		{DatapathAuto, nil, DatapathKernel, false, false},
		{DatapathAuto, nil, DatapathKernel, false, false},
	} {
		fails = x.fails
		before := n.Config().Datapath
		err := n.Apply(&Config{Datapath: x.set})
		if (err != nil) != x.err || err != nil && (!errors.Is(err, x.fails) || err.Error() != `datapath: "kernel": no tcx`) {
			t.Errorf("%v: %v", x.set, err)
		}
		is, why := n.Datapath()
		if is != x.is || (why != nil) != x.why || open != int(x.is) || (n.Offload() != nil) != (open == 1) {
			t.Errorf("%v: is %v, %v; %d open", x.set, is, why, open)
		}
		if want := x.set; n.Config().Datapath != want && !(x.err && n.Config().Datapath == before) {
			t.Errorf("configured is %v", n.Config().Datapath)
		}
	}
	check.OK(t, n.Close())
	if open != 0 {
		t.Error("open after Close")
	}

	n = check.Must(New(nil))(t)
	defer n.Close()
	if err := n.Apply(&Config{Datapath: DatapathKernel}); err == nil || !strings.Contains(err.Error(), "this program has no offload") {
		t.Errorf("without Options.Offload: %v", err)
	}
	check.OK(t, n.Apply(&Config{Datapath: DatapathAuto}))
	if is, why := n.Datapath(); is != DatapathUser || why == nil {
		t.Errorf("is %v, %v", is, why)
	}
}
