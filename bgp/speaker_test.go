package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
)

// fakeEngine is an engine whose peers are the test.
type fakeEngine struct {
	mu    sync.Mutex
	h     engine.Handler
	ready chan struct{}
	peers []engine.Peer
	said  map[netip.Prefix]netip.Addr
	paths []engine.Path
	reset []netip.Addr
	fail  bool
}

func newFake() *fakeEngine {
	return &fakeEngine{ready: make(chan struct{}), said: map[netip.Prefix]netip.Addr{}}
}

func (f *fakeEngine) do(g func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g()
}

func (f *fakeEngine) Run(ctx context.Context, h engine.Handler) error {
	f.h = h
	close(f.ready)
	<-ctx.Done()
	return nil
}

func (f *fakeEngine) SetPeers(p []engine.Peer) error { f.do(func() { f.peers = p }); return nil }
func (f *fakeEngine) Announce(p netip.Prefix, a netip.Addr) (err error) {
	f.do(func() {
		if f.fail {
			err = errors.New("not now")
			return
		}
		f.said[p] = a
	})
	return err
}
func (f *fakeEngine) Withdraw(p netip.Prefix) error { f.do(func() { delete(f.said, p) }); return nil }
func (f *fakeEngine) Reset(a netip.Addr)            { f.do(func() { f.reset = append(f.reset, a) }) }
func (f *fakeEngine) Paths() (list []engine.Path) {
	f.do(func() { list = slices.Clone(f.paths) })
	return list
}
func (f *fakeEngine) Status() (list []engine.Status) {
	f.do(func() {
		for _, p := range f.peers {
			list = append(list, engine.Status{Addr: p.Addr, AS: p.AS, State: "established", Received: 7})
		}
	})
	return list
}

var until = fake.Until

func gatewayIn(mac frame.MAC, list ...netip.Prefix) *node.SegmentGateway {
	return &node.SegmentGateway{VRF: "v", Gateway: node.Gateway{MAC: mac, Addresses: list}}
}

// newNode returns a node whose VRF "v" has 10.0.0.1/24 and fd00::1/64 in segment 200, pods in 10.70.0.0/24 and a route of the configuration.
func newNode(t *testing.T) *node.Node {
	t.Helper()
	n := check.Must(node.New(&node.Options{Owners: []string{DefaultOwner}}))(t)
	t.Cleanup(func() { n.Close() })
	mac := frame.MAC{2, 0, 0, 0, 0, 1}
	check.OK(t, n.Apply(&node.Config{
		Segments: []node.Segment{{VNI: 200, Gateway: gatewayIn(mac, gateway...)}, {VNI: 1, Gateway: gatewayIn(mac, prefixes("10.70.0.1/24")...)}},
		VRFs: []node.VRF{{Name: "v", Routes: []node.Route{
			{Prefix: prefix("10.71.0.5/32"), Via: []node.Hop{{Segment: 1, IP: addr("10.70.0.5")}}},
			{Prefix: prefix("10.72.0.5/32"), Via: []node.Hop{{Segment: 1, IP: addr("10.70.0.6")}}},
		}}},
	}))
	return n
}

// nodeAddress changes the address of segment 200.
func nodeAddress(s string) func(*node.Config) error {
	return func(c *node.Config) error { c.Segments[0].Gateway.Addresses = prefixes(s); return nil }
}

// start runs a Speaker until stop is called, or the test ends.
func start(t *testing.T, s *Speaker) (stop func()) { return check.Run(t, s.Run) }

// ways are the rows of a Speaker in the node, one line each.
func ways(n *node.Node) (list []string) {
	for r := range n.Plane().Rows(DefaultOwner) {
		if p := r.(control.Prefix); p.Via != (control.Via{}) {
			list = append(list, fmt.Sprint(p.Prefix, " ", p.Via))
		}
	}
	slices.Sort(list)
	return list
}

func simple() *Config {
	return &Config{
		AS: 64512, RouterID: addr("10.0.0.1"), VRF: "v", Segment: 200, Addresses: []netip.Addr{addr("10.0.0.1")}, Pools: []Pool{{Prefix: prefix("10.65.0.0/16")}, {Prefix: prefix("fd65::/16")}},
		Announce: prefixes("10.65.1.0/26"), Peers: []Peer{{Addr: addr("10.0.0.2"), AS: 64512}, {Addr: addr("10.0.0.3"), AS: 64512}},
	}
}

// A Speaker announces blocks and what Export accepts, makes rows of paths, and follows changes of settings and of the node.
func TestSpeaker(t *testing.T) {
	n, f, c := newNode(t), newFake(), simple()
	c.Export = []Rule{{Prefix: prefix("10.71.0.0/16"), Min: 32}}
	s := check.Must(newSpeaker(n, c, f))(t)
	stop := start(t, s)
	<-f.ready
	said := func(want ...string) {
		t.Helper()
		until(t, fmt.Sprint("announced: ", want), func() (ok bool) {
			f.do(func() {
				got := slices.SortedFunc(maps.Keys(f.said), netip.Prefix.Compare)
				ok = slices.Equal(got, prefixes(want...))
			})
			return ok
		})
	}
	rows := func(want ...string) {
		t.Helper()
		until(t, fmt.Sprint("rows: ", want), func() bool { return slices.Equal(ways(n), want) })
	}
	said("10.65.1.0/26", "10.71.0.5/32")
	f.h.Learned([]engine.Path{pathTo("10.65.2.0/26", "10.0.0.2", 0, "10.0.0.2"), pathTo("10.65.3.0/26", "10.0.0.3", 0, "10.0.0.3"), pathTo("10.65.3.0/26", "10.0.0.2", 0, "10.0.0.2"),
		pathTo("10.80.0.0/16", "10.0.0.2", 0, "10.0.0.2"), pathTo("0.0.0.0/0", "10.0.0.2", 0, "10.0.0.2")})
	rows("10.65.2.0/26 via vni 200 ip 10.0.0.2", "10.65.3.0/26 via vni 200 ip 10.0.0.2", "10.65.3.0/26 via vni 200 ip 10.0.0.3")

	st := s.Status()
	check.Equal(t, "announced", fmt.Sprint(st.Announced), "[10.65.1.0/26 10.71.0.5/32]")
	check.Equal(t, "refused", fmt.Sprint(st.Refused), "map[outside-pools:1 default-route:1]")
	p := st.Peers[0]
	check.Equal(t, "peer", fmt.Sprintf("%v %s %d %d %v", p.Addr, p.State, p.Received, p.Accepted, p.Refused), "10.0.0.2 established 7 2 map[outside-pools:1 default-route:1]")
	check.Equal(t, "routes", len(s.Routes()), 5)
	check.Equal(t, "first", s.Routes()[0].String(), "0.0.0.0/0 next hop 10.0.0.2 of 10.0.0.2 refused: default-route")

	f.h.Withdrawn([]engine.Path{pathTo("10.65.3.0/26", "10.0.0.3", 0, "0.0.0.0")})
	rows("10.65.2.0/26 via vni 200 ip 10.0.0.2", "10.65.3.0/26 via vni 200 ip 10.0.0.2")
	s.dead(addr("10.0.0.2"))
	rows()
	f.do(func() { check.Equal(t, "sessions ended", fmt.Sprint(f.reset), "[10.0.0.2]") })
	f.h.Learned([]engine.Path{pathTo("10.65.2.0/26", "10.0.0.2", 0, "10.0.0.2"), pathTo("10.65.3.0/26", "10.0.0.3", 0, "10.0.0.3")})
	rows("10.65.2.0/26 via vni 200 ip 10.0.0.2", "10.65.3.0/26 via vni 200 ip 10.0.0.3")

	// Other settings, under way.
	c2 := *c
	c2.Announce, c2.Export, c2.Peers = prefixes("10.65.9.0/26"), []Rule{{Prefix: prefix("0.0.0.0/0")}}, c.Peers[:1]
	check.OK(t, s.Configure(&c2))
	said("10.65.9.0/26", "10.71.0.5/32", "10.72.0.5/32")
	rows("10.65.2.0/26 via vni 200 ip 10.0.0.2") // 10.0.0.3 is no peer any more
	c3 := c2
	c3.AS = 1
	check.ErrorHas(t, s.Configure(&c3), "bgp: Config.AS: cannot change while the Speaker runs")

	// The interface loses its address: the next hop is on no network, and there is no router.
	check.OK(t, n.Update(nodeAddress("10.1.0.1/24")))
	until(t, "off the link", func() bool { return s.Status().Refused[OffLink] == 1 })
	rows()
	check.OK(t, n.Update(nodeAddress("10.0.0.1/24")))
	rows("10.65.2.0/26 via vni 200 ip 10.0.0.2")

	stop()
	check.Equal(t, "rows at the end", len(slices.Collect(n.Plane().Rows(DefaultOwner))), 0)
	check.ErrorHas(t, s.Run(t.Context()), "bgp: Speaker.Run: it was called before; make a new Speaker")
}

// What was left out at the limit is taken when there is room; what could not be announced is tried again.
func TestSpeakerAgain(t *testing.T) {
	n, f, c := newNode(t), newFake(), simple()
	c.MaxRoutes = 2
	f.fail = true
	s := check.Must(newSpeaker(n, c, f))(t)
	start(t, s)
	<-f.ready
	f.paths = []engine.Path{pathTo("10.65.2.0/26", "10.0.0.2", 0, "10.0.0.2"), pathTo("10.65.3.0/26", "10.0.0.2", 0, "10.0.0.2"), pathTo("10.65.4.0/26", "10.0.0.2", 0, "10.0.0.2")}
	f.h.Learned(f.paths)
	until(t, "two taken", func() bool { return len(ways(n)) == 2 })
	check.Equal(t, "left out", s.Status().Refused[TooMany], 1)
	var gone engine.Path
	f.do(func() { gone, f.paths, f.fail = f.paths[0], f.paths[1:], false })
	f.h.Withdrawn([]engine.Path{gone})
	until(t, "the third taken", func() bool { return strings.Contains(fmt.Sprint(ways(n)), "10.65.4.0/26") })
	until(t, "announced", func() (ok bool) { f.do(func() { ok = len(f.said) == 1 }); return ok })
}

// Peers of a prefix that come and go leave nothing behind, and no share of all: those that are there have theirs. What was left out is counted on.
func TestSpeakerPassersBy(t *testing.T) {
	n, f, c := newNode(t), newFake(), simple()
	c.MaxRoutes, c.Listen = 8, c.Addresses
	c.Peers = append(c.Peers, Peer{Prefix: prefix("10.0.0.128/25"), AS: 64512})
	s := check.Must(newSpeaker(n, c, f))(t)
	start(t, s)
	<-f.ready
	for i := range 6 {
		f.h.Learned([]engine.Path{pathTo(fmt.Sprintf("10.65.2.%d/32", i), "10.0.0.3", 0, "10.0.0.3")})
	}
	const passers = 100
	for i := range passers {
		var list []engine.Path
		for _, p := range []string{"10.65.3.0/26", "10.65.3.64/26", "10.65.3.128/26"} {
			list = append(list, pathTo(p, fmt.Sprintf("10.0.0.%d", 128+i), 0, "10.0.0.3"))
		}
		f.h.Session(list[0].Peer, true, "")
		f.h.Learned(list)
		if i%2 == 0 {
			f.h.Session(list[0].Peer, false, "bye")
			f.h.Withdrawn(list)
		} else {
			f.h.Withdrawn(list)
			f.h.Session(list[0].Peer, false, "bye")
		}
	}
	check.Equal(t, "left out", s.Status().Refused[TooMany], 2*passers)
	s.lock()
	check.Equal(t, "peers that are remembered", len(s.table.peers), 1)
	s.mu.Unlock()
	f.h.Withdrawn([]engine.Path{pathTo("10.65.2.0/32", "10.0.0.3", 0, "10.0.0.3")})
	f.h.Learned([]engine.Path{pathTo("10.65.4.0/26", "10.0.0.2", 0, "10.0.0.2"), pathTo("10.65.5.0/26", "10.0.0.2", 0, "10.0.0.2")})
	check.Equal(t, "left out", s.Status().Refused[TooMany], 2*passers)
	s.lock()
	check.Equal(t, "its paths", s.table.peers[addr("10.0.0.2")].kept(), 2)
	s.mu.Unlock()
}

// New refuses a nil Node and wrong settings.
func TestNew(t *testing.T) {
	_, err := New(nil, simple())
	check.ErrorHas(t, err, "bgp: New: the Node is nil")
	_, err = New(newNode(t), &Config{})
	check.ErrorHas(t, err, "bgp: Config.AS: 0: must be")
}

// A session that ends is a warning, which vxswitchd logs.
func TestLogDown(t *testing.T) {
	var log check.Log
	c := simple()
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h := handler{check.Must(newSpeaker(newNode(t), c, newFake()))(t)}
	h.Session(addr("10.0.0.2"), true, "")
	h.Session(addr("10.0.0.2"), false, "hold timer expired")
	check.Equal(t, "lines", log.Count("\n"), 1)
	check.Equal(t, "of the end", log.Count(`level=WARN msg="session down" peer=10.0.0.2 reason="hold timer expired"`), 1)
}
