package fuzz

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// ipVNI is the segment that has only a gateway and a port for IP.
const ipVNI frame.VNI = 300

// farVNI is what one of the peers calls it.
const farVNI = 555

// vlans are the tags of local ports in the two segments; noVLAN where a port is in none.
const noVLAN = ^uint32(0)

var vlans = [2][3]uint32{{0, 0, 10}, {noVLAN, 30, 20}}

var policies = []*policy.Config{
	nil,
	{MaxFlows: 4},
	{Default: policy.Deny, MaxFlows: 8, Routed: true, PickUp: true, Rules: []policy.Rule{
		{Name: "web", Protocol: 6, DstPorts: []policy.PortRange{policy.Port(80)}},
		{Name: "ping", Protocol: 1, ICMP: []policy.ICMPType{{Type: 8}}},
		{Name: "set", SrcSet: "some"},
	}, Sets: map[string][]netip.Prefix{"some": {netip.MustParsePrefix("10.1.0.4/30"), netip.MustParsePrefix("fd01::/64")}}},
	{Stateless: true, Rules: []policy.Rule{{Action: policy.Deny, Direction: policy.Egress, SrcMACs: []frame.MAC{hostMAC(3)}}}},
}

// A rig is a switch, what is attached to it, and what is known of both.
type rig struct {
	t       *testing.T
	set     settings
	sw      *vswitch.Switch
	done    chan struct{}
	closed  bool
	trace   *vswitch.Trace
	events  *vswitch.Events
	g       *golden      // nil: laws alone
	vnis    [2]frame.VNI // of the segments of hosts
	ports   [4]*localPort
	under   *underlay
	under6  *underlay // of the other family, if there are two
	vtep    *vtep.VTEP
	gateway *l3.Gateway
	vrf     *l3.VRF
	toIP    *l3.Interface
	policy  *policy.Policy
	segs    [2]*segment
	spent   int // seconds
	played  int // operations
	began   time.Time

	delisted bool // peers that were listed count as learned until they are forgotten

	emitted atomic.Int64 // frames that left since the last one entered
	gone    totals       // of ports that have left

	mu      sync.Mutex
	entered []entering // that may still come out

	wired []datagram // of a fabric, since it last looked

	// For the model, since the last comparison; names are by number, of ports that are gone too.
	out   map[int][]string
	seen  []event
	names map[uint16]string
}

type segment struct {
	vsi       *vswitch.VSI
	table     *arp.Table
	responder *arp.Responder
	iface     *l3.Interface
	guard     *policy.Guard
	slots     vswitch.Slots
	at        [5]*vswitch.Attachment // by port
	cfg       [5]vswitch.AttachConfig
}

func (r *rig) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(format, args...)
}

func (r *rig) must(err error) {
	r.t.Helper()
	check.OK(r.t, err)
}

// mustOpen is must for the VTEP, which says so once the switch has closed it.
func (r *rig) mustOpen(err error) {
	r.t.Helper()
	if !isClosed(r.under.closed) || !errors.Is(err, net.ErrClosed) {
		r.must(err)
	}
}

func newRig(t *testing.T, s settings) *rig {
	r := &rig{t: t, set: s, done: make(chan struct{}), vnis: s.vnis, out: map[int][]string{}, names: map[uint16]string{0: "switch"}, began: time.Now()}
	if s.plain {
		r.g = newGolden(&s)
	}
	r.sw = check.Must(vswitch.New(&vswitch.Config{MaxMACs: s.maxMACs, Injected: 64}))(r.t)
	if r.events = r.sw.Events(); s.plain {
		go r.watch()
	}
	r.makeVTEP()
	for i := range r.ports {
		r.plug(i)
	}
	if s.routes() {
		r.gateway = check.Must(l3.NewGateway(&l3.GatewayConfig{Queued: 4096}))(r.t)
		r.vrf = r.gateway.VRF("red")
	}
	for i := range r.segs {
		r.makeSegment(i)
	}
	if s.routes() {
		r.makeRoutes()
	}
	go func() { r.sw.Run(context.Background()); close(r.done) }()
	r.settle()
	return r
}

// routes reports whether there is a gateway at all.
func (s *settings) routes() bool { return s.segments[0].gateway+s.segments[1].gateway > 0 }

// plug makes a local port anew.
func (r *rig) plug(i int) {
	r.ports[i] = &localPort{feed: newFeed(), r: r, id: i, mtu: []int{1514, 1514, 1000, 1500}[i]}
}

func (r *rig) makeVTEP() {
	r.under = r.listen(r.set.own(0))
	unders := []vtep.Underlay{r.under}
	if r.set.families == 2 {
		r.under6 = r.listen(r.set.own(1))
		unders = append(unders, r.under6)
	}
	v := check.Must(vtep.New(&r.set.tunnel, unders...))(r.t)
	r.mu.Lock()
	r.vtep = v
	r.mu.Unlock()
	if r.set.tunnel.Type == encap.TypeIPIP {
		check.Must(r.vtep.AddPeer(r.peer(2)))(r.t)
		return
	}
	list := r.peerAddrs(r.set.listed)
	if r.g != nil {
		var own []netip.Addr
		for i := range unders {
			own = append(own, r.set.own(i).Addr())
		}
		r.g.open(own)
	}
	for _, vni := range r.vnis {
		r.must(r.vtep.Control().Open(uint32(vni)))
		r.must(r.vtep.SetFlood(vni, list...))
		r.vtep.Control().Shut(uint32(vni)) // the list stays for who attaches it
		if r.g != nil {
			var peers []vtep.FloodPeer
			for _, a := range list {
				peers = append(peers, vtep.FloodPeer{Addr: a})
			}
			r.g.setFlood(vni, peers)
		}
	}
}

// move gives the VTEP an underlay at another address.
func (r *rig) move(to netip.AddrPort) {
	u := r.listen(to)
	u.moved, u.full, u.entered = true, r.under.full, r.under.entered
	err := r.vtep.SetUnderlay(u)
	r.mustOpen(err)
	if err == nil {
		r.under = u
	}
}

func (r *rig) listen(own netip.AddrPort) *underlay {
	return &underlay{feed: newFeed(), r: r, own: own, mtu: r.set.underMTU, joined: map[netip.Addr]bool{}}
}

// own is an address of the VTEP.
func (s *settings) own(i int) netip.AddrPort { return nodeAddr(1+s.node, s.families == 1 || i == 1) }

// peerAddr is the address of a peer; 1 is the VTEP itself, 2 and 3 are the others of a fabric.
func (r *rig) peerAddr(n int) netip.AddrPort {
	if r.set.fabric && n <= len(fabric{}.cut) {
		n = 1 + (n-1+r.set.node)%len(fabric{}.cut)
	}
	return nodeAddr(n, r.set.families == 1 || r.set.families == 2 && n%2 == 0)
}

func nodeAddr(n int, v6 bool) netip.AddrPort {
	a := netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
	if v6 {
		a = netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(n)})
	}
	return netip.AddrPortFrom(a, 4789)
}

// peer is the address of a peer as the VTEP wants it.
func (r *rig) peer(n int) netip.AddrPort {
	return netip.AddrPortFrom(r.peerAddr(n).Addr(), r.under.LocalAddr().Port())
}

// peerAddrs returns those of peers 2, 3, ...
func (r *rig) peerAddrs(n int) (list []netip.AddrPort) {
	for i := range n {
		list = append(list, r.peerAddr(2+i))
	}
	return list
}

func (r *rig) makeSegment(i int) {
	c, x := &r.set.segments[i], &segment{}
	r.segs[i] = x
	x.vsi = check.Must(r.sw.VSI(r.vnis[i]+r.set.shift, &vswitch.VSIConfig{Refuse: c.vsi.Refuse}))(r.t)
	if c.arp > 0 || c.gateway > 0 {
		x.table = check.Must(arp.NewTable(&arp.TableConfig{VNI: r.vnis[i], Limit: 8, PerDest: 4, Notify: r.sw.Notify}))(r.t)
		cfg := arp.Config{
			Table: x.table, Locate: x.vsi.FDB().Lookup, MAC: hostMAC(14), LocalOnly: c.localOnly, Miss: c.localOnly, Notify: r.sw.Notify,
			Refresh: c.localOnly, Inject: func(f *frame.Frame) bool { return r.sw.Inject(x.vsi, f) },
		}
		if c.arp > 0 {
			cfg.Mode = arp.Mode(c.arp - 1)
		}
		x.responder = check.Must(arp.NewResponder(&cfg))(r.t)
		r.must(x.table.Set(addr4(1+i, 13), hostMAC(13), arp.Static, 0))
		x.slots.Neighbour = x.responder
	}
	var large []vswitch.Stage
	if c.gateway > 0 {
		r.makeInterface(i)
		x.slots.Gateway, large = x.iface, append(large, x.iface.PathMTU())
	}
	if c.tooBig {
		large = append(large, r.sw.TooBig())
	} else {
		large = append(large, vswitch.NoTooBig{})
	}
	x.slots.TooBig = vswitch.Chain(large...)
	r.makePolicy(i)
	c.vsi.Slots = x.slots
	r.must(x.vsi.Configure(c.vsi))
	if r.g != nil {
		r.g.vsis[x.vsi.VNI()] = &gvsi{vni: x.vsi.VNI(), cfg: c.vsi, fdb: map[frame.MAC]*gentry{}}
		r.g.event("segment-up %d", x.vsi.VNI())
	}
	r.set0(i, hostMAC(9), dest{port: noPort}, fdb.Static)
	r.set0(i, hostMAC(8), dest{port: noPort}, fdb.Filter)
	for port := range x.at {
		r.attach(i, port)
	}
}

func (r *rig) makeInterface(i int) {
	x, anycast := r.segs[i], r.set.segments[i].gateway == 2
	cfg := l3.InterfaceConfig{
		VNI: r.vnis[i], MAC: hostMAC(15), Neighbours: x.responder, Send: x.vsi.Send,
		Addresses: []netip.Prefix{netip.PrefixFrom(addr4(1+i, 15), 24), netip.PrefixFrom(addr6(1+i, 15), 64)},
	}
	flags := fdb.Static
	if anycast {
		cfg.VTEPMAC, cfg.Anycast = hostMAC(14), true
		flags |= fdb.Anycast
		r.must(x.vsi.FDB().Set(cfg.VTEPMAC, 0, fdb.Static))
	}
	r.must(x.vsi.FDB().Set(cfg.MAC, 0, flags))
	x.iface = check.Must(r.vrf.NewInterface(&cfg))(r.t)
}

func (r *rig) makePolicy(i int) {
	c, x := &r.set.segments[i], r.segs[i]
	var in []vswitch.Stage
	switch c.guard {
	case 1:
		x.guard = check.Must(policy.NewGuard(nil))(r.t)
	case 2:
		x.guard = check.Must(policy.NewGuard(&policy.GuardConfig{MACs: []frame.MAC{hostMAC(1), hostMAC(2)}, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}))(r.t)
	}
	if x.guard != nil {
		in = append(in, x.guard)
	}
	if p := policies[c.policy]; p != nil {
		if r.policy == nil {
			r.policy = check.Must(policy.New(p))(r.t)
		}
		in, x.slots.Egress = append(in, r.policy.Ingress()), r.policy.Egress()
	}
	if c.mss != 0 {
		m := check.Must(l3.NewMSSClamp(c.mss))(r.t)
		in = append(in, m)
	}
	if len(in) > 0 {
		x.slots.Ingress = vswitch.Chain(in...)
	}
}

// makeRoutes makes the segment for IP, and routes to it, to neighbours and to nowhere.
func (r *rig) makeRoutes() {
	vsi := check.Must(r.sw.VSI(ipVNI, nil))(r.t)
	var at *vswitch.Attachment
	cfg := l3.InterfaceConfig{VNI: ipVNI, Send: vsi.Send, Addresses: []netip.Prefix{netip.PrefixFrom(addr4(9, 1), 32), netip.PrefixFrom(addr6(9, 1), 128)}}
	if r.set.bare || r.set.tunnel.Type == encap.TypeVXLAN {
		at = check.Must(vsi.AttachWith(r.ports[tunPort], 0, &vswitch.AttachConfig{}))(r.t)
	} else {
		tag := uint32(ipVNI)
		if r.set.tunnel.Type == encap.TypeIPIP {
			tag = 0
		}
		at = check.Must(vsi.AttachWith(r.vtep, tag, &vswitch.AttachConfig{Hub: r.set.gso}))(r.t)
		cfg.Tunnel = r.vtep
	}
	cfg.Port = at.Dest(0)
	r.toIP = check.Must(r.vrf.NewInterface(&cfg))(r.t)
	r.must(vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: r.toIP, TooBig: vswitch.Chain(r.toIP.PathMTU(), r.sw.TooBig())}}))
	node := func(n int) l3.NextHop {
		h := l3.NextHop{Interface: r.toIP}
		switch {
		case cfg.Tunnel == nil:
			return h
		case n == 3 && r.set.tunnel.Type == encap.TypeGPE:
			h.Peer = check.Must(r.vtep.NextHop(r.peer(n), farVNI))(r.t)
		default:
			h.Peer = check.Must(r.vtep.AddPeer(r.peer(n)))(r.t)
		}
		return h
	}
	either := l3.NextHop{Interface: r.toIP}
	if cfg.Tunnel != nil {
		either.Peer = check.Must(r.vtep.Group(node(2).Peer, node(3).Peer))(r.t)
	}
	prefix := func(n int) [2]netip.Prefix {
		return [2]netip.Prefix{netip.PrefixFrom(addr4(n, 0), 24), netip.PrefixFrom(addr6(n, 0), 64)}
	}
	for k := range 2 {
		routes := []l3.Route{{Prefix: prefix(3)[k], Via: []l3.NextHop{node(2)}}, {Prefix: prefix(4)[k], Via: []l3.NextHop{node(2), node(3)}}, {Prefix: prefix(5)[k]}, {Prefix: prefix(2)[k], Via: []l3.NextHop{either}}}
		if r.segs[1].iface != nil {
			routes = routes[:3] // the prefix is a segment's
		}
		for i, x := range r.segs {
			if x.iface == nil {
				continue
			}
			next := []netip.Addr{addr4(1+i, 4), addr6(1+i, 4)}[k]
			routes = append(routes,
				l3.Route{Prefix: prefix(6 + i)[k], Via: []l3.NextHop{{Interface: x.iface, IP: next}}},
				l3.Route{Prefix: prefix(10 + i)[k], Via: []l3.NextHop{{Interface: x.iface, MAC: hostMAC(7)}}})
		}
		r.must(r.vrf.Add(routes...))
	}
	_ = r.vrf.Add(l3.Route{Prefix: prefix(8)[0], Via: []l3.NextHop{node(2)}})
}

// attach attaches a port to a segment of hosts, if it is for it.
func (r *rig) attach(i, port int) {
	x, s := r.segs[i], &r.set.segments[i]
	if x == nil || x.at[port] != nil || port == tunPort {
		return
	}
	var p vswitch.Port
	tag, cfg := uint32(r.vnis[i]), s.far
	if port == farPort {
		switch {
		case r.set.tunnel.Type == encap.TypeIPIP, isClosed(r.under.closed) && r.g == nil:
			return
		case isClosed(r.under.closed):
			r.makeVTEP()
		}
		p = r.vtep
	} else {
		if tag, cfg = vlans[i][port], s.members[port]; tag == noVLAN {
			return
		}
		if isClosed(r.ports[port].closed) {
			r.plug(port)
		}
		p = r.ports[port]
	}
	a, err := x.vsi.AttachWith(p, tag, &cfg)
	if err != nil {
		r.errorf("attach port %d to VNI %d: %v", port, r.vnis[i], err)
		return
	}
	x.at[port], x.cfg[port] = a, cfg
	r.names[a.Dest(0).Port()] = portName(port)
	if r.g != nil {
		mtu := 0
		if port != farPort {
			mtu = r.ports[port].mtu
		}
		r.g.attach(r.g.vsis[x.vsi.VNI()], port, mtu, tag, cfg)
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
