package node

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/geneve"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

// Two TUNs joined by a cross-connect, made call by call: packets pass as they are, and whatever is changed
// of the cross-connect, its port and its tunnel under traffic.
func TestCrossConnect(t *testing.T) {
	for _, kind := range []encap.Type{encap.TypeIPIP, encap.TypeGPE, encap.TypeFOU, encap.TypeOwn} {
		t.Run(kind.String(), func(t *testing.T) {
			cfg := vtep.Config{Type: kind, Peers: vtep.ListedPerVNI}
			switch kind {
			case encap.TypeFOU:
				cfg.Port = 5555
			case encap.TypeOwn:
				cfg.Own, cfg.Port = geneve.Geneve{}, geneve.Port
			}
			l := newLab(t)
			one, two := l.plug("one", "192.0.2.1"), l.plug("two", "192.0.2.2")
			var tun *port.Device
			var seg *VSI
			open := func(s *site, addr string) {
				var err error
				tun, err = port.OpenTUN("tun0", nil)
				must(t, err)
				must(t, seg.Add(tun, nil))
				s.h.IP("addr", "add", addr, "dev", "tun0")
			}
			for _, x := range []struct {
				s           *site
				addr, other string
			}{{two, "10.9.0.2/24", "192.0.2.1"}, {one, "10.9.0.1/24", "192.0.2.2"}} {
				x.s.Node = running(t)
				x.s.h.Do(func() {
					v, err := x.s.Tunnel("vx", Tunnel{Config: cfg, Local: netip.MustParseAddr(x.s.addr)})
					must(t, err)
					seg, err = x.s.Segment(7, &Segment{Tunnel: v.Name(), CrossConnect: netip.MustParseAddr(x.other)})
					must(t, err)
					open(x.s, x.addr)
				})
			}
			through := func(want bool) {
				t.Helper()
				out := one.h.Run("sh", "-c", "ping -c 1 -W 1 10.9.0.2; true")
				if got := strings.Contains(out, " ttl=64 "); got != want {
					t.Errorf("ping goes through: %v, want %v\n%s", got, want, out)
				}
			}
			through(true)
			fits := map[encap.Type]string{encap.TypeIPIP: " mtu 1480 ", encap.TypeGPE: " mtu 1464 ", encap.TypeFOU: " mtu 1472 ", encap.TypeOwn: " mtu 1456 "}[kind]
			if got := one.h.IP("link", "show", "tun0"); !strings.Contains(got, fits) {
				t.Error(got)
			}
			to := func(peer string) {
				t.Helper()
				must(t, seg.Update(func(s *Segment) error { s.CrossConnect = netip.MustParseAddr(peer); return nil }))
			}
			to("192.0.2.9")
			through(false)
			to("192.0.2.2")
			through(true)
			for _, p := range one.Tunnels()["vx"].Stats().Peers {
				if want := p.Addr.Addr().String() == "192.0.2.2"; p.Listed != want {
					t.Errorf("peer %+v: want listed %v", p, want)
				}
			}
			one.h.Do(func() {
				must(t, seg.Remove(tun))
				open(one, "10.9.0.1/24")
				through(true)
				must(t, one.Update(func(c *Config) error { c.Tunnels[0].TTL = 9; return nil })) // opened anew
			})
			through(true)
			must(t, seg.Update(func(s *Segment) error { s.CrossConnect, s.Members = netip.Addr{}, nil; return nil }))
			through(false)
		})
	}
}

// Calls may give an IP port its gateway later; a file has to have it.
func TestIPStepByStep(t *testing.T) {
	l := newLab(t)
	s := l.plug("one", "192.0.2.1")
	s.Node = running(t)
	var tun *port.Device
	s.h.Do(func() {
		var err error
		tun, err = port.OpenTUN("tun0", nil)
		must(t, err)
		seg, err := s.Segment(1, nil)
		must(t, err)
		must(t, seg.Add(tun, nil))
		const needed = `segments[0].members[0].port: "tun0": an IP port requires a gateway or a cross-connect`
		if err := s.Apply(s.Config()); err == nil || err.Error() != needed {
			t.Errorf("without a gateway: %v", err)
		}
		must(t, seg.Gateway("tenant", Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.254/32")}}))
		must(t, s.Update(func(c *Config) error {
			c.VRFs[0].Routes = []Route{{Prefix: netip.MustParsePrefix("10.9.0.0/24"), Via: []Hop{{Segment: 1}}}}
			return nil
		}))
	})
	s.h.IP("addr", "add", "10.9.0.1/24", "dev", "tun0")
	s.h.Ping("10.9.0.254", 3)
	must(t, s.Apply(s.Config()))
}
