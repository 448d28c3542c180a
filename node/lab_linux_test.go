package node

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// lab is nodes on one wire, 192.0.2.0/24 and 2001:db8::/64, and the guests behind them:
//
//	guest: TAP, moved here from the node's host once it is open
//	   |
//	node 192.0.2.X: sockets and packet ports in a host of its own
//	   | eth0
//	 wire ... other nodes
type lab struct {
	t     *testing.T
	n     *netns.Net
	wire  *netns.Host
	sites []*site
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, n: netns.New(t)}
	l.wire = l.n.Switch("wire")
	return l
}

// site is a node and its host.
type site struct {
	*Node
	l    *lab
	h    *netns.Host
	addr string // on the wire
}

// plug makes a host on the wire; what it sends is seen there packet by packet.
func (l *lab) plug(name, addr string) *site {
	l.t.Helper()
	s := &site{l: l, h: l.n.Host(name), addr: addr}
	_, last, _ := strings.Cut(addr, "192.0.2.")
	l.n.Plug(s.h, addr+"/24,2001:db8::"+last+"/64", l.wire)
	s.h.TxOff("eth0")
	s.h.Ready()
	l.sites = append(l.sites, s)
	return s
}

// start runs a node in a host of its own.
func (l *lab) start(name, addr string, cfg *Config) *site {
	l.t.Helper()
	s := l.plug(name, addr)
	s.run(cfg)
	return s
}

// run runs the node.
func (s *site) run(cfg *Config) {
	s.l.t.Helper()
	s.Node = running(s.l.t)
	s.l.t.Cleanup(s.counters)
	s.h.Do(func() { carry.On(s.l.t, s.Switch()) })
	s.must(cfg)
}

// counters logs what the node has counted, and where it knows listeners, if the test has failed.
func (s *site) counters() {
	if !s.l.t.Failed() {
		return
	}
	var b strings.Builder
	line := func(what string, x any) {
		text, err := json.Marshal(x) // drops have names there
		fmt.Fprintf(&b, "%s: %s %v\n", what, text, err)
	}
	for _, p := range s.Switch().Stats().Ports {
		line("port "+p.Name, p)
	}
	for name, v := range s.Tunnels() {
		line("tunnel "+name, v.Stats())
	}
	for _, v := range s.Switch().VSIs() {
		if x := s.Snooper(v.VNI()); x != nil {
			line(fmt.Sprintf("multicast of segment %d", v.VNI()), x.Stats())
			for l := range x.All() {
				line(s.Switch().Name(l.Dest), l)
			}
		}
	}
	s.l.t.Logf("%s has counted:\n%s", s.h.Name, b.String())
}

// quiet starts a node whose own devices say nothing, and so teach nothing.
func (l *lab) quiet(name, addr string, cfg *Config) *site {
	l.t.Helper()
	s := l.plug(name, addr)
	s.h.Quiet()
	s.run(cfg)
	return s
}

// file starts a node as cmd/vxswitchd/configs has it.
func (l *lab) file(name string) *site {
	l.t.Helper()
	cfg := configFile(l.t, name)
	_, base, _ := strings.Cut(name, "/")
	return l.start(base, cfg.Tunnels[0].Local.String(), cfg)
}

func configFile(t *testing.T, name string) *Config {
	t.Helper()
	text, err := os.ReadFile("../cmd/vxswitchd/configs/" + name + ".json")
	must(t, err)
	return parse(t, string(text))
}

// apply is Apply in the node's host. Where flows are carried, guests have veth pairs instead of TAPs, which would have to stay.
func (s *site) apply(cfg *Config) (err error) {
	s.l.t.Helper()
	if carry.Kernel() {
		c := *cfg
		c.Ports = slices.Clone(cfg.Ports)
		for i := range c.Ports {
			if c.Ports[i].Type == PortTAP {
				c.Ports[i].Type = PortVeth
			}
		}
		cfg = &c
	}
	s.h.Do(func() { err = s.Apply(cfg) })
	return err
}

func (s *site) must(cfg *Config) {
	s.l.t.Helper()
	if err := s.apply(cfg); err != nil {
		s.l.t.Fatalf("%s: %v", s.h.Name, err)
	}
}

// guest makes a host out of a TAP of the node, with addresses and default routers, commas
// between them.
func (s *site) guest(tap, addrs, routers string) *netns.Host {
	s.l.t.Helper()
	g := s.l.n.Host(s.h.Name + "-" + tap)
	g.Sysctl("net.ipv6.conf.default.router_solicitations", "0")
	s.h.IP("link", "set", tap, "netns", g.NS)
	g.Up(tap)
	g.Addr(tap, addrs)
	for r := range strings.SplitSeq(routers, ",") {
		switch {
		case r == "":
		case strings.Contains(r, ":"):
			g.IP("-6", "route", "add", "default", "via", r, "dev", tap)
		default:
			g.IP("route", "add", "default", "via", r, "dev", tap, "onlink")
		}
	}
	return g
}

// wantTTL pings, which must be answered at the first time, and looks at the answer.
func wantTTL(t *testing.T, h *netns.Host, to string, ttl int) {
	t.Helper()
	if got := h.PingTTL(to); got != ttl {
		t.Errorf("%s pings %s: TTL %d, want %d", h.Name, to, got, ttl)
	}
}

// watch is what the hosts send to the wire.
type watch struct {
	l    *lab
	caps []*netns.Capture
}

func (l *lab) watch() *watch {
	l.t.Helper()
	w := &watch{l: l}
	for _, s := range l.sites {
		w.caps = append(w.caps, s.h.Capture("eth0", ""))
	}
	return w
}

// stop ends the watch and returns what was sent, as the fields of what matches a display
// filter of tshark.
func (w *watch) stop(filter string, fields ...string) (rows [][]string) {
	w.l.t.Helper()
	ps := netns.Sent(w.caps...)
	if len(ps) == 0 {
		return nil
	}
	return netns.Fields(w.l.t, ps, filter, fields...)
}

// lines ends the watch and returns, in order, the fields of what matches a filter: of values
// that a packet has twice, the outer ones.
func (w *watch) lines(filter string, fields ...string) (lines []string) {
	w.l.t.Helper()
	for _, r := range w.stop(filter, fields...) {
		for i := range r {
			r[i], _, _ = strings.Cut(r[i], ",")
		}
		lines = append(lines, strings.Join(r, " "))
	}
	slices.Sort(lines)
	return lines
}

// want compares lines with those that should be, in any order.
func (w *watch) want(filter string, fields []string, lines ...string) {
	w.l.t.Helper()
	got := w.lines(filter, fields...)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		w.l.t.Errorf("on the wire, of %q\n%q\nwant\n%q", filter, got, lines)
	}
}

// policyDrops returns how many frames from a port a policy or a guard has dropped.
func (s *site) policyDrops(port string) uint64 { return s.stats(port).RxDrops[frame.Policy] }

func (s *site) stats(port string) vswitch.PortStats {
	s.l.t.Helper()
	for _, p := range s.Switch().Stats().Ports {
		if p.Name == port {
			return p
		}
	}
	s.l.t.Fatalf("%s: no port %s", s.h.Name, port)
	return vswitch.PortStats{}
}

// dest returns where a node has a MAC, by name.
func (s *site) dest(vni frame.VNI, mac string) string {
	s.l.t.Helper()
	vsi, err := s.Switch().VSI(vni, nil)
	must(s.l.t, err)
	m, err := frame.ParseMAC(mac)
	must(s.l.t, err)
	d, ok := vsi.FDB().Lookup(m)
	if !ok {
		return ""
	}
	return s.Switch().Name(d)
}

// prefixOf is an address of a subnet of a fabric: 10.0.SUBNET.N, or 2001:db8:SUBNET::N.
func prefixOf(v6 bool, subnet, n int) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:%d::%d", subnet, n))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", subnet, n))
}
