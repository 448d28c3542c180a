package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestMarking: the kernel inherits the outer DSCP or has a fixed one, by tunnel and by VNI. Flows whose outer DSCP is made of the frames'
// priority, or is used on receipt, stay with user space, and a change voids what is carried.
func TestMarking(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	out, in := r.hosts(r.dests[0], r.dests[3]), r.pair(r.dests[3], macB, macA)
	h.Do(func() {
		for _, c := range []struct {
			m       vtep.Marking
			out, in bool
			tos     uint8
			inherit bool
		}{
			{out: true, in: true},
			{m: vtep.Marking{TOS: 0xb8}, out: true, in: true, tos: 0xb8},
			{m: vtep.Marking{TOS: vtep.Inherit, DSCP: vtep.DSCPKeep}, out: true, in: true, inherit: true},
			{m: vtep.Marking{TOS: vtep.FromPriority}, in: true},
			{m: vtep.Marking{DSCP: vtep.DSCPInherit}, out: true},
			{m: vtep.Marking{TOS: vtep.FromPriority, DSCP: vtep.DSCPPriority}},
			{m: vtep.Marking{TOS: vtep.TOSZero}, out: true, in: true},
		} {
			check.OK(t, r.v.SetMarking(vni, c.m))
			check.True(t, c.m == vtep.Marking{} || !r.carried(out) && !r.carried(in), "%+v: carried by the old decision", c.m)
			for p, carried := range map[vswitch.Pair]bool{out: c.out, in: c.in} {
				r.o.renew()
				_, how, _, err := r.o.decide(p)
				if carried && err != nil || !carried && err != errMarking {
					t.Errorf("%+v, from %v: %v", c.m, p.From, err)
				}
				if p == out && carried && (how.flow.Outer.TOS != c.tos || how.flow.Outer.TOSIn != c.inherit) {
					t.Errorf("%+v: TOS %#x, inherited %v", c.m, how.flow.Outer.TOS, how.flow.Outer.TOSIn)
				}
				clear(r.o.refused)
				r.o.offer(p)
				check.True(t, r.carried(p) == carried, "%+v: %v is carried: %v", c.m, p, !carried)
			}
		}
		check.True(t, check.Must(r.o.Stats())(t).Refused["marking"] > 0, "nothing is refused for its marking")
		check.OK(t, r.o.Close())
	})
}
