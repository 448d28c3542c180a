package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
)

// Next hops of a prefix have weights. A row with another weight replaces the old one in one update.
func TestWeight(t *testing.T) {
	l := newLeaf(t, control.Config{})
	row := func(n byte, weight uint8) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(n), VTEP: at(n), Weight: weight}}
	}
	weights := func(want ...uint8) {
		t.Helper()
		r, _ := l.gw.VRF("red").Route(pfx("10.1.0.0/16"))
		var got []uint8
		for _, h := range r.Via {
			got = append(got, h.Weight)
		}
		if !slices.Equal(got, want) {
			t.Errorf("weights %v, want %v", got, want)
		}
	}
	l.add("bgp", row(7, 0), row(8, 3))
	weights(0, 3)
	l.add("bgp", row(7, 2), row(7, 9)) // and as it was: the largest counts
	weights(9, 3)
	l.must(l.Program("bgp", control.Update{Del: []control.Row{row(7, 0), row(7, 9)}}))
	weights(2, 3)
	l.add("static", row(7, 5), row(9, 1)) // of an owner that comes after: its weights are not mixed with the first's
	weights(2, 3)
	l.Forget("bgp")
	weights(5, 1)
	none := control.Prefix{VRF: "red", Prefix: pfx("10.2.0.0/16"), Via: control.Via{Weight: 1}}
	if err := l.Program("bgp", control.Update{Add: []control.Row{none}}); err == nil || !strings.Contains(err.Error(), "Prefix.Via.Weight: requires a next hop") {
		t.Error(err)
	}
}
