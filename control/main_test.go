package control_test

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Segments of a leaf.
const (
	red, blue frame.VNI = 100, 200
	l3vni     frame.VNI = 900 // of VRF "red", as red is
	ipip      frame.VNI = 500 // likewise: a tunnel for IP
)

// leaf is a switch with all the tables there are, and a Plane on them. It does not run.
type leaf struct {
	t     testing.TB
	sw    *vswitch.Switch
	net   *memory.Network
	vtep  *counted // of red, blue and l3vni
	tun   *counted // of ipip
	pipe  *port.Pipe
	local *vswitch.Attachment // pipe, on red
	gw    *l3.Gateway
	arps  map[frame.VNI]*arp.Table
	*control.Plane
}

// counted is a VTEP that counts what is done to it, and succeeds.
type counted struct {
	*vtep.VTEP
	peers, floods atomic.Uint64
	full          bool
	wrong         bool // AddPeer returns numbers that the VTEP does not have
}

func (c *counted) NextHop(a netip.AddrPort, vni frame.VNI) (uint16, error) {
	n, err := c.VTEP.NextHop(a, vni)
	if err == nil {
		c.peers.Add(1)
	}
	return n, err
}

func (c *counted) Group(peers ...uint16) (uint16, error) {
	n, err := c.VTEP.Group(peers...)
	if err == nil {
		c.peers.Add(1)
	}
	return n, err
}

func (c *counted) SetGroup(num uint16, peers ...uint16) error {
	err := c.VTEP.SetGroup(num, peers...)
	if err == nil {
		c.peers.Add(1)
	}
	return err
}

func (c *counted) AddPeer(a netip.AddrPort) (uint16, error) {
	if c.full {
		return 0, vtep.ErrFull
	}
	n, err := c.VTEP.AddPeer(a)
	if err == nil {
		c.peers.Add(1)
	}
	if c.wrong {
		n += 1000
	}
	return n, err
}

func (c *counted) DeletePeer(n uint16) {
	c.peers.Add(1)
	c.VTEP.DeletePeer(n)
}

func (c *counted) SetFloodPeers(vni frame.VNI, to ...vtep.FloodPeer) error {
	err := c.VTEP.SetFloodPeers(vni, to...)
	if err == nil {
		c.floods.Add(1)
	}
	return err
}

func newLeaf(t testing.TB, cfg control.Config) *leaf {
	t.Helper()
	l := &leaf{t: t, arps: map[frame.VNI]*arp.Table{}, pipe: port.NewPipe(&port.PipeConfig{Name: "pipe"})}
	var err error
	l.sw, err = vswitch.New(nil)
	l.must(err)
	l.net = memory.NewNetwork(nil)
	u, err := l.net.Listen(netip.MustParseAddrPort("10.0.0.1:4789"), nil)
	l.must(err)
	ip, err := l.net.ListenIP(netip.MustParseAddr("10.0.0.1"), nil)
	l.must(err)
	v, err := vtep.New(nil, u)
	l.must(err)
	l.vtep = &counted{VTEP: v}
	v, err = vtep.New(&vtep.Config{Name: "ipip", Type: encap.TypeIPIP}, ip)
	l.must(err)
	l.tun = &counted{VTEP: v}
	t.Cleanup(func() {
		l.sw.Close()
		l.net.Close()
	})
	l.gw, err = l3.NewGateway(nil)
	l.must(err)
	for _, vni := range []frame.VNI{red, blue} {
		l.segment(vni)
		l.arps[vni], err = arp.NewTable(&arp.TableConfig{VNI: vni})
		l.must(err)
	}
	l.local, err = l.segment(red).Attach(l.pipe, 0)
	l.must(err)
	vrf := l.gw.VRF("red")
	neighbours, err := arp.NewResponder(&arp.Config{Table: l.arps[red]})
	l.must(err)
	_, err = vrf.NewInterface(&l3.InterfaceConfig{VNI: red, Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.7.254/24")},
		MAC: mac(0xfe), Neighbours: neighbours, Send: l.segment(red).Send})
	l.must(err)
	_, err = vrf.NewInterface(&l3.InterfaceConfig{VNI: l3vni, MAC: mac(0xfd), Send: l.segment(l3vni).Send})
	l.must(err)
	vsi, err := l.sw.VSI(ipip, nil)
	l.must(err)
	at, err := vsi.Attach(l.tun, 0)
	l.must(err)
	_, err = vrf.NewInterface(&l3.InterfaceConfig{VNI: ipip, Port: at.Dest(0), Tunnel: l.tun, Send: vsi.Send})
	l.must(err)
	cfg.Switch, cfg.Gateway = l.sw, l.gw
	cfg.Neighbours = func(vni frame.VNI) *arp.Table { return l.arps[vni] }
	l.Plane, err = control.New(&cfg)
	l.must(err)
	return l
}

func (l *leaf) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// segment returns a segment, making it with the VTEP.
func (l *leaf) segment(vni frame.VNI) *vswitch.VSI {
	l.t.Helper()
	vsi, err := l.sw.VSI(vni, nil)
	l.must(err)
	for _, a := range vsi.Attachments() {
		if a.Port() == vswitch.Port(l.vtep) {
			return vsi
		}
	}
	_, err = vsi.AttachWith(l.vtep, uint32(vni), &vswitch.AttachConfig{KeepOpen: true})
	l.must(err)
	return vsi
}

func mac(n byte) frame.MAC                { return frame.MAC{2, 0, 0, 0, 1, n} }
func ip(n byte) netip.Addr                { return netip.AddrFrom4([4]byte{192, 168, 7, n}) }
func at(n byte) netip.AddrPort            { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 0) }
func pfx(s string) netip.Prefix           { return netip.MustParsePrefix(s) }
func rows(r ...control.Row) []control.Row { return r }

// The tables as controltest asks for them.

func (l *leaf) entry(vni frame.VNI, m frame.MAC) (fdb.Entry, bool) {
	return l.segment(vni).FDB().Get(m)
}

func (l *leaf) MAC(vni frame.VNI, m frame.MAC) string {
	e, ok := l.entry(vni, m)
	if !ok {
		return ""
	}
	if e.Dest == frame.Filter {
		return "filter"
	}
	names := strings.Split(strings.TrimPrefix(l.sw.Name(e.Dest), "group of "), ", ")
	for i := range names {
		name, vni, _ := strings.Cut(names[i], " ")
		if a, err := netip.ParseAddrPort(name); err == nil {
			name = a.Addr().String()
		}
		names[i] = strings.TrimSpace(name + " " + vni)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (l *leaf) Neighbour(vni frame.VNI, a netip.Addr) frame.MAC {
	e, _ := l.arps[vni].Lookup(a)
	return e.MAC
}

func (l *leaf) Flood(vni frame.VNI) (list []control.Flood) {
	for _, x := range l.vtep.FloodPeers(vni) {
		list = append(list, control.Flood{VNI: vni, VTEP: netip.AddrPortFrom(x.Addr.Addr(), 0), MAC: x.MAC, NoBroadcast: x.NoBroadcast, NoUnknown: x.NoUnknown})
	}
	slices.SortFunc(list, func(a, b control.Flood) int {
		return cmp.Or(a.VTEP.Compare(b.VTEP), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()))
	})
	return list
}

func (l *leaf) Prefix(vrf string, p netip.Prefix) (list []control.Via, ok bool) {
	for _, r := range l.gw.VRF(vrf).Routes() {
		if r.Prefix != p {
			continue
		}
		ok = true
		for _, h := range r.Via {
			v := control.Via{VNI: h.Interface.VNI(), IP: h.IP, MAC: h.MAC}
			if h.Peer != 0 {
				v.VTEP = netip.AddrPortFrom(netip.MustParseAddr(l.tun.PeerName(h.Peer)), 0)
			}
			if a, err := netip.ParseAddr(l.MAC(v.VNI, h.MAC)); err == nil {
				v.VTEP = netip.AddrPortFrom(a, 0)
			}
			list = append(list, v)
		}
	}
	return list, ok
}

// writes returns what was written to tables, peers left out.
func (l *leaf) writes() uint64 {
	s := l.Stats()
	return s.Floods + s.MACs + s.Neighbours + s.Routes
}

// check compares what the Plane says it did to VTEPs with what they saw.
func (l *leaf) check() {
	l.t.Helper()
	s := l.Stats()
	if n := l.vtep.floods.Load() + l.tun.floods.Load(); n != s.Floods {
		l.t.Errorf("%d flood lists set, Stats say %d", n, s.Floods)
	}
	if n := l.vtep.peers.Load() + l.tun.peers.Load(); n != s.Peers {
		l.t.Errorf("%d peers added or deleted, Stats say %d", n, s.Peers)
	}
}

// listed returns the peers that a VTEP has been told of.
func listed(v *counted) (list []string) {
	for _, p := range v.Stats().Peers {
		if p.Listed {
			list = append(list, p.Addr.Addr().String())
		}
	}
	slices.Sort(list)
	return list
}

func (l *leaf) program(owner string, u control.Update) {
	l.t.Helper()
	l.must(l.Program(owner, u))
}

// wantWaiting wants n rows of an owner to wait, one of them for an error.
func (l *leaf) wantWaiting(owner string, n int, want error) {
	l.t.Helper()
	var errs []error
	for _, err := range l.Waiting(owner) {
		errs = append(errs, err)
	}
	if len(errs) != n || n > 0 && !errors.Is(errors.Join(errs...), want) {
		l.t.Errorf("%d rows of %s wait: %v; want %d: %v", len(errs), owner, errs, n, want)
	}
}

func (l *leaf) add(owner string, r ...control.Row) {
	l.t.Helper()
	l.program(owner, control.Update{Add: r})
}

func (l *leaf) del(owner string, r ...control.Row) {
	l.t.Helper()
	l.program(owner, control.Update{Del: r})
}
