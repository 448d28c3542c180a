package bgp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A restarting is a gobgpd that reflects routes of one of ours to another, and is killed.
type restarting struct {
	*netns.Net
	rr     *netns.Host
	gobgpd gobgp.Reflector
	bs     [2]*BGP
	hs     [2]*heard
}

// newRestarting has the first of ours say a few routes, and kills gobgpd when the second has them.
func newRestarting(t *testing.T, seconds int) *restarting {
	n := netns.New(t)
	sw := n.Switch("sw")
	r := &restarting{Net: n, rr: n.Host("rr"), gobgpd: gobgp.Reflector{AS: 65000, ID: theirsAddr, Clients: []string{oursAddr, "192.0.2.3"}, Restart: seconds}}
	n.Plug(r.rr, theirsAddr+"/24", sw)
	p := r.gobgpd.Start(t, r.rr)
	for i, addr := range r.gobgpd.Clients {
		h := n.Host(fmt.Sprint("h", i))
		n.Plug(h, addr+"/24", sw)
		h.Ready()
		c := confOf(h, 65000)
		c.RouterID, c.Listen = netip.MustParseAddr(addr), nil
		c.Peers[0].Hold = DefaultHold
		r.bs[i], r.hs[i], _ = start(t, c)
	}
	for _, x := range many(20) {
		x.NextHop = ip(oursAddr)
		r.bs[0].Advertise(x)
	}
	r.rr.Until("routes", func() bool { return r.hs[1].count() == 20 })
	p.Kill()
	r.rr.Until("no session", func() bool { return state(r.bs[1]) != "established" && state(r.bs[0]) != "established" })
	return r
}

func (r *restarting) stale(i int) bool { return r.bs[i].Status()[0].Stale }

// gobgpd with graceful restart is killed. Its routes stay; when it is back, those that it has no more go.
func TestRestartOfGoBGP(t *testing.T) {
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		r := newRestarting(t, 120)
		if !r.stale(1) || r.hs[1].count() != 20 {
			t.Fatalf("%+v", r.bs[1].Status()[0])
		}
		all := many(20)
		for _, x := range all[:5] {
			r.bs[0].Withdraw(x.Key)
		}
		changed := all[7]
		changed.NextHop, changed.Labels = ip(oursAddr), [2]uint32{777}
		r.bs[0].Advertise(changed)
		r.gobgpd.Start(t, r.rr, "-r")
		r.rr.Until("the end of RIB", func() bool { return !r.stale(1) })
		peer := netip.MustParseAddr(theirsAddr)
		if n := r.hs[1].count(); n != 15 {
			t.Errorf("%d routes, want 15", n)
		}
		if got := r.hs[1].get(peer, changed.Key); got.Labels != changed.Labels {
			t.Errorf("%+v", got)
		}
		if c, err := r.hs[1].counts(); c != (counts{ups: 2, stale: 1, ends: c.ends}) {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("without its state", func(t *testing.T) {
		t.Parallel()
		r := newRestarting(t, 120)
		r.gobgpd.Start(t, r.rr)
		r.rr.Until("routes", func() bool { c, _ := r.hs[1].counts(); return c.ups == 2 && r.hs[1].count() == 20 })
		if c, err := r.hs[1].counts(); c.downs != 1 || c.stale != 1 || r.stale(1) {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("not back", func(t *testing.T) {
		t.Parallel()
		r := newRestarting(t, 1)
		r.rr.Until("no routes", func() bool { return r.hs[1].count() == 0 && !r.stale(1) })
		if c, err := r.hs[1].counts(); c.downs != 1 || c.stale != 1 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}
