package flannel

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A fakeShape is a Shape in plain memory.
type fakeShape struct {
	controltest.Model
	err    error // of Open
	misses chan frame.Event
	links  chan []netip.Prefix // nil: they do not change

	mu     sync.Mutex
	routes []Route
	closed []bool // lost, of each Close
}

func newFakeShape() *fakeShape {
	return &fakeShape{Model: controltest.Model{VNIs: []frame.VNI{1}, VRFs: map[string][]frame.VNI{"pods": {1}}}, misses: make(chan frame.Event, 10)}
}

func (s *fakeShape) Open(n *Network, own *Own, generation int) (MapperConfig, error) {
	return MapperConfig{VRF: "pods"}, s.err
}

func (s *fakeShape) Routes(u RouteUpdate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = changed(s.routes, u)
	return nil
}

// changed returns routes after an update, sorted.
func changed(list []Route, u RouteUpdate) []Route {
	if u.Snapshot {
		list = nil
	}
	list = slices.DeleteFunc(list, func(r Route) bool {
		return slices.Contains(u.Del, r) || slices.ContainsFunc(u.Add, func(a Route) bool { return a.Prefix == r.Prefix })
	})
	list = append(list, u.Add...)
	sortRoutes(list)
	return list
}

func (s *fakeShape) Links() <-chan []netip.Prefix { return s.links }

func (s *fakeShape) Misses() Misses { return missesOf(s.misses) }

func (s *fakeShape) Close(lost bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = append(s.closed, lost)
	return nil
}

type missesOf chan frame.Event

func (m missesOf) Next(ctx context.Context) (e frame.Event, err error) {
	select {
	case <-ctx.Done():
		return e, ctx.Err()
	case e := <-m:
		return e, nil
	}
}

func (m missesOf) Close() {}

// A site is a plane that runs.
type site struct {
	*Plane
	t     *testing.T
	shape *fakeShape
	log   *check.Log
	stop  func() error // and what Run has returned
	ended chan error
}

func run(t *testing.T, m *Memory, ip string, change func(c *PlaneConfig)) *site {
	t.Helper()
	s := &site{t: t, shape: newFakeShape(), log: new(check.Log), ended: make(chan error, 1)}
	c := &PlaneConfig{Store: &Registry{KV: m.KV()}, Shape: s.shape, PublicIP: netip.MustParseAddr(ip), Log: slog.New(slog.NewTextHandler(s.log, nil))}
	if change != nil {
		change(c)
	}
	p := check.Must(NewPlane(c))(t)
	s.Plane = p
	ctx, cancel := context.WithCancel(t.Context())
	go func() { s.ended <- p.Run(ctx) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-s.ended })
	return s
}

// wait waits for Run to end by itself.
func (s *site) wait() error {
	err := <-s.ended
	s.stop = func() error { return err }
	return err
}

// routes returns the prefixes that the switch has.
func (s *site) prefixes() (list []string) {
	for _, r := range s.shape.Rows("flannel") {
		list = append(list, strings.Fields(r.String())[1])
	}
	slices.Sort(list)
	return list
}

func (s *site) want(what string, prefixes ...string) {
	s.t.Helper()
	synctest.Wait()
	slices.Sort(prefixes)
	if got := s.prefixes(); !slices.Equal(got, prefixes) {
		s.t.Errorf("%s: %v, want %v", what, got, prefixes)
	}
}

func (s *site) subnet() string {
	s.t.Helper()
	synctest.Wait()
	o := s.Status().Own
	if !o.Subnet.IsValid() {
		s.t.Fatalf("no lease: %+v", s.Status())
	}
	return o.Subnet.String()
}

const oneNetwork = `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`

// bubble runs a test of planes on a store, in a time of its own.
func bubble(t *testing.T, network string, f func(t *testing.T, m *Memory)) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(network)
		defer m.Close()
		f(t, m)
	})
}
