package node

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// outer is what a packet to a peer has outside: port, TTL, TOS, and whether its source port is one
// of 40000 to 40099 and its checksum is there.
type outer struct {
	port, ttl, tos string
	own, summed    bool
}

// outers returns those of the packets in a capture, by the peers they go to.
func outers(t *testing.T, ps []netns.Packet, from string) map[string][]outer {
	t.Helper()
	m := map[string][]outer{}
	for _, r := range netns.Fields(t, ps, "udp && ip.src == "+from, "ip.dst", "udp.dstport", "ip.ttl", "ip.dsfield", "udp.srcport", "udp.checksum") {
		for i := range r {
			r[i], _, _ = strings.Cut(r[i], ",")
		}
		src, _ := strconv.Atoi(r[4])
		if o := (outer{r[1], r[2], r[3], src >= 40000 && src < 40100, r[5] != "0x0000"}); !slices.Contains(m[r[0]], o) {
			m[r[0]] = append(m[r[0]], o)
		}
	}
	return m
}

// Two peers of the kernel's, one of them on another port: each gets headers of its own, in what is
// flooded and what is not, listed or learned. While a guest pings, other settings take effect
// without a packet being lost; what cannot be applied leaves those that there were.
func TestPeerSettings(t *testing.T) {
	l := newLab(t)
	two, three := l.plug("two", "192.0.2.2"), l.plug("three", "192.0.2.3")
	two.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Addr: "10.0.10.2/24"})
	three.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.3", Port: 8472, Dev: "eth0", Addr: "10.0.10.3/24", Args: []string{"nolearning"}})
	three.h.Run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx0", "dst", "192.0.2.1", "port", "4789")
	s := l.start("node", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "vx", "local": "192.0.2.1", "tos": 32, "peerSettings": [
	    {"address": "192.0.2.2", "ttl": 33, "tos": 16, "srcPorts": "40000-40099", "udpChecksum": "on"},
	    {"address": "192.0.2.3", "ttl": 77, "port": 8472}]}],
	  "ports": [{"name": "tap0", "mtu": 1450}],
	  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "members": [{"port": "tap0"}]}]}`))
	guest := s.guest("tap0", "10.0.10.1/24", "")
	wire := s.h.Capture("eth0", "")
	three.h.Ping("10.0.10.1", 2) // learned, and answered by its kernel's port
	guest.Ping("10.0.10.2", 2)
	want := func(ps []netns.Packet, peer string, w ...outer) {
		t.Helper()
		if got := outers(t, ps, "192.0.2.1")[peer]; !slices.Equal(got, w) {
			t.Errorf("to %s: %v, want %v", peer, got, w)
		}
	}
	ps := wire.Stop()
	want(ps, "192.0.2.2", outer{"4789", "33", "0x10", true, true})
	want(ps, "192.0.2.3", outer{"8472", "77", "0x20", false, false})

	s.must(changed(t, s.Config(), func(c *Config) { // listed: what is flooded, too
		c.Segments[0].Flood = append(c.Segments[0].Flood, netip.MustParseAddr("192.0.2.3"))
	}))
	vx := s.Tunnels()["vx"]
	stop := guest.Pinging("10.0.10.2")
	wire = s.h.Capture("eth0", "")
	setting := func(i int, f func(p *PeerSetting)) *Config {
		return changed(t, s.Config(), func(c *Config) { f(&c.Tunnels[0].PeerSettings[i]) })
	}
	for _, ttl := range []vtep.Value{34, 35, 36, 34} {
		s.must(setting(0, func(p *PeerSetting) {
			p.TTL, p.TxConfig = ttl, underlay.TxConfig{}
			if ttl != 35 {
				p.SrcPorts = underlay.PortRange{Lo: 40000, Hi: 40099}
			}
		}))
		wire.Want(1, func(p netns.Packet) bool { return p.Out && len(p.Data) > 22 && p.Data[22] == byte(ttl) })
	}
	before := dump(s.Node)
	cfg := setting(0, func(p *PeerSetting) { p.TTL, p.Port = 99, 1 })
	cfg.Ports = append(cfg.Ports, Port{Name: "vm9", DeviceConfig: port.DeviceConfig{Namespace: "vxs-nowhere"}})
	if err := s.apply(cfg); err == nil {
		t.Error("a port in no namespace")
	}
	failed := false
	s.fault = func(step string) error { // found after the settings have been made
		guest.Ping("10.0.10.2", 1) // whichever step is next, there or back
		if step == "rows" && !failed {
			failed = true
			return errors.New("no")
		}
		return nil
	}
	if err := s.apply(setting(0, func(p *PeerSetting) { p.TTL = 98 })); err == nil || err.Error() != "no" {
		t.Error(err)
	}
	s.fault = nil
	if got := dump(s.Node); !slices.Equal(got, before) {
		t.Errorf("%q\nbefore\n%q", got, before)
	}
	if sent, answered := stop(); sent < 5 || answered < sent {
		t.Errorf("%d of %d pings answered", answered, sent)
	}
	if s.Tunnels()["vx"] != vx {
		t.Error("the tunnel was made anew")
	}
	seen := outers(t, wire.Stop(), "192.0.2.1")["192.0.2.2"]
	for i := range seen {
		seen[i].summed = false // pings that leave together have a checksum
	}
	for _, w := range []outer{{"4789", "34", "0x10", true, false}, {"4789", "35", "0x10", false, false}, {"4789", "36", "0x10", true, false}} {
		if !slices.Contains(seen, w) {
			t.Errorf("%v was not seen: %v", w, seen)
		}
	}
	if slices.ContainsFunc(seen, func(o outer) bool { return o.ttl == "99" || o.port != "4789" }) {
		t.Errorf("of a configuration that was never there: %v", seen)
	}

	s.must(changed(t, s.Config(), func(c *Config) { c.Tunnels[0].PeerSettings = c.Tunnels[0].PeerSettings[1:] }))
	wire = s.h.Capture("eth0", "")
	guest.Inject("tap0", broadcast)
	wire.Want(2, func(p netns.Packet) bool { return p.Out && bytes.Contains(p.Data, broadcast) })
	ps = wire.Stop()
	want(ps, "192.0.2.2", outer{"4789", "64", "0x20", false, false})
	want(ps, "192.0.2.3", outer{"8472", "77", "0x20", false, false})
}

// A tunnel with both families: the kernel's peers of both get what a guest floods, once each, and
// answer; neither hears the other through the node. Both addresses move while the guest pings, and
// one that cannot be had moves none. Without its IPv6 address the tunnel is one for IPv4, and again
// for both.
func TestTunnelOfBothFamilies(t *testing.T) {
	l := newLab(t)
	four, six := l.plug("four", "192.0.2.2"), l.plug("six", "192.0.2.3")
	four.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Addr: "10.0.10.2/24"})
	six.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "2001:db8::3", Remote: "2001:db8::1", Dev: "eth0", Addr: "10.0.10.3/24"})
	s := l.plug("node", "192.0.2.1")
	s.h.Addr("eth0", "192.0.2.11/24,2001:db8::11/64")
	s.run(parse(t, `{
	  "tunnels": [{"name": "vx", "local": "192.0.2.1", "local6": "2001:db8::1", "peerSettings": [{"address": "2001:db8::3", "ttl": 9}]}],
	  "ports": [{"name": "tap0", "mtu": 1430}],
	  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2", "2001:db8::3"], "members": [{"port": "tap0"}]}]}`))
	guest := s.guest("tap0", "10.0.10.1/24", "")
	w := l.watch()
	guest.Inject("tap0", broadcast)
	guest.Ping("10.0.10.2", 2)
	guest.Ping("10.0.10.3", 2)
	four.h.Ping("10.0.10.1", 1)
	six.h.Ping("10.0.10.1", 1)
	w.want("eth.type == 0x88b5", []string{"ip.dst", "ipv6.dst", "ipv6.hlim", "vxlan.vni"}, "192.0.2.2   10", " 2001:db8::3 9 10")
	if out, _ := four.h.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.0.10.3"); !strings.Contains(out, " 0 received") {
		t.Errorf("peers reach each other through the node:\n%s", out)
	}

	vx := s.Tunnels()["vx"]
	move := func(four, six string) *Config {
		return changed(t, s.Config(), func(c *Config) {
			c.Tunnels[0].Local, c.Tunnels[0].Local6 = netip.MustParseAddr(four), netip.MustParseAddr(six)
		})
	}
	bound := func(addrs ...string) {
		t.Helper()
		out := s.h.Run("ss", "-Hanu", "sport = 4789")
		for _, a := range addrs {
			if !strings.Contains(out, a+":4789") {
				t.Errorf("not bound to %s:\n%s", a, out)
			}
		}
		if n := strings.Count(out, "\n"); n != len(addrs) {
			t.Errorf("bound to %d addresses:\n%s", n, out)
		}
	}
	bound("192.0.2.1", "[2001:db8::1]")
	stop4, stop6 := guest.Pinging("10.0.10.2"), guest.Pinging("10.0.10.3")
	for _, to := range [][2]string{{"192.0.2.11", "2001:db8::11"}, {"192.0.2.1", "2001:db8::11"}, {"192.0.2.1", "2001:db8::1"}} {
		s.must(move(to[0], to[1]))
		bound(to[0], "["+to[1]+"]")
		time.Sleep(100 * time.Millisecond)
	}
	before := dump(s.Node)
	if err := s.apply(move("192.0.2.11", "2001:db8::77")); err == nil || strings.Contains(err.Error(), "restoring") {
		t.Error(err)
	}
	s.fault = func(step string) error {
		if step == "address of a tunnel" {
			s.fault = func(step string) error {
				if step == "address of a tunnel" {
					s.fault = nil
					return errors.New("no")
				}
				return nil
			}
		}
		return nil
	}
	if err := s.apply(move("192.0.2.11", "2001:db8::11")); err == nil || strings.Contains(err.Error(), "restoring") {
		t.Error(err)
	}
	bound("192.0.2.1", "[2001:db8::1]")
	if got := dump(s.Node); !slices.Equal(got, before) {
		t.Errorf("%q\nbefore\n%q", got, before)
	}
	for what, stop := range map[string]func() (sent, answered int){"IPv4": stop4, "IPv6": stop6} {
		if sent, answered := stop(); sent < 5 || answered < sent/2 {
			t.Errorf("%s: %d of %d pings answered", what, answered, sent)
		}
	}
	if s.Tunnels()["vx"] != vx {
		t.Error("the tunnel was made anew")
	}

	both := s.Config()
	if err := s.apply(changed(t, both, func(c *Config) { c.Tunnels[0].Local6 = netip.Addr{} })); err == nil || !strings.Contains(err.Error(), "peerSettings[0].address: 2001:db8::3: is of another address family than 192.0.2.1") {
		t.Error(err)
	}
	s.must(changed(t, both, func(c *Config) {
		c.Tunnels[0].Local6, c.Tunnels[0].PeerSettings, c.Segments[0].Flood = netip.Addr{}, nil, c.Segments[0].Flood[:1]
	}))
	bound("192.0.2.1")
	guest.Ping("10.0.10.2", 1)
	s.must(both)
	bound("192.0.2.1", "[2001:db8::1]")
	guest.Ping("10.0.10.2", 1)
	guest.Ping("10.0.10.3", 1)
}

// Past the stack of the host, on one interface, it is the same; a peer of the second family is
// behind a router of that family.
func TestPacketUnderlayOfBothFamilies(t *testing.T) {
	l := newLab(t)
	four, six := l.plug("four", "192.0.2.2"), l.plug("six", "192.0.2.3")
	four.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.101", Dev: "eth0", Addr: "10.0.10.2/24"})
	six.h.IP("addr", "add", "2001:db8:9::3/128", "dev", "lo", "nodad")
	six.h.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "2001:db8:9::3", Remote: "2001:db8::101", Addr: "10.0.10.3/24"})
	s := l.start("node", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "vx", "underlay": "packet", "bind": "eth0", "local": "192.0.2.101", "local6": "2001:db8::101", "gateway6": "2001:db8::3",
	    "peerSettings": [{"address": "2001:db8:9::3", "ttl": 9, "srcPorts": "40000-40099"}]}],
	  "ports": [{"name": "tap0", "mtu": 1430}],
	  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2", "2001:db8:9::3"], "members": [{"port": "tap0"}]}]}`))
	guest := s.guest("tap0", "10.0.10.1/24", "")
	w := l.watch()
	guest.Inject("tap0", broadcast)
	guest.Ping("10.0.10.2", 2)
	guest.Ping("10.0.10.3", 2)
	w.want("eth.type == 0x88b5", []string{"ip.dst", "ipv6.dst", "ipv6.hlim"}, "192.0.2.2  ", " 2001:db8:9::3 9")
	vx := s.Tunnels()["vx"]
	s.must(changed(t, s.Config(), func(c *Config) { c.Tunnels[0].Local6 = netip.MustParseAddr("2001:db8::102") }))
	guest.Ping("10.0.10.2", 1)
	six.h.Run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx0", "dst", "2001:db8::102")
	guest.Ping("10.0.10.3", 1)
	if s.Tunnels()["vx"] != vx {
		t.Error("the tunnel was made anew")
	}
}

// IP in IP over both: routes to nodes of either family.
func TestIPIPOfBothFamilies(t *testing.T) {
	l := newLab(t)
	const text = `{"tunnels": [{"name": "ip0", "type": "ipip", "local": "192.0.2.%", "local6": "2001:db8::%", "peerSettings": [{"address": "192.0.2.#", "ttl": 11}, {"address": "2001:db8::#", "ttl": 12}]}],
	  "ports": [{"name": "tap0", "mtu": 1400}],
	  "segments": [{"vni": 50, "tunnel": "ip0", "gateway": {"vrf": "red"}},
	    {"vni": 1, "members": [{"port": "tap0"}], "gateway": {"vrf": "red", "mac": "02:00:00:00:00:0%", "addresses": ["10.0.%.254/24", "10.1.%.254/24"]}}],
	  "vrfs": [{"name": "red", "routes": [
	    {"prefix": "10.0.#.0/24", "via": [{"segment": 50, "remote": "192.0.2.#"}]},
	    {"prefix": "10.1.#.0/24", "via": [{"segment": 50, "remote": "2001:db8::#"}]}]}]}`
	site := func(me, other string) *site {
		return l.start("n"+me, "192.0.2."+me, parse(t, strings.NewReplacer("%", me, "#", other).Replace(text)))
	}
	a, b := site("1", "2"), site("2", "1")
	near := a.guest("tap0", "10.0.1.1/24,10.1.1.1/24", "10.0.1.254")
	b.guest("tap0", "10.0.2.1/24,10.1.2.1/24", "10.0.2.254")
	w := l.watch()
	near.Run("ping", "-n", "-c", "1", "-W", "5", "-I", "10.0.1.1", "10.0.2.1")
	near.Run("ping", "-n", "-c", "1", "-W", "5", "-I", "10.1.1.1", "10.1.2.1")
	w.want("icmp.type == 8 && ip.src != 192.0.2.77", []string{"ipv6.dst", "ipv6.hlim", "ip.dst", "ip.ttl"}, "  192.0.2.2 11", "2001:db8::2 12 10.1.2.1 63")
}
