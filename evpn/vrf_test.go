package evpn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// A VRF that goes with its last gateway imports nothing any more, and another may have its L3VNI.
func TestVRFGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, Config{})
		defer f.close()
		prefix := netip.MustParsePrefix("10.9.0.0/16")
		for i, l := range f.leaves {
			check.OK(t, l.node.Update(func(c *node.Config) error {
				v := node.VRF{Name: "red"}
				if i == 1 {
					v.Routes = []node.Route{{Prefix: prefix}}
				}
				c.VRFs = append(c.VRFs, v)
				c.Segments = append(c.Segments, node.Segment{VNI: 500, Tunnels: []node.SegmentTunnel{{Tunnel: "vx"}},
					Gateway: &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 5, byte(i)}}}})
				return nil
			}))
		}
		left := func() (why []string) {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for r := range f.leaves[0].speaker.Routes() {
				if r.Prefix == prefix {
					why = append(why, r.LeftOut)
				}
			}
			return why
		}
		check.Equal(t, "route in the VRF", fmt.Sprintf("%q", left()), `[""]`)
		check.OK(t, f.leaves[0].node.Update(func(c *node.Config) error {
			c.VRFs = nil
			c.Segments = slices.DeleteFunc(c.Segments, func(s node.Segment) bool { return s.VNI == 500 })
			return nil
		}))
		check.Equal(t, "route without it", fmt.Sprintf("%q", left()), `["target"]`)
	})
}

// Of several segments that could be the L3VNI of a VRF the lowest is, and stays it when others come.
func TestL3VNIOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 1, Config{})
		defer f.close()
		l := f.leaves[0]
		check.OK(t, l.node.Update(func(c *node.Config) error {
			c.VRFs = append(c.VRFs, node.VRF{Name: "red", Routes: []node.Route{{Prefix: netip.MustParsePrefix("10.9.0.0/16")}}})
			return nil
		}))
		for _, x := range []struct {
			vni    frame.VNI
			tunnel bool
			want   string
		}{{400, false, "[]"}, {500, true, "[500]"}, {600, true, "[500]"}, {450, true, "[450]"}} {
			check.OK(t, l.node.Update(func(c *node.Config) error {
				s := node.Segment{VNI: x.vni, Gateway: &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 5, 1}}}}
				if x.tunnel {
					s.Tunnels = []node.SegmentTunnel{{Tunnel: "vx"}}
				}
				c.Segments = append(c.Segments, s)
				return nil
			}))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			vnis := []frame.VNI{}
			for r := range l.speaker.Routes() {
				if r.Type == 5 {
					vnis = append(vnis, r.VNI)
				}
			}
			check.Equal(t, fmt.Sprintf("L3VNI with %d", x.vni), fmt.Sprint(vnis), x.want)
		}
	})
}

// A Speaker whose node is closed ends, and says so: peers would send to a VTEP that is gone. It runs once.
func TestNodeClosed(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFabric(t, 0, Config{})
			defer f.close()
			n := check.Must(node.New(nil))(t)
			defer n.Close()
			addr := netip.MustParseAddr("192.0.2.99")
			sp := check.Must(newSpeaker(n, &Config{AS: 65000, RouterID: addr}, f.sessions.Engine(addr)))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- sp.Run(ctx) }()
			time.Sleep(5 * time.Second)
			if closes {
				n.Close()
			} else {
				cancel()
			}
			synctest.Wait()
			select {
			case err := <-ended:
				check.Equal(t, "net.ErrClosed", errors.Is(err, net.ErrClosed), closes)
				check.Equal(t, "an error", err != nil, closes)
			default:
				t.Error("Run has not ended")
				cancel()
			}
			check.ErrorHas(t, sp.Run(ctx), "evpn: Speaker.Run: it was called before")
		})
	}
}

// Settings may change while Run begins: nothing but the race detector tells.
func TestConfigureAtOnce(t *testing.T) {
	f := newFabric(t, 1, Config{})
	defer f.close()
	l := f.leaves[0]
	c := Config{AS: 65000, RouterID: l.addr, Owner: "other"}
	s := check.Must(newSpeaker(l.node, &c, f.sessions.Engine(l.addr.Next())))(t)
	done := make(chan error)
	go func() { done <- s.Configure(&c) }()
	time.Sleep(20 * time.Millisecond) // tells the detector nothing of an order
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.OK(t, s.Run(ctx))
	check.OK(t, <-done)
}

// What an event costs grows with the gateways, and not with their square.
func TestManyVRFs(t *testing.T) {
	cost := func(vrfs int) float64 {
		f := newFabric(t, 1, Config{})
		defer f.close()
		l := f.leaves[0]
		check.OK(t, l.node.Update(func(c *node.Config) error {
			for i := range vrfs {
				name := fmt.Sprint("vrf", i)
				g := func(vni int, a ...netip.Prefix) node.Segment {
					return node.Segment{VNI: frame.VNI(vni + i), Tunnels: []node.SegmentTunnel{{Tunnel: "vx"}},
						Gateway: &node.SegmentGateway{VRF: name, Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 5, 1}, Addresses: a}}}
				}
				c.VRFs = append(c.VRFs, node.VRF{Name: name})
				c.Segments = append(c.Segments, g(5000), g(1000, netip.MustParsePrefix("10.0.0.1/24")))
			}
			return nil
		}))
		s := l.speaker
		s.mu.Lock()
		defer s.mu.Unlock()
		return testing.AllocsPerRun(10, func() { s.settle(s.now(), 100) })
	}
	few, many := cost(20), cost(80)
	if t.Logf("%v and %v allocations", few, many); many > 6*few {
		t.Errorf("with 20 VRFs %v allocations, with 80 %v, want at most 6 times as many", few, many)
	}
}
