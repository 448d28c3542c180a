package bgp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// heard is a handler that keeps what each peer says.
type heard struct {
	mu                      sync.Mutex
	routes                  map[netip.Addr]map[route.Key]route.Route
	old                     map[route.Key]bool // those not said again since Stale
	ups, downs, ends, stale int
	left                    map[string]int
	err                     error
}

func newHeard() *heard {
	return &heard{routes: map[netip.Addr]map[route.Key]route.Route{}, left: map[string]int{}}
}

func (h *heard) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *heard) Learned(p netip.Addr, r *route.Route) {
	h.do(func() {
		if h.routes[p] == nil {
			h.routes[p] = map[route.Key]route.Route{}
		}
		h.routes[p][r.Key] = *r
		delete(h.old, r.Key)
	})
}
func (h *heard) Withdrawn(p netip.Addr, k *route.Key) { h.do(func() { delete(h.routes[p], *k) }) }
func (h *heard) Up(netip.Addr)                        { h.do(func() { h.ups++ }) }
func (h *heard) Down(p netip.Addr, err error) {
	h.do(func() { h.downs++; h.err = err; delete(h.routes, p); h.old = nil })
}
func (h *heard) Ended(p netip.Addr) {
	h.do(func() {
		h.ends++
		for k := range h.old {
			delete(h.routes[p], k)
		}
		h.old = nil
	})
}
func (h *heard) Stale(p netip.Addr, err error) {
	h.do(func() {
		h.stale++
		h.old = map[route.Key]bool{}
		for k := range h.routes[p] {
			h.old[k] = true
		}
	})
}
func (h *heard) Malformed(_ netip.Addr, reason string) { h.do(func() { h.left[reason]++ }) }

func (h *heard) count() (n int) {
	h.do(func() {
		for _, m := range h.routes {
			n += len(m)
		}
	})
	return n
}

// counts is how often it was told what.
type counts struct{ ups, downs, ends, stale int }

func (h *heard) counts() (c counts, last error) {
	h.do(func() { c, last = counts{h.ups, h.downs, h.ends, h.stale}, h.err })
	return c, last
}

func (h *heard) get(p netip.Addr, k route.Key) (r route.Route) {
	h.do(func() { r = h.routes[p][k] })
	return r
}

var until = fake.Until

// start runs a speaker to the end of the test, or until stop.
func start(t *testing.T, c Config) (b *BGP, h *heard, stop func()) {
	t.Helper()
	b, h = check.Must(New(c))(t), newHeard()
	return b, h, check.Run(t, func(ctx context.Context) error { return b.Run(ctx, h) })
}

func port(t *testing.T) uint16 {
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// pair returns the configurations of two that connect to each other on the loopback device.
func pair(t *testing.T, as1, as2 uint32, edit func(p *Peer)) (a, b Config) {
	n := port(t)
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 7, byte(n >> 8), byte(i)}) }
	conf := func(i, j int, as, peer uint32) Config {
		p := Peer{Addr: addr(j), AS: int64(peer), Port: n, Local: addr(i), Retry: 50 * time.Millisecond, Hold: 3 * time.Second}
		if edit != nil {
			edit(&p)
		}
		return Config{AS: as, RouterID: addr(i), Listen: []netip.AddrPort{netip.AddrPortFrom(addr(i), n)}, Peers: []Peer{p}}
	}
	return conf(1, 2, as1, as2), conf(2, 1, as2, as1)
}

func state(b *BGP) string { return b.Status()[0].State }

func TestSessions(t *testing.T) {
	for _, c := range []struct {
		name     string
		as1, as2 uint32
		edit     func(*Peer)
	}{
		{"iBGP", 65000, 65000, nil},
		{"eBGP", 65000, 70000, nil},
		{"MD5", 65000, 65000, func(p *Peer) { p.Password = "secret" }},
		{"TTL security", 65000, 65001, func(p *Peer) { p.Hops = 1 }},
		{"one passive", 65000, 65000, func(p *Peer) { p.Passive = p.Local.As4()[3] == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ca, cb := pair(t, c.as1, c.as2, c.edit)
			a, ha, _ := start(t, ca)
			b, hb, stop := start(t, cb)
			for _, r := range samples() {
				a.Advertise(r)
			}
			until(t, "routes", func() bool { return hb.count() == len(samples()) })
			for _, r := range samples() {
				b.Advertise(r)
			}
			until(t, "routes back", func() bool { return ha.count() == len(samples()) })
			for _, r := range samples() {
				if got := hb.get(ca.RouterID, r.Key); got != r {
					t.Errorf("%+v\nwant %+v", got, r)
				}
			}
			a.Withdraw(samples()[2].Key)
			until(t, "withdrawal", func() bool { return hb.count() == len(samples())-1 })
			if s := b.Status()[0]; s.State != "established" || s.Routes != len(samples())-1 || s.In < 3 || s.Out < 3 || s.HoldTime != 3*time.Second {
				t.Errorf("%+v", s)
			}
			time.Sleep(4 * time.Second) // beyond the hold time
			for _, h := range []*heard{ha, hb} {
				if c, _ := h.counts(); c.ups != 1 || c.ends != 1 || c.downs != 0 {
					t.Errorf("%+v", c)
				}
			}
			stop()
			until(t, "down", func() bool { return ha.count() == 0 })
			if _, err := ha.counts(); fmt.Sprint(err) != `received notification 6/2, cease, shut down` {
				t.Error(err)
			}
		})
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	ca.Peers[0].Password, cb.Peers[0].Password = "one", "another"
	_, ha, _ := start(t, ca)
	start(t, cb)
	time.Sleep(2 * time.Second)
	if c, _ := ha.counts(); c.ups != 0 {
		t.Error("established")
	}
}

func TestWrongAS(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65001, nil)
	ca.Peers[0].AS = 65002
	a, ha, _ := start(t, ca)
	b, _, _ := start(t, cb)
	until(t, "error", func() bool { return a.Status()[0].Last != nil && b.Status()[0].Last != nil })
	until(t, "2/2", func() bool {
		n, _ := b.Status()[0].Last.(*Notification)
		return n != nil && n.Code == errOpen && n.Subcode == 2 && n.Error() == "received notification 2/2, OPEN error, wrong AS"
	})
	until(t, "the numbers", func() bool {
		n, _ := a.Status()[0].Last.(*Notification)
		return n != nil && n.Error() == "sent notification 2/2, OPEN error, wrong AS: the peer says 65001; must be 65002"
	})
	if c, _ := ha.counts(); c.ups != 0 {
		t.Error("established")
	}
}

// many returns n routes of hosts.
func many(n int) []route.Route {
	rs := make([]route.Route, n)
	for i := range rs {
		rs[i] = samples()[2]
		rs[i].MAC = frame.MAC{2, 0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
	}
	return rs
}

func TestMany(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	a, _, _ := start(t, ca)
	_, hb, _ := start(t, cb)
	const n = 50000
	for _, r := range many(n) {
		a.Advertise(r)
	}
	until(t, "routes", func() bool { return hb.count() == n })
	for _, r := range many(n) {
		a.Withdraw(r.Key)
	}
	until(t, "withdrawals", func() bool { return hb.count() == 0 })
}

func TestLimit(t *testing.T) {
	for _, resets := range []bool{false, true} {
		t.Run(fmt.Sprint(resets), func(t *testing.T) {
			t.Parallel()
			ca, cb := pair(t, 65000, 65000, nil)
			cb.Peers[0].MaxRoutes, cb.Peers[0].LimitResets = 10, resets
			a, _, _ := start(t, ca)
			b, hb, _ := start(t, cb)
			for _, r := range many(25) {
				a.Advertise(r)
			}
			if resets {
				until(t, "reset", func() bool {
					n, _ := b.Status()[0].Last.(*Notification)
					return n != nil && n.Code == errCease && n.Subcode == ceaseRoutes
				})
				return
			}
			until(t, "15 left out", func() bool { return b.Status()[0].LeftOut["limit"] == 15 })
			if hb.count() != 10 || state(b) != "established" {
				t.Errorf("%d routes, %s", hb.count(), state(b))
			}
		})
	}
}

func TestConfig(t *testing.T) {
	good := func() Config {
		return Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), Peers: []Peer{{Addr: netip.MustParseAddr("192.0.2.2"), AS: 1}}}
	}
	for want, edit := range map[string]func(*Config){
		"bgp: Config.AS: 0: must be 1 to 4294967295":                                                                func(c *Config) { c.AS = 0 },
		"bgp: Config.RouterID: ::1: must be an IPv4 address other than 0.0.0.0":                                     func(c *Config) { c.RouterID = netip.IPv6Loopback() },
		"bgp: Config.Peers[1].Addr: 192.0.2.2: peers[0] has this address already":                                   func(c *Config) { c.Peers = append(c.Peers, c.Peers[0]) },
		`bgp: Config.Peers[0].AS: 0: must be 1 to 4294967295, "external" or "internal"`:                             func(c *Config) { c.Peers[0].AS = 0 },
		"bgp: Config.Peers[0].Addr: 224.0.0.1: must be the address of a host":                                       func(c *Config) { c.Peers[0].Addr = netip.MustParseAddr("224.0.0.1") },
		"bgp: Config.Peers[0].Hold: 2s: must be full seconds from 3s to 65535s, or 0 for 90s":                       func(c *Config) { c.Peers[0].Hold = 2 * time.Second },
		"bgp: Config.Peers[0].Password: 81: must be at most 80 bytes":                                               func(c *Config) { c.Peers[0].Password = string(z(81)) },
		"bgp: Config.Peers[0].Addr: fe80::1: must be a link-local address with its interface, such as fe80::1%eth0": func(c *Config) { c.Peers[0].Addr = netip.MustParseAddr("fe80::1") },
		"bgp: Config.Peers[0].Local: ::1: must be an address of the family of 192.0.2.2":                            func(c *Config) { c.Peers[0].Local = netip.IPv6Loopback() },
		"bgp: Config.Peers[0].MaxRoutes: -1: must be 0 or more":                                                     func(c *Config) { c.Peers[0].MaxRoutes = -1 },
		"bgp: Config.Peers[0].Retry: -1s: must be 0 or longer":                                                      func(c *Config) { c.Peers[0].Retry = -time.Second },
	} {
		c := good()
		edit(&c)
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := New(good()); err != nil {
		t.Error(err)
	}
}
