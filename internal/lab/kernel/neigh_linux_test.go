package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// neighLab is an underlay with sites, and Linux hosts behind these that ask for each other:
//
//	guests h1, h2     guest h3            guest hk
//	 TAP   TAP         TAP                 veth
//	    a: ours         b: ours      k: br0 - vx0, the kernel's
//	      +----------------+----------------+
type neighLab struct {
	t      *testing.T
	n      *netns.Net
	under  *netns.Host // the underlay's switch
	v6     bool        // of guests and underlay
	sites  []*neighSite
	guests []*guest
	marks  int
}

// neighSite is a site with our VTEP, or the kernel's.
type neighSite struct {
	*ourNode
	l    *neighLab
	host *netns.Host
	name string         // what the others' switches call it
	wire *netns.Capture // of what it sends into the tunnels, and what comes
	vsi  *vswitch.VSI   // nil at the kernel's
	r    *arp.Responder

	hides bool // no frame of its guests is in a tunnel but by the gateway
}

// guest is a Linux host on the segment.
type guest struct {
	*netns.Host
	l      *neighLab
	dev    string
	mac    string
	number int
	home   *neighSite
	ip     netip.Addr
	speaks netip.Addr // whose questions come from; over IPv6 the link-local one
	link   *netns.Capture
	away   bool // its device is down

	confined *neighSite // where it reaches the gateway alone
}

// neighFamilies runs a test with ARP over IPv4 and with ND over IPv6.
func neighFamilies(t *testing.T, f func(t *testing.T, v6 bool)) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ARP", true: "ND"}[v6], func(t *testing.T) { f(t, v6) })
	}
}

// newNeighLab makes sites, by their letter in kinds: u is ours, k the kernel's.
func newNeighLab(t *testing.T, v6 bool, kinds string) *neighLab {
	t.Helper()
	n := netns.New(t)
	l := &neighLab{t: t, n: n, under: n.Switch("sw"), v6: v6}
	fam := families[0]
	if v6 {
		fam = families[1]
	}
	addrs := fam.addresses(len(kinds))
	for i, kind := range kinds {
		s := &neighSite{l: l, host: n.Host(string(rune('a' + i))), name: netip.AddrPortFrom(netip.MustParseAddr(addrs[i]), 4789).String()}
		n.Plug(s.host, addrs[i]+fam.bits, l.under)
		s.host.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
		others := slices.Delete(slices.Clone(addrs), i, i+1)
		if kind == 'k' {
			s.host.VXLAN("vx0", netns.VXLAN{ID: vni, Local: addrs[i], Dev: "eth0", Flood: others})
			s.host.Bridge("br0", "vx0")
		} else {
			s.ourNode = newNode(t, s.host, addrs[i], settings{})
			s.vsi = s.ourNode.vsi(vni, others...)
			s.configure(func(c *node.Segment) {
				c.Neighbours = &node.Neighbours{Config: arp.Config{Mode: arp.Suppress, MAC: s.own()}}
			})
		}
		s.wire = s.host.Capture("eth0", "udp port 4789")
		l.sites = append(l.sites, s)
	}
	for i, s := range l.sites {
		s.host.Ready()
		for _, a := range addrs[i+1:] {
			s.host.Ping(a, 1) // as in newSites
		}
	}
	return l
}

// configure changes the segment of the site. Its responder may be another one then.
func (s *neighSite) configure(edit func(*node.Segment)) {
	s.l.t.Helper()
	s.must(s.segment(vni).Update(func(c *node.Segment) error { edit(c); return nil }))
	s.r = s.ourNode.Neighbours(vni)
}

// own is the VTEP's own MAC.
func (s *neighSite) own() frame.MAC { return frame.MAC{2, 0, 0, 0, 0xf0, s.host.Name[0]} }

// guest makes a Linux host behind a site, on the segment's subnet.
func (s *neighSite) guest(name string, number int) *guest {
	s.l.t.Helper()
	g := s.bare(name, number)
	g.address()
	return g
}

// bare makes one without addresses.
func (s *neighSite) bare(name string, number int) *guest {
	s.l.t.Helper()
	g := &guest{Host: s.l.n.Host(name), number: number}
	if !s.l.v6 {
		g.Quiet()
	}
	g.Sysctl("net.ipv6.conf.default.router_solicitations", "0")
	g.Sysctl("net.ipv6.conf.default.addr_gen_mode", "1") // link-local addresses: as address() says
	s.plug(g, name)
	return g
}

// plug gives a host a device that leads to the site; at one of ours, of that name.
func (s *neighSite) plug(g *guest, dev string) {
	s.l.t.Helper()
	l := s.l
	mac := frame.MAC{2, 0, 0, 0, 7, byte(g.number)}
	g.l, g.home, g.dev, g.mac = l, s, dev, mac.String()
	g.ip = netip.AddrFrom4([4]byte{192, 168, 7, byte(g.number)})
	g.speaks = g.ip
	if l.v6 {
		g.ip = netip.MustParseAddr(fmt.Sprintf("fd07::%x", g.number))
		g.speaks = netip.MustParseAddr(fmt.Sprintf("fe80::7:%x", g.number))
	}
	if s.vsi != nil {
		s.tap(vni, g.Host, dev, mac)
		g.Up(dev)
	} else {
		var port string
		g.dev, port = l.n.Link(g.Host, "", s.host, "")
		s.host.IP("link", "set", port, "master", "br0")
		g.SetMAC(g.dev, g.mac)
		g.Ready()
		s.host.Ready()
		s.host.Until(port+" forwards", func() bool {
			return strings.Contains(s.host.IP("-d", "link", "show", port), "bridge_slave state forwarding")
		})
	}
	g.neighbourSysctl("delay_first_probe_time", "120") // else hosts check by themselves, while a test counts
	g.link = g.Capture(g.dev, "")
	l.guests = append(l.guests, g)
}

// neighbourSysctl sets a variable of the neighbours of a guest's device.
func (g *guest) neighbourSysctl(name, value string) {
	g.l.t.Helper()
	g.Sysctl(fmt.Sprintf("net.ipv%s.neigh.%s.%s", map[bool]string{false: "4", true: "6"}[g.l.v6], g.dev, name), value)
}

// address gives a guest its addresses.
func (g *guest) address() {
	g.l.t.Helper()
	if g.Addr(g.dev, fmt.Sprintf("%v/%d", g.ip, map[bool]int{false: 24, true: 64}[g.l.v6])); g.l.v6 {
		g.Addr(g.dev, g.speaks.String()+"/64")
	}
}

// ask has a guest's kernel forget a neighbour and ask for it, without any data to send, and
// returns the MAC it is told.
func (g *guest) ask(ip netip.Addr) (mac string) {
	g.l.t.Helper()
	g.IP("neigh", "flush", "dev", g.dev, "to", ip.String())
	g.IP("neigh", "replace", ip.String(), "dev", g.dev, "use")
	g.Until(fmt.Sprintf("%v is told where %v is", g.Name, ip), func() bool {
		e := g.knows(ip)
		mac = e.MAC
		return slices.Contains(e.State, "REACHABLE")
	})
	return mac
}

// told is ask that fails the test unless it is told this MAC.
func (g *guest) told(ip netip.Addr, mac string) {
	g.l.t.Helper()
	check.Equal(g.l.t, fmt.Sprintf("%s asks for %v and is told", g.Name, ip), g.ask(ip), mac)
}

// doubt has a guest's kernel ask a neighbour it knows, and nobody else, whether it is there.
func (g *guest) doubt(ip netip.Addr, mac string) {
	g.l.t.Helper()
	g.IP("neigh", "replace", ip.String(), "lladdr", mac, "dev", g.dev, "nud", "probe")
}

// check is doubt that fails the test unless the neighbour answers, from that MAC.
func (g *guest) check(ip netip.Addr, mac string) {
	g.l.t.Helper()
	g.doubt(ip, mac)
	var e netns.Neigh
	g.Until(fmt.Sprintf("%v knows whether %v is there", g.Name, ip), func() bool {
		e = g.knows(ip)
		return !slices.Contains(e.State, "PROBE")
	})
	check.True(g.l.t, slices.Contains(e.State, "REACHABLE") && e.MAC == mac,
		"%s: %v is found at %+v, want it reachable at %s", g.Name, ip, e, mac)
}

// knows returns the guest's own entry of a neighbour.
func (g *guest) knows(ip netip.Addr) netns.Neigh {
	g.l.t.Helper()
	for _, e := range g.Neighbours(g.dev) {
		if e.Addr == ip {
			return e
		}
	}
	return netns.Neigh{}
}

// A saying is a message of ARP or ND as a capture has it, or something else in as many
// words.
type saying struct {
	op                string // who-has, is-at; or what else it is
	src, dst          string // MACs of the frame
	sender, senderMAC string // who speaks; of an advertisement the target
	target            string // whom it asks for, or answers
}

const (
	marker  = "marker"
	reports = "MLD" // of multicast groups: a Linux host makes them when it likes
)

// parse reads a frame, or one that is in a tunnel.
func parse(data []byte) (s saying) {
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
	if x, ok := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN); ok {
		p = gopacket.NewPacket(x.Payload, layers.LayerTypeEthernet, gopacket.Default)
	}
	e, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok {
		return saying{op: "no frame"}
	}
	s = saying{op: e.EthernetType.String(), src: e.SrcMAC.String(), dst: e.DstMAC.String()}
	ip, _ := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	text := func(ip net.IP) string { a, _ := netip.AddrFromSlice(ip); return a.String() }
	option := func(os layers.ICMPv6Options, typ layers.ICMPv6Opt) string {
		for _, o := range os {
			if o.Type == typ {
				return net.HardwareAddr(o.Data).String()
			}
		}
		return ""
	}
	for _, layer := range p.Layers() {
		switch x := layer.(type) {
		case *layers.ARP:
			s.op = map[uint16]string{1: "who-has", 2: "is-at"}[x.Operation]
			s.sender, s.senderMAC = text(x.SourceProtAddress), net.HardwareAddr(x.SourceHwAddress).String()
			s.target = text(x.DstProtAddress)
		case *layers.ICMPv6NeighborSolicitation:
			s.op, s.sender, s.target = "who-has", text(ip.SrcIP), text(x.TargetAddress)
			s.senderMAC = option(x.Options, layers.ICMPv6OptSourceAddress)
		case *layers.ICMPv6NeighborAdvertisement:
			s.op, s.sender, s.target = "is-at", text(x.TargetAddress), text(ip.DstIP)
			s.senderMAC = option(x.Options, layers.ICMPv6OptTargetAddress)
		case *layers.ICMPv6:
			s.op = x.TypeCode.String()
		}
	}
	switch {
	case e.EthernetType == 0x88b5:
		s.op = marker
	case ip != nil && ip.NextHeader == layers.IPProtocolIPv6HopByHop:
		s.op = reports
	}
	return s
}

// said returns what has passed a device in one direction since, but for markers and
// reports of multicast groups.
func said(c *netns.Capture, since int, out bool) (all []saying) {
	for _, p := range c.Seen()[since:] {
		if p.Out != out {
			continue
		}
		if s := parse(p.Data); s.op != marker && s.op != reports {
			all = append(all, s)
		}
	}
	return all
}

// settle returns when what the guests have sent before has gone where it goes: markers come
// behind it. Two rounds, since frames that were read together may change places.
func (l *neighLab) settle() {
	l.t.Helper()
	for range 2 {
		for _, g := range l.guests {
			if g.away {
				continue
			}
			l.marks++
			// From MACs of their own: that of a guest is to be learned from what the guest says.
			f := append(ethernet("ff:ff:ff:ff:ff:ff", fmt.Sprintf("02:00:00:00:ee:%02x", g.number), 0x88b5), fmt.Sprintf("marker %d.", l.marks)...)
			if s := g.confined; s != nil {
				dropped := s.drops(frame.EtherType)
				g.Inject(g.dev, f)
				g.Until("the marker is dropped", func() bool { return s.drops(frame.EtherType) > dropped })
				continue
			}
			if s := g.home; s.hides {
				dropped := s.drops(frame.NoRoute)
				gate := append(ethernet(proxyMAC.String(), g.mac, 0x88b5), "marker"...)
				g.Inject(g.dev, gate)
				g.Until("the marker is dropped", func() bool { return s.drops(frame.NoRoute) > dropped })
				m := frame.Make(f)
				check.True(l.t, s.vsi.Send(0, &m), "the marker is not sent")
			} else {
				g.Inject(g.dev, f)
			}
			for _, to := range l.guests {
				if to != g && !to.away {
					to.link.Want(1, func(p netns.Packet) bool { return !p.Out && strings.HasPrefix(string(p.Data[12:]), string(f[12:])) })
				}
			}
		}
	}
}

// A stretch is a part of a test whose traffic is looked at.
type stretch struct {
	l     *neighLab
	since map[*netns.Capture]int
}

// begin starts one.
func (l *neighLab) begin() stretch {
	l.t.Helper()
	l.settle()
	x := stretch{l, map[*netns.Capture]int{}}
	for _, s := range l.sites {
		x.since[s.wire] = len(s.wire.Seen())
	}
	for _, g := range l.guests {
		x.since[g.link] = len(g.link.Seen())
	}
	return x
}

// tunnelled returns the datagrams that all sites have sent to each other.
func (x stretch) tunnelled() (all []saying) {
	x.l.t.Helper()
	x.l.settle()
	for _, s := range x.l.sites {
		all = append(all, said(s.wire, x.since[s.wire], true)...)
	}
	return all
}

// wantTunnelled fails unless so many datagrams have gone through tunnels.
func (x stretch) wantTunnelled(what string, n int) {
	x.l.t.Helper()
	got := x.tunnelled()
	check.True(x.l.t, len(got) == n, "%s: %d datagrams in the tunnels, want %d: %+v", what, len(got), n, got)
}

// heard returns what a guest got, and sent what it said.
func (x stretch) heard(g *guest) []saying { return said(g.link, x.since[g.link], false) }
func (x stretch) sent(g *guest) []saying  { return said(g.link, x.since[g.link], true) }

// questions returns those that are for an address.
func questions(all []saying, ip netip.Addr) (qs []saying) {
	for _, s := range all {
		if s.op == "who-has" && s.target == ip.String() {
			qs = append(qs, s)
		}
	}
	return qs
}

// wantEntry fails unless a site's table has an address at a MAC, heard from a port or a
// site, and its FDB has the MAC there too.
func (s *neighSite) wantEntry(what string, ip netip.Addr, mac, place string) {
	s.l.t.Helper()
	e, _ := s.r.Table().Lookup(ip)
	m := check.Must(frame.ParseMAC(mac))(s.l.t)
	d, ok := s.vsi.FDB().Lookup(m)
	if e.MAC != m || s.Switch().Name(e.From) != place || !ok || s.Switch().Name(d) != place {
		s.l.t.Errorf("%s: site %s has %v at %v, heard from %s, and that MAC at %s; want %s at %s",
			what, s.host.Name, ip, e.MAC, s.Switch().Name(e.From), s.Switch().Name(d), mac, place)
	}
}

// counts returns the branches of ARP or of ND.
func (s *neighSite) counts() arp.Counts {
	if s.l.v6 {
		return s.r.Stats().ND
	}
	return s.r.Stats().ARP
}

// wantOutcome fails unless a outcome has been taken n times since.
func (s *neighSite) wantOutcome(what string, before arp.Counts, b arp.Outcome, n uint64) {
	s.l.t.Helper()
	got := s.counts()[b] - before[b]
	check.True(s.l.t, got == n, "%s: site %s: %d messages %v, want %d", what, s.host.Name, got, b, n)
}
