package bfd

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Hosts come, go and get other settings, and the sessions with the others go on. A path that is dead is told.
func TestProber(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b, c := n.Host("a"), n.Host("b"), n.Host("c")
	n.Link(a, "10.0.1.1/24", b, "10.0.1.2/24")
	n.Link(a, "10.0.2.1/24", c, "10.0.2.2/24")
	for _, h := range []*netns.Host{a, b, c} {
		h.Ready()
	}
	far := [2]*ours{newOurs(t, b, UDPConfig{Multihop: true}), newOurs(t, c, UDPConfig{})}
	slow := SessionConfig{Multiplier: 10} // so that a busy machine ends no session
	toB := far[0].add("10.0.1.2", "10.0.1.1", false, slow)
	far[1].add("10.0.2.2", "10.0.2.1", false, slow)

	dead := make(chan netip.Addr, 10)
	p := Prober{In: a.Do, Dead: func(remote netip.Addr) { dead <- remote }}
	addr := netip.MustParseAddr
	hosts := func(list ...Host) []Host { return list }
	hostB := Host{addr("10.0.1.1"), addr("10.0.1.2"), Probe{Multiplier: 10}}
	hostC := Host{addr("10.0.2.1"), addr("::ffff:10.0.2.2"), hostB.Probe}
	are := func(wantB, wantC string) {
		t.Helper()
		a.Until("B is "+wantB+" and C is "+wantC, func() bool {
			return p.Status(addr("10.0.1.2")) == wantB && p.Status(addr("10.0.2.2")) == wantC
		})
	}
	session := func(remote string) *session {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.speaker.mu.Lock()
		defer p.speaker.mu.Unlock()
		return p.speaker.byPeer[p.on[addr(remote)].peer]
	}

	must(t, p.Set(hosts(hostB)))
	are("", "") // before Start
	must(t, p.Start())
	are("alive", "")
	must(t, p.Set(hosts(hostB, hostC))) // from another address: other sockets
	are("alive", "alive")
	var remotes []netip.Addr
	for _, s := range p.Sessions() {
		remotes = append(remotes, s.Peer.Remote)
	}
	check.Slice(t, "sessions", remotes, []netip.Addr{addr("10.0.1.2"), addr("10.0.2.2")})
	wasB, wasC := session("10.0.1.2"), session("10.0.2.2")

	other := hostB
	other.Interval = 500 * time.Millisecond
	must(t, p.Set(hosts(hostC, other)))
	check.True(t, session("10.0.1.2") == wasB && session("10.0.2.2") == wasC, "a session did not go on")
	a.Until("the interval", func() bool { return far[0].session(toB).Interval == other.Interval })
	are("alive", "alive")

	// Another path to B: from another port.
	other.Multihop = true
	must(t, far[0].s.Remove(toB))
	far[0].add("10.0.1.2", "10.0.1.1", true, slow)
	must(t, p.Set(hosts(other, hostC)))
	are("alive", "alive")
	wasB, wasC = session("10.0.1.2"), session("10.0.2.2")
	check.ErrorHas(t, p.Set(hosts(other, hostC, hostC)), "bfd: Prober: two hosts are 10.0.2.2")
	check.True(t, session("10.0.1.2") == wasB && session("10.0.2.2") == wasC, "a session did not go on")
	wrong := other
	wrong.Multiplier = 256
	check.ErrorHas(t, p.Set(hosts(wrong, hostC)), "bfd: SessionConfig.Multiplier: 256")
	are("", "alive")
	check.True(t, session("10.0.2.2") == wasC, "the session with C did not go on")

	a.IP("link", "set", "eth1", "down")
	for found := (netip.Addr{}); found != addr("10.0.2.2"); {
		select {
		case found = <-dead:
		case <-time.After(netns.Timeout):
			t.Fatal("the path to C is not dead")
		}
	}
	are("", "dead")
	must(t, p.Set(nil))
	are("", "")
	must(t, p.Set(hosts(other)))
	are("alive", "")
	p.Stop()
	are("", "")
	must(t, p.Set(hosts(hostB)))
	are("", "")
}
