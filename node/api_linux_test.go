package node

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
)

// The shortest program that is a tunnel with a TAP, opened without settings: TCP at full size
// goes to a kernel's vxlan device and back, since the TAP gets the MTU that fits.
func TestProgram(t *testing.T) {
	l := newLab(t)
	s := l.plug("one", "192.0.2.1")
	far := l.n.Host("far")
	l.n.Plug(far, "192.0.2.2/24", l.wire)
	far.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: "10.0.100.2/24", Keep: true})
	s.Node = running(t)
	s.h.Do(func() {
		v, err := s.Tunnel("vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
		must(t, err)
		seg, err := s.Segment(100, nil)
		must(t, err)
		must(t, seg.Join(v, netip.MustParseAddr("192.0.2.2")))
		tap, err := port.OpenTAP("tap0", nil)
		must(t, err)
		must(t, seg.Add(tap, nil))
		must(t, seg.Gateway("tenant", Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.100.254/24")}}))
	})
	s.h.Addr("tap0", "10.0.100.1/24")
	s.h.Ping("10.0.100.2", 3)
	s.h.Ping("10.0.100.254", 3)
	if got := s.h.IP("link", "show", "tap0"); !strings.Contains(got, " mtu 1450 ") {
		t.Error(got)
	}
	for _, args := range [][]string{{"-n", "20M"}, {"-n", "20M", "-R"}} {
		if got := s.h.IPerf(far, "10.0.100.2", args...); got.Bytes < 5_000_000 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// What a caller does to a Config that it got or gave is nothing to the node.
func TestClone(t *testing.T) {
	cfg := parse(t, first)
	n := running(t)
	must(t, n.Apply(cfg))
	want := setting.Clone(cfg)
	if !reflect.DeepEqual(cfg, want) || !reflect.DeepEqual(n.Config(), want) {
		t.Fatal("a copy differs")
	}
	got := n.Config()
	for _, c := range []*Config{cfg, got} {
		for _, v := range settingsOf(reflect.ValueOf(c).Elem()) {
			v.SetZero()
		}
	}
	if !reflect.DeepEqual(n.Config(), want) {
		t.Errorf("%+v", n.Config())
	}
}
