package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// flood sends the sent-th broadcast from a, and waits until the switch has it.
func flood(t *testing.T, n *Node, a *port.Pipe, sent uint64) {
	must(t, a.Send(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1}, make([]byte, 50)...)))
	fake.Until(t, "the frame is in", func() bool {
		return slices.ContainsFunc(n.sw.Stats().Ports, func(p vswitch.PortStats) bool { return p.Name == "a" && p.Rx.Frames == sent })
	})
}

// A policy that comes to allow what a tunnel no longer takes: in between no frame goes there.
func TestNoFloodAndRules(t *testing.T) {
	n, _, _ := inMemory(t)
	go n.Run(t.Context())
	begun(t, n)
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
	must(t, n.Policy(Policy{Name: "p", Config: policy.Config{Default: policy.Deny}}))
	seg := addSegment(t, n, 1, &Segment{Policy: "p", Tunnels: []SegmentTunnel{{Tunnel: "vx", Flood: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}}})
	a := port.NewPipe(&port.PipeConfig{Name: "a"})
	must(t, seg.Add(a, nil))
	sent := uint64(0)
	n.fault = func(step string) error {
		sent++
		flood(t, n, a, sent)
		if got := v.Stats().Tx.Frames; got != 0 {
			t.Errorf("before step %q: %d frames in the tunnel", step, got)
		}
		return nil
	}
	must(t, n.Update(func(c *Config) error {
		c.Policies[0].Default, c.Segments[0].Tunnels[0].NoFlood = policy.Allow, vswitch.Broadcast
		return nil
	}))
	if sent < 5 {
		t.Errorf("%d steps", sent)
	}
}

// A change of one step stops no frame, and neither does putting it back, whichever step fails.
func TestPutBackStopsNothing(t *testing.T) {
	steps := 0
	for fails := 1; ; fails++ {
		n := running(t)
		seg := addSegment(t, n, 1, nil)
		a, b := port.NewPipe(&port.PipeConfig{Name: "a"}), port.NewPipe(&port.PipeConfig{Name: "b"})
		must(t, seg.Add(a, nil))
		must(t, seg.Add(b, nil))
		var sent uint64
		n.fault = func(step string) error {
			sent++
			flood(t, n, a, sent)
			fake.Until(t, fmt.Sprintf("step %d fails: before step %q: frame %d", fails, step, sent), func() bool {
				var out uint64
				for _, p := range n.sw.Stats().Ports {
					for why := range p.RxDrops {
						if dropped := p.RxDrops[why] + p.TxDrops[why]; dropped != 0 {
							t.Fatalf("step %d fails: before step %q: %s: %d frames dropped as %v", fails, step, p.Name, dropped, frame.Reason(why))
						}
					}
					if p.Name == "b" {
						out = p.Tx.Frames
					}
				}
				return out == sent
			})
			if sent == uint64(fails) {
				return errors.New("no")
			}
			return nil
		}
		err := seg.Update(func(s *Segment) error { s.MaxMACs = 9; return nil })
		if err == nil {
			break
		}
		steps++
	}
	if steps < 5 {
		t.Errorf("%d steps", steps)
	}
}

// Members that are kept apart before and after are so in between.
func TestGroupOfMembersChanges(t *testing.T) {
	n := running(t)
	seg := addSegment(t, n, 1, nil)
	a, b := port.NewPipe(&port.PipeConfig{Name: "a"}), port.NewPipe(&port.PipeConfig{Name: "b"})
	for _, p := range []*port.Pipe{a, b} {
		must(t, seg.Add(p, &Member{AttachConfig: vswitch.AttachConfig{Group: 5}}))
	}
	sent := uint64(0)
	n.fault = func(step string) error {
		sent++
		flood(t, n, a, sent)
		for _, p := range n.sw.Stats().Ports {
			if p.Name == "b" && p.Tx.Frames != 0 {
				t.Errorf("before step %q: %d frames from one to the other", step, p.Tx.Frames)
			}
		}
		return nil
	}
	must(t, seg.Update(func(s *Segment) error {
		s.Members[0].Group, s.Members[1].Group = 6, 6
		return nil
	}))
	if sent < 5 {
		t.Errorf("%d steps", sent)
	}
}

// Rules of two members are two changes: what one sends passes both.
func TestEntangledMembers(t *testing.T) {
	make := func(one, other policy.Action) wanted {
		return index(&Config{
			Policies: []Policy{{Name: "p", Config: policy.Config{Default: one}}, {Name: "q", Config: policy.Config{Default: other}}},
			Segments: []Segment{{VNI: 1, Members: []Member{{Port: "a", Policy: "p"}, {Port: "b", Policy: "q"}, {Port: "c", Policy: "q"}}}},
		})
	}
	old := make(policy.Deny, policy.Allow)
	for is, want := range map[[2]policy.Action]bool{
		{policy.Deny, policy.Allow}: false, {policy.Allow, policy.Allow}: false, {policy.Deny, policy.Deny}: false, {policy.Allow, policy.Deny}: true,
	} {
		w := make(is[0], is[1])
		if got := inSteps(old.segments[1], w.segments[1], old, w); got != want {
			t.Errorf("%v: %v", is, got)
		}
	}
}

// Each setting that says where frames may go counts, beside other rules.
func TestEntangled(t *testing.T) {
	make := func(change func(*Segment)) wanted {
		c := &Config{
			Policies: []Policy{{Name: "p"}},
			Segments: []Segment{{VNI: 1, Policy: "p", Members: []Member{{Port: "a"}}, Tunnels: []SegmentTunnel{{Tunnel: "vx"}}}},
		}
		if change != nil {
			c.Policies[0].Default = policy.Deny
			change(&c.Segments[0])
		}
		return index(c)
	}
	for name, change := range map[string]func(*Segment){
		"routeIsolated":      func(s *Segment) { s.RouteIsolated = true },
		"forwardPinned":      func(s *Segment) { s.ForwardPinned = true },
		"forwardBridgeGroup": func(s *Segment) { s.ForwardBridgeGroup = true },
		"innerVLAN":          func(s *Segment) { s.InnerVLAN = vswitch.VLANPass },
		"noFlood":            func(s *Segment) { s.NoFlood = vswitch.Broadcast },
		"of a tunnel":        func(s *Segment) { s.Tunnels[0].NoFlood = vswitch.Broadcast },
		"locked tunnel":      func(s *Segment) { s.Tunnels[0].Locked = true },
		"gbp of a tunnel":    func(s *Segment) { s.Tunnels[0].GBP = 7 },
		"group of a tunnel":  func(s *Segment) { s.Tunnels[0].Group = 7 },
		"of a member":        func(s *Segment) { s.Members[0].NoFlood = vswitch.Broadcast },
		"isolated":           func(s *Segment) { s.Members[0].Isolated = true },
		"fdb":                func(s *Segment) { s.FDB = []FDB{{MAC: frame.MAC{2}, Filter: true}} },
	} {
		was, is := make(nil), make(change)
		if !inSteps(was.segments[1], is.segments[1], was, is) {
			t.Errorf("%s and other rules are not", name)
		}
	}
	was, is := make(nil), make(func(*Segment) {})
	if inSteps(was.segments[1], is.segments[1], was, is) {
		t.Error("other rules alone are")
	}
}
