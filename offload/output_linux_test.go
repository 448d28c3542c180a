package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// passes is a stage that lets every frame pass.
type passes struct{}

func (passes) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Continue }

// oneWay has frames from tap0 to tap1 carried, but not those from tap1.
func oneWay(t *testing.T, h *netns.Host) (r *rig, p vswitch.Pair) {
	t.Helper()
	r = newRig(t, h)
	p = r.hosts(r.dests[0], r.dests[1])
	check.OK(t, r.at[1].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: passes{}}}))
	r.o.ended.Go(r.o.run)
	t.Cleanup(func() { check.OK(t, r.o.Close()) })
	r.o.Hint(p)
	h.Until("a frame is carried", func() bool {
		h.Inject("tap0", numbered(macA, macB, 1))
		return check.Must(r.o.Stats())(t).Carried.Frames > 0
	})
	return r, p
}

// TestOutputMovedAway: a flow ends when the device that its frames leave by is moved, also if nothing that comes from there is
// carried.
func TestOutputMovedAway(t *testing.T) {
	h := rigHost(t)
	r, _ := oneWay(t, h)
	other := netns.New(t).Host("other")
	h.IP("link", "set", "tap1", "netns", other.NS)
	h.Until("the flow is gone", func() bool { h.Inject("tap0", numbered(macA, macB, 2)); return check.Must(r.o.Stats())(t).Flows == 0 })
}

// TestOutputMTU: a smaller MTU of the device that frames leave by is followed.
func TestOutputMTU(t *testing.T) {
	h := rigHost(t)
	r, p := oneWay(t, h)
	h.MTU("tap1", 1000)
	h.Until("the flow's MTU has changed", func() bool {
		h.Inject("tap0", numbered(macA, macB, 2))
		r.o.mu.Lock()
		defer r.o.mu.Unlock()
		e := r.o.entries[p]
		return e != nil && e.plan.flow.Max == 1014
	})
}
