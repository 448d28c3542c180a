package flannel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Nodes come and go, and each has the subnets of the others.
func TestPlanes(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		a, b := run(t, m, "192.0.2.1", nil), run(t, m, "192.0.2.2", nil)
		<-a.Ready()
		sa, sb := a.subnet(), b.subnet()
		a.want("two nodes", sb)
		b.want("two nodes", sa)
		c := run(t, m, "192.0.2.3", nil)
		sc := c.subnet()
		a.want("three nodes", sb, sc)
		b.want("three nodes", sa, sc)
		c.want("three nodes", sa, sb)
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		a.want("one has stopped, and has its lease", sb, sc)
		if s := c.Status(); s.Phase != Stopped || !slices.Equal(c.shape.closed, []bool{false}) {
			t.Errorf("%v, closed %v", s.Phase, c.shape.closed)
		}
		mac := c.Status().Own.IPv4.MAC
		c = run(t, m, "192.0.2.3", nil)
		if s := c.subnet(); s != sc || c.Status().Own.IPv4.MAC != mac {
			t.Errorf("%s and %v after a restart, %s and %v before", s, c.Status().Own.IPv4.MAC, sc, mac)
		}
		c.stop()
		time.Sleep(DefaultTTL + time.Second)
		a.want("its lease has ended", sb)
		b.want("its lease has ended", sa)
		s := a.Status()
		if s.Phase != Following || s.Leases != 1 || s.Snapshots != 1 || !s.Stale.IsZero() || s.LastError != "" || time.Until(s.Until) < DefaultRenewMargin {
			t.Errorf("%+v", s)
		}
		if r := a.Remotes(); len(r) != 1 || r[0].Lease.IPv4.PublicIP.String() != "192.0.2.2" || len(r[0].Rows) != 1 {
			t.Errorf("%+v", r)
		}
		for _, s := range []*site{a, b} {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			check.ErrorHas(t, s.Run(t.Context()), "flannel: Plane.Run: it was called before; make a new Plane")
		}
	})
}

// A lease is renewed as long as the plane runs, whatever margin and time to live.
func TestRenewal(t *testing.T) {
	for _, c := range []struct{ ttl, margin time.Duration }{{DefaultTTL, 0}, {2 * time.Second, 0}, {DefaultTTL, 23 * time.Hour}, {time.Minute, time.Second}} {
		bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
			m.TTL = c.ttl
			s := run(t, m, "192.0.2.1", func(x *PlaneConfig) { x.Margin = c.margin })
			subnet := s.subnet()
			time.Sleep(30 * c.ttl)
			if s.subnet() != subnet || s.Status().Phase != Following || !s.Status().Until.After(time.Now()) {
				t.Errorf("%v: %+v", c, s.Status())
			}
			if n := m.revision; n < 28 || n > 100 {
				t.Errorf("%v: %d renewals", c, n)
			}
			s.stop()
		})
	}
}

// Whoever takes the lease ends the plane, and the switch carries nothing any longer.
func TestLost(t *testing.T) {
	for name, take := range map[string]func(m *Memory, s *site){
		"removed": func(m *Memory, s *site) { m.Remove(s.Status().Own.Subnet.Key()) },
		"changed": func(m *Memory, s *site) { m.Put(s.Status().Own.Subnet.Key(), []byte("x"), time.Hour) },
		"a twin":  nil,
		"taken away and given to another, seen at once": func(m *Memory, s *site) {
			key := s.Status().Own.Subnet.Key()
			m.Fail(errors.New("away"))
			m.Remove(key)
			m.Put(key, []byte(`{"PublicIP":"192.0.2.9"}`), time.Hour)
			m.Fail(nil)
		},
		"away for more than a day": func(m *Memory, s *site) {
			m.Fail(errors.New("away"))
			time.Sleep(25 * time.Hour)
			if s.Status().Phase != Following || len(s.prefixes()) != 1 {
				t.Errorf("while the store is away: %+v", s.Status())
			}
			m.Fail(nil)
		},
	} {
		bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
			m.Put("10.3.200.0-24", record("10.3.200.0-24", 0, vxlan("192.0.2.200", 200)).Value, 0)
			s := run(t, m, "192.0.2.1", nil)
			s.subnet()
			s.want("before", "10.3.200.0/24")
			if take == nil { // another node with the same PublicIP
				twin := run(t, m, "192.0.2.1", nil)
				defer func() { twin.stop() }()
			} else {
				take(m, s)
			}
			err := s.wait()
			if !errors.Is(err, ErrLost) || s.Status().Phase != Lost {
				t.Errorf("%s: %v, %v", name, err, s.Status().Phase)
			}
			if twin := strings.Contains(err.Error(), "has the public address 192.0.2.1, too"); twin != (take == nil) {
				t.Errorf("%s: %v", name, err)
			}
			s.want(name)
			if !slices.Equal(s.shape.closed, []bool{true}) || s.log.Count("level=ERROR") != 0 { // who runs it says so
				t.Errorf("%s: closed %v, log %s", name, s.shape.closed, s.log)
			}
		})
	}
}

// While the store is away, rows stay and the status is stale. When it is back, one snapshot has what has happened.
func TestStale(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		a, b := run(t, m, "192.0.2.1", nil), run(t, m, "192.0.2.2", nil)
		sa, sb := a.subnet(), b.subnet()
		a.want("before", sb)
		m.Fail(errors.New("away"))
		begun := time.Now()
		time.Sleep(2 * time.Hour)
		a.want("away", sb)
		if s := a.Status(); !s.Stale.Equal(begun) || !strings.Contains(s.LastError, "away") || s.Phase != Following {
			t.Errorf("%+v", s)
		}
		m.Put("10.3.200.0-24", record("10.3.200.0-24", 0, vxlan("192.0.2.200", 200)).Value, 0)
		m.Compact()
		m.Fail(nil)
		time.Sleep(lastRetry)
		a.want("back", sb, "10.3.200.0/24")
		b.want("back", sa, "10.3.200.0/24")
		s := a.Status()
		if !s.Stale.IsZero() || s.LastError != "" || s.Snapshots != 2 {
			t.Errorf("%+v", s)
		}
		if n := a.log.Count("level=WARN"); n != 2 || a.log.Count(`level=WARN msg="flannel: the store is back"`) != 1 {
			t.Errorf("%d warnings of one outage, want one of its begin and one of its end:\n%s", n, a.log)
		}
		time.Sleep(30 * time.Hour)
		a.want("a day later", sb, "10.3.200.0/24")
		a.stop()
		b.stop()
	})
}

// A renewal that fails is tried again until the lease ends, and succeeds if the store is back in time.
func TestRenewLate(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		s := run(t, m, "192.0.2.1", nil)
		subnet := s.subnet()
		time.Sleep(22 * time.Hour)
		m.Fail(errors.New("away"))
		time.Sleep(time.Hour + 50*time.Minute) // ten minutes are left
		if left := time.Until(s.Status().Until); left < 9*time.Minute || left > 11*time.Minute {
			t.Errorf("%v left", left)
		}
		m.Fail(nil)
		time.Sleep(2 * time.Minute)
		if s.subnet() != subnet || time.Until(s.Status().Until) < 23*time.Hour {
			t.Errorf("%+v", s.Status())
		}
		s.stop()
	})
}

// A plane waits for the store and the network, and ends while it does.
func TestWaits(t *testing.T) {
	bubble(t, "", func(t *testing.T, m *Memory) {
		s := run(t, m, "192.0.2.1", nil)
		time.Sleep(time.Hour)
		if st := s.Status(); st.Phase != Waiting || !strings.Contains(st.LastError, "no network") || s.log.Count("level=WARN") != 1 {
			t.Errorf("%+v", st)
		}
		m.Fail(errors.New("away"))
		time.Sleep(time.Hour)
		if n := s.log.Count("level=WARN"); n != 2 || s.log.Count("away") != 1 {
			t.Errorf("%d warnings of two errors:\n%s", n, s.log)
		}
		m.Fail(nil)
		if err := s.SetLinks(nil); err == nil {
			t.Error("SetLinks before there is a lease: no error")
		}
		m.SetNetwork(oneNetwork)
		time.Sleep(lastRetry)
		s.subnet()
		s.stop()
		m.SetNetwork("")
		s = run(t, m, "192.0.2.1", nil)
		time.Sleep(time.Minute)
		if err := s.stop(); err != nil || len(s.shape.closed) != 0 {
			t.Errorf("%v, closed %v", err, s.shape.closed)
		}
	})
}

func TestRunErrors(t *testing.T) {
	boom := errors.New("no device")
	for want, c := range map[string]struct {
		network string
		change  func(c *PlaneConfig)
	}{
		"no subnet is free":                        {`{"Network": "10.3.0.0/28", "Backend": {"Type": "vxlan"}}`, nil},
		"must be one of vxlan, host-gw, ipip, udp": {`{"Network": "10.3.0.0/16", "Backend": {"Type": "wireguard"}}`, nil},
		"flannel: PublicIPv6: the node has no IPv6 address, and the network [fc00:3::/48] vxlan needs one": {`{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`, nil},
		"flannel: no device": {oneNetwork, func(c *PlaneConfig) { c.Shape.(*fakeShape).err = boom }},
		"must be 0 or 3":     {`{"Network": "10.3.0.0/16", "Backend": {"Type": "ipip"}}`, func(c *PlaneConfig) { c.Generation = 1 }},
	} {
		bubble(t, c.network, func(t *testing.T, m *Memory) {
			for i := range 3 {
				m.Put(fmt.Sprintf("10.3.0.%d-30", 4+4*i), nil, 0)
			}
			s := run(t, m, "192.0.2.1", c.change)
			if err := s.wait(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// A bad lease is named once, counted as long as it is there, and does not delay others.
func TestBadLeases(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		s := run(t, m, "192.0.2.1", nil)
		s.subnet()
		bad := map[string]Attrs{
			"10.3.201.7-24": vxlan("192.0.2.201", 201), "10.3.202.0-24": vxlan("224.0.0.1", 202), "10.3.203.0-24": vxlan("192.0.2.1", 203), "rubbish": {},
		}
		for range 3 {
			for k, a := range bad {
				m.Put(k, a.Value(), 0)
			}
			m.Put("10.3.200.0-24", record("", 0, vxlan("192.0.2.200", 200)).Value, 0)
			s.want("beside bad ones", "10.3.200.0/24")
			m.Remove("10.3.200.0-24")
			s.want("only bad ones")
		}
		if got := fmt.Sprint(s.Status().Refused); got != "map[key:1 host-bits:1 public-ip:1 own-public-ip:1]" {
			t.Error(got)
		}
		if n := s.log.Count("level=WARN"); n != len(bad) {
			t.Errorf("%d lines for %d leases:\n%s", n, len(bad), s.log)
		}
		for k := range bad {
			m.Remove(k)
		}
		s.want("none")
		if got := s.Status().Refused; len(got) != 0 {
			t.Error(got)
		}
		for i := range 500 {
			m.Put(fmt.Sprintf("rubbish %d", i), nil, 0)
		}
		synctest.Wait()
		if n := s.log.Count("level=WARN"); n > len(bad)+21 {
			t.Errorf("%d lines for 500 leases", n)
		}
		s.stop()
	})
}

// Generations 1 and 2 answer what packets ask for, and forget it after a while.
func TestPlaneMisses(t *testing.T) {
	for _, g := range []int{1, 2} {
		bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
			m.Put("10.3.200.0-24", record("", 0, vxlan("192.0.2.200", 200)).Value, 0)
			s := run(t, m, "192.0.2.1", func(c *PlaneConfig) { c.Generation = g })
			s.subnet()
			base := len(s.shape.Rows("flannel"))
			ip := netip.MustParseAddr("10.3.200.7")
			miss := frame.Event{Kind: frame.EventNeighbourMiss, VNI: 1, IP: ip}
			other := miss
			other.VNI = 7
			s.shape.misses <- other
			s.shape.misses <- miss
			s.shape.misses <- frame.Event{Kind: frame.EventOverflow, VNI: 1}
			unknown := miss
			unknown.IP = netip.MustParseAddr("10.3.99.7")
			s.shape.misses <- unknown
			synctest.Wait()
			if got := s.shape.Neighbour(1, ip); got != mac(200) || len(s.shape.Rows("flannel")) != base+1 {
				t.Errorf("generation %d: %v, rows %v", g, got, s.shape.Rows("flannel"))
			}
			if st := s.Status(); st.Misses != 2 || st.Unanswered != 1 {
				t.Errorf("%+v", st)
			}
			time.Sleep(DefaultMissAge + 2*time.Minute)
			if len(s.shape.Rows("flannel")) != base {
				t.Errorf("generation %d: later %v", g, s.shape.Rows("flannel"))
			}
			s.stop()
		})
	}
}

// Direct ways are those of the links of the Shape, or of the configuration, and change at once with SetLinks.
func TestPlaneLinks(t *testing.T) {
	bubble(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "DirectRouting": true}}`, func(t *testing.T, m *Memory) {
		m.Put("10.3.200.0-24", record("", 0, vxlan("192.0.2.200", 200)).Value, 0)
		near, elsewhere := prefixes("192.0.2.0/24"), prefixes("203.0.113.0/24")
		for _, c := range []struct{ shape, config []netip.Prefix }{{nil, near}, {near, nil}, {near, elsewhere}, {nil, nil}} {
			s := &hostShape{newFakeShape(), c.shape}
			s.fakeShape.links = make(chan []netip.Prefix, 1)
			p := run(t, m, "192.0.2.1", func(x *PlaneConfig) { x.Shape, x.Links = s, c.config })
			p.subnet()
			want := func(what string, direct bool) {
				t.Helper()
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.routes) != 1 || s.routes[0].Direct != direct {
					t.Errorf("%+v, %s: routes %v", c, what, s.routes)
				}
			}
			want("at first", len(c.shape)+len(c.config) == 1)
			for _, links := range [][]netip.Prefix{near, nil, near} {
				if err := p.SetLinks(links); err != nil {
					t.Error(err)
				}
				want(fmt.Sprint(links), links != nil)
			}
			s.fakeShape.links <- elsewhere
			synctest.Wait()
			want("the shape has others", c.config != nil)
			p.stop()
			if err := p.SetLinks(nil); err == nil {
				t.Error("SetLinks after the end: no error")
			}
			want("the end", c.config != nil)
		}
	})
}

// A hostShape is one whose host routes.
type hostShape struct {
	*fakeShape
	links []netip.Prefix
}

func (s *hostShape) Open(n *Network, own *Own, generation int) (MapperConfig, error) {
	return MapperConfig{Host: true, Links: s.links}, nil
}

func TestPlaneConfig(t *testing.T) {
	good := PlaneConfig{Store: &Registry{}, Shape: newFakeShape(), PublicIP: netip.MustParseAddr("192.0.2.1")}
	for want, change := range map[string]func(c *PlaneConfig){
		"":                              func(c *PlaneConfig) {},
		"Store: it is needed":           func(c *PlaneConfig) { c.Store = nil },
		"Shape: it is needed":           func(c *PlaneConfig) { c.Shape = nil },
		"PublicIP: it is needed":        func(c *PlaneConfig) { c.PublicIP = netip.Addr{} },
		"PublicIP: 255.255.255.255:":    func(c *PlaneConfig) { c.PublicIP = netip.MustParseAddr("255.255.255.255") },
		"PublicIP: 127.0.0.1: must be":  func(c *PlaneConfig) { c.PublicIP = netip.MustParseAddr("127.0.0.1") },
		"PublicIP: fd00::1: must be":    func(c *PlaneConfig) { c.PublicIP = netip.MustParseAddr("fd00::1") },
		"PublicIPv6: ff02::1: must be":  func(c *PlaneConfig) { c.PublicIPv6 = netip.MustParseAddr("ff02::1") },
		"MAC: ff:ff:ff:ff:ff:ff: must":  func(c *PlaneConfig) { c.MAC = frame.Broadcast },
		"Generation: 9: must be 1 to 3": func(c *PlaneConfig) { c.Generation = 9 },
		"Margin: -1: must be 0 or more": func(c *PlaneConfig) { c.Margin = -1 },
		"MissAge: 1ns: must be 1s":      func(c *PlaneConfig) { c.MissAge = 1 },
	} {
		c := good
		change(&c)
		_, err := NewPlane(&c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), `: "":`, ":"), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := NewPlane(nil); err == nil {
		t.Error("nil: no error")
	}
	if got := slices.Sorted(maps.Keys(map[string]bool{Waiting.String(): true, Acquiring.String(): true, Following.String(): true, Lost.String(): true, Stopped.String(): true})); len(got) != 5 {
		t.Error(got)
	}
}

// From a store with N leases to the rows in a model.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := NewMemory(`{"Network": "10.0.0.0/8", "Backend": {"Type": "vxlan"}}`)
			defer m.Close()
			for i := range n {
				key := fmt.Sprintf("10.%d.%d.0-24", 1+i/250, 1+i%250)
				m.Put(key, record(key, 0, vxlan(fmt.Sprintf("172.16.%d.%d", i/250, 1+i%250), i+1)).Value, 0)
			}
			for b.Loop() {
				c := &PlaneConfig{Store: &Registry{KV: m.KV()}, Shape: &quickShape{newFakeShape()}, PublicIP: netip.MustParseAddr("192.0.2.1")}
				p := check.Must(NewPlane(c))(b)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan error)
				go func() { ended <- p.Run(ctx) }()
				<-p.Ready()
				cancel()
				<-ended
			}
		})
	}
}

// A quickShape takes rows without a look: the Model is quadratic.
type quickShape struct{ *fakeShape }

func (s *quickShape) Program(string, control.Update) error { return nil }
