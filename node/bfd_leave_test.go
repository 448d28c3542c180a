package node_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	lab "github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// tunnelOf returns the tunnel of a leaf.
func tunnelOf(t *testing.T, n *node.Node) *vtep.VTEP {
	for _, v := range n.Switch().VSIs() {
		for _, a := range v.Attachments() {
			if x, ok := a.Port().(*vtep.VTEP); ok {
				return x
			}
		}
	}
	t.Fatal("no tunnel")
	return nil
}

func withBFD(k int, c *node.BFD) *node.Config {
	cfg := leafConfig(k)
	cfg.Tunnels[0].BFD = c
	return cfg
}

// A tunnel without BFD has no peers in the management VNI, and none that are listed for it.
func TestBFDLeavesPeers(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	a, _ := f.leaf(1, 2, 3)
	until(t, "two sessions", func() bool { return len(a.BFD()) == 2 })
	lab.OK(t, a.Apply(withBFD(1, nil)))
	until(t, "no sessions", func() bool { return len(a.BFD()) == 0 })
	learn(t, a)
	v := tunnelOf(t, a)
	until(t, "no peers allowed", func() bool { return len(v.Allowed(1)) == 0 && len(v.Listed(99)) == 0 })
}

// Sessions follow the rows in another management VNI too.
func TestBFDOtherVNI(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	a, _ := f.leaf(1, 2, 3)
	until(t, "two sessions", func() bool { return len(a.BFD()) == 2 })
	c := *fast
	c.VNI = 2
	lab.OK(t, a.Apply(withBFD(1, &c)))
	learn(t, a, 3)
	until(t, "one session", func() bool { return len(a.BFD()) == 1 })
}

// A peer whose session ends here does not find this end dead.
func TestBFDGoodbye(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, a *node.Node){
		"without BFD":   func(t *testing.T, a *node.Node) { lab.OK(t, a.Apply(withBFD(1, nil))) },
		"peer unlisted": func(t *testing.T, a *node.Node) { learn(t, a, 3) },
	} {
		t.Run(what, func(t *testing.T) {
			f := &fabric{t, memory.NewNetwork(nil)}
			t.Cleanup(func() { f.net.Close() })
			a, _ := f.leaf(1, 2, 3)
			b, _ := f.leaf(2, 1, 3)
			f.leaf(3, 1, 2)
			until(t, "alive", func() bool { return len(aliveTo(a)) == 2 && len(aliveTo(b)) == 2 })
			end(t, a)
			until(t, "not alive", func() bool { return !slices.Contains(aliveTo(b), vtepOf(1).String()) })
			for _, s := range b.BFD() {
				lab.True(t, s.Peer.Remote != vtepOf(1) || s.Status != bfd.Dead, "%v > %v is dead: %v", s.Peer.Local, s.Peer.Remote, s.Diag)
			}
		})
	}
}

// A route that comes after its IP port has gone passes over that, too.
func TestRouteAfterPortGone(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	n, _ := f.start(&node.Config{VRFs: []node.VRF{{Name: "red"}}})
	u := control.Update{Loose: true}
	route := func(dst string, vni frame.VNI) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix(dst), Via: control.Via{VNI: vni}}
	}
	var far []net.Conn
	for vni := frame.VNI(101); vni <= 102; vni++ {
		s := lab.Must(n.Segment(vni, nil))(t)
		near, end := net.Pipe()
		lab.OK(t, s.Add(port.FromReadWriteCloser(near, &port.ReadWriteCloserConfig{Name: fmt.Sprint("tun", vni), IP: true}), nil))
		lab.OK(t, s.Gateway("red", node.Gateway{Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 1, byte(vni)}), 32)}}))
		far = append(far, end)
		u.Add = append(u.Add, route("10.8.0.0/16", vni))
	}
	lab.OK(t, n.Program("plane", u))
	downs := func() (list []frame.VNI) {
		for h, down := range n.Gateway().VRF("red").NextHops() {
			if down {
				list = append(list, h.Interface.VNI())
			}
		}
		return list
	}
	lab.OK(t, far[0].Close())
	until(t, "the next hop is down", func() bool { return fmt.Sprint(downs()) == "[101]" })
	n.Plane().Forget("plane")
	lab.Equal(t, "down without a route", len(downs()), 0)
	u.Add = []control.Row{route("10.9.0.0/16", 101), route("10.9.0.0/16", 102)}
	lab.OK(t, n.Program("plane", u))
	lab.Equal(t, "down", fmt.Sprint(downs()), "[101]")
}
