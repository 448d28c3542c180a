package control_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A fact is a segment, or what is set of a port, a peer, a member of a segment, its gateway, a MAC or a neighbour.
type fact struct {
	vni  frame.VNI
	dest frame.Dest
	mac  frame.MAC
	ip   netip.Addr
	vrf  string
}

// String returns the fields that are set.
func (f fact) String() string {
	return fmt.Sprint(f.vni, " ", f.dest, " ", f.mac, " ", f.ip, " ", f.vrf)
}

// mirror is what a control plane knows of a switch by its events: segments, their ports, and what was learned.
type mirror struct {
	w      *world
	events *vswitch.Events
	has    map[fact]bool
}

// apply carries out an event with what it says, and reads tables only if it says so.
func (m *mirror) apply(e frame.Event) {
	drop := func(del func(f fact) bool) { maps.DeleteFunc(m.has, func(f fact, _ bool) bool { return del(f) }) }
	learned := func(f fact) bool { return f.mac != frame.MAC{} }
	at := func(f fact) bool { // what was learned at e.Dest
		return learned(f) && (f.dest == e.Dest || e.Dest.Peer() == 0 && f.dest.Port() == e.Dest.Port())
	}
	isMAC := func(f fact) bool { return f.vni == e.VNI && f.mac == e.MAC && !f.ip.IsValid() }
	isIP := func(f fact) bool { return f.vni == e.VNI && f.ip == e.IP && f.ip.IsValid() }
	switch e.Kind {
	case frame.EventOverflow:
		clear(m.has)
		for e := range m.w.sw.State() {
			m.apply(e)
		}
	case frame.EventPortUp, frame.EventPeerUp:
		m.has[fact{dest: e.Dest}] = true
	case frame.EventPortDown:
		drop(func(f fact) bool { return f.vni == 0 && f.dest.Port() == e.Dest.Port() })
	case frame.EventGatewayUp:
		m.has[fact{vni: e.VNI, vrf: e.Name}] = true
	case frame.EventGatewayDown:
		delete(m.has, fact{vni: e.VNI, vrf: e.Name})
	case frame.EventSegmentUp:
		m.has[fact{vni: e.VNI}] = true
	case frame.EventSegmentDown:
		drop(func(f fact) bool { return f.vni == e.VNI })
	case frame.EventAttached:
		m.has[fact{vni: e.VNI, dest: e.Dest}] = true
	case frame.EventDetached:
		delete(m.has, fact{vni: e.VNI, dest: e.Dest})
		drop(func(f fact) bool { return f.vni == e.VNI && at(f) })
	case frame.EventPeerDown:
		drop(at)
		delete(m.has, fact{dest: e.Dest})
	case frame.EventFlushed:
		drop(func(f fact) bool { return f.vni == e.VNI && learned(f) })
		for e := range m.w.sw.State(e.VNI) {
			m.apply(e)
		}
	case frame.EventMACLearned, frame.EventMACMoved:
		drop(isMAC)
		m.has[fact{vni: e.VNI, mac: e.MAC, dest: e.Dest}] = true
	case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
		drop(isMAC)
	case frame.EventNeighbourLearned, frame.EventNeighbourMoved:
		drop(isIP)
		m.has[fact{vni: e.VNI, ip: e.IP, mac: e.MAC, dest: e.Dest}] = true
	case frame.EventNeighbourAged, frame.EventNeighbourDeleted:
		drop(isIP)
	}
}

// world is a switch to which things happen.
type world struct {
	t     *testing.T
	r     *rand.Rand
	sw    *vswitch.Switch
	net   *memory.Network
	vtep  *vtep.VTEP
	ports []*port.Pipe
	arps  map[frame.VNI]*arp.Table
	plane *control.Plane
	vrfs  *l3.Gateway
	gates map[frame.VNI]*l3.Interface // in slots
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// state is all there is.
func (w *world) state() map[fact]bool {
	has := map[fact]bool{}
	for _, p := range w.sw.Stats().Ports {
		if p.Port == 0 {
			continue
		}
		has[fact{dest: frame.NewDest(p.Port, 0)}] = true
		if p.Name == w.vtep.Name() {
			for _, x := range w.vtep.Stats().Peers {
				has[fact{dest: frame.NewDest(p.Port, x.Peer)}] = true
			}
		}
	}
	for vni, i := range w.gates {
		has[fact{vni: vni, vrf: i.VRF().Name()}] = true
	}
	for _, v := range w.sw.VSIs() {
		has[fact{vni: v.VNI()}] = true
		for _, a := range v.Attachments() {
			has[fact{vni: v.VNI(), dest: a.Dest(0)}] = true
		}
		maps.Copy(has, w.learned(v.VNI()))
	}
	return has
}

// learned is what a segment has learned.
func (w *world) learned(vni frame.VNI) map[fact]bool {
	has := map[fact]bool{}
	for _, v := range w.sw.VSIs() {
		if v.VNI() != vni {
			continue
		}
		for e := range v.FDB().All() {
			if e.Origin == fdb.OriginLearned {
				has[fact{vni: vni, mac: e.MAC, dest: e.Dest}] = true
			}
		}
		for e := range w.arps[vni].All() {
			if e.Origin == arp.Snooped {
				has[fact{vni: vni, ip: e.IP, mac: e.MAC, dest: e.From}] = true
			}
		}
	}
	return has
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), net: memory.NewNetwork(nil), arps: map[frame.VNI]*arp.Table{}, gates: map[frame.VNI]*l3.Interface{}}
	var err error
	w.vrfs, err = l3.NewGateway(nil)
	w.must(err)
	w.sw, err = vswitch.New(&vswitch.Config{Events: []int{4096, 16}[seed%2]})
	w.must(err)
	u, err := w.net.Listen(netip.MustParseAddrPort("10.0.0.1:4789"), nil)
	w.must(err)
	w.vtep, err = vtep.New(nil, u)
	w.must(err)
	w.plane, err = control.New(&control.Config{Switch: w.sw, Neighbours: func(vni frame.VNI) *arp.Table { return w.arps[vni] }})
	w.must(err)
	return w
}

// segment returns a random segment, perhaps a new one.
func (w *world) segment() *vswitch.VSI {
	vni := frame.VNI(100 + w.r.IntN(3))
	if w.arps[vni] == nil {
		table, err := arp.NewTable(&arp.TableConfig{VNI: vni, Limit: 6, Ageing: 40 * time.Second, Notify: w.sw.Notify})
		w.must(err)
		stage, err := arp.NewResponder(&arp.Config{Table: table})
		w.must(err)
		w.arps[vni] = table
		_, err = w.sw.VSI(vni, &vswitch.VSIConfig{MaxMACs: 6, Ageing: 30 * time.Second, Freeze: 4, Slots: vswitch.Slots{Neighbour: stage}})
		w.must(err)
	}
	v, err := w.sw.VSI(vni, nil)
	w.must(err)
	return v
}

// dest returns where a host of a segment may be, 0 for nowhere.
func (w *world) dest(v *vswitch.VSI) frame.Dest {
	list := v.Attachments()
	if len(list) == 0 {
		return 0
	}
	a := list[w.r.IntN(len(list))]
	if a.Port() != vswitch.Port(w.vtep) {
		return a.Dest(0)
	}
	n, err := w.vtep.AddPeer(at(byte(2 + w.r.IntN(3))))
	w.must(err)
	return a.Dest(n)
}

func (w *world) mac() frame.MAC { return mac(byte(w.r.IntN(9))) }
func (w *world) ip() netip.Addr { return ip(byte(1 + w.r.IntN(9))) }

// hears has a host heard somewhere.
func (w *world) hears(v *vswitch.VSI, m frame.MAC, ip netip.Addr, d frame.Dest) {
	now := frame.Tick(0)
	v.FDB().Learn(m, d, now)
	w.arps[v.VNI()].Learn(&arp.Claim{IP: ip, MAC: m, From: d}, now)
}

// happens does something, sometimes while hosts are heard.
func (w *world) happens() {
	v := w.segment()
	var all sync.WaitGroup
	if d := w.dest(v); d != 0 && w.r.IntN(2) == 0 {
		type heard struct {
			m  frame.MAC
			ip netip.Addr
			d  frame.Dest
		}
		for range 2 {
			var list []heard
			for range 20 {
				list = append(list, heard{w.mac(), w.ip(), w.dest(v)})
			}
			all.Go(func() {
				for _, h := range list {
					w.hears(v, h.m, h.ip, h.d)
				}
			})
		}
		defer all.Wait()
	}
	row := control.MAC{VNI: v.VNI(), MAC: w.mac(), IP: w.ip(), VTEP: at(byte(2 + w.r.IntN(3)))}
	switch w.r.IntN(18) {
	case 0, 1:
		if d := w.dest(v); d != 0 {
			w.hears(v, w.mac(), w.ip(), d)
		}
	case 2:
		v.FDB().Delete(w.mac())
		w.arps[v.VNI()].Delete(w.ip())
	case 3:
		v.Flush()
	case 4:
		w.sw.Flush()
	case 5:
		w.arps[v.VNI()].Flush()
	case 6:
		w.sw.FlushPeer(w.dest(v))
	case 7:
		if list := v.Attachments(); len(list) > 0 {
			if err := w.sw.FlushPort(list[w.r.IntN(len(list))].Port()); !errors.Is(err, net.ErrClosed) {
				w.must(err)
			}
		}
	case 8, 9:
		w.plane.Program("evpn", control.Update{Loose: true, Del: []control.Row{row}, Add: []control.Row{row}})
	case 10:
		w.plane.Program("evpn", control.Update{Snapshot: true})
	case 11:
		all.Wait()
		time.Sleep(time.Duration(w.r.IntN(50)) * time.Second)
	case 12:
		all.Wait()
		w.detach(v, 1)
	case 13:
		all.Wait()
		if w.r.IntN(3) == 0 {
			w.must(v.Delete())
			delete(w.arps, v.VNI())
			if i := w.gates[v.VNI()]; i != nil {
				w.must(i.Close())
			}
			delete(w.gates, v.VNI())
		}
	case 14:
		all.Wait()
		n, err := w.vtep.AddPeer(at(byte(2 + w.r.IntN(3))))
		w.must(err)
		w.vtep.DeletePeer(n)
		time.Sleep(21 * time.Second)
	case 15:
		all.Wait()
		w.changeGateway(v)
	case 16: // perhaps more than a reader takes
		all.Wait()
		for range 5 {
			w.attach(v)
			w.detach(v, 2)
			if d := w.dest(v); d != 0 {
				w.hears(v, w.mac(), w.ip(), d)
			}
		}
	default:
		w.attach(v)
	}
}

// changeGateway gives a segment a gateway, or removes or replaces it.
func (w *world) changeGateway(v *vswitch.VSI) {
	if i := w.gates[v.VNI()]; i != nil {
		w.must(i.Close())
		delete(w.gates, v.VNI())
	}
	cfg := v.Config()
	cfg.Slots.Gateway = nil
	if w.r.IntN(3) > 0 {
		i, err := w.vrfs.VRF([]string{"red", "blue"}[w.r.IntN(2)]).NewInterface(&l3.InterfaceConfig{VNI: v.VNI(), MAC: mac(99), Send: v.Send})
		w.must(err)
		cfg.Slots.Gateway, w.gates[v.VNI()] = i, i
	}
	w.must(v.Configure(cfg))
}

// detach ends one attachment of v if it has at least that many.
func (w *world) detach(v *vswitch.VSI, least int) {
	if list := v.Attachments(); len(list) >= least {
		w.must(list[w.r.IntN(len(list))].Detach())
	}
}

// attach attaches a port to v, perhaps one that was closed before: it returns once the switch has removed such a port,
// because no worker has heard a host on it.
func (w *world) attach(v *vswitch.VSI) {
	defer synctest.Wait()
	if w.r.IntN(3) == 0 {
		_, err := v.AttachWith(w.vtep, uint32(v.VNI()), &vswitch.AttachConfig{KeepOpen: true})
		if !errors.Is(err, vswitch.ErrTagTaken) {
			w.must(err)
		}
		return
	}
	p := port.NewPipe(nil)
	if n := len(w.ports); n > 0 && w.r.IntN(2) == 0 {
		p = w.ports[w.r.IntN(n)]
	}
	if _, err := v.Attach(p, uint32(v.VNI())); err == nil {
		w.ports = append(w.ports, p)
	}
}

// TestEvents: whatever happens, whoever has read the tables once knows them by the events since.
func TestEvents(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() || fake.Race {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			ctx, cancel := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { w.sw.Run(ctx) })
			for range w.r.IntN(20) {
				w.happens()
			}
			m := &mirror{w: w, events: w.sw.Events(), has: map[fact]bool{}}
			m.apply(frame.Event{Kind: frame.EventOverflow})
			var log []string
			for range 60 {
				w.happens()
				synctest.Wait()
				for {
					soon, stop := context.WithTimeout(t.Context(), time.Millisecond)
					e, err := m.events.Next(soon)
					if stop(); err != nil {
						break
					}
					log = append(log, fmt.Sprintf("%+v", e))
					m.apply(e)
				}
				want := w.state()
				for f := range want {
					if !m.has[f] {
						t.Errorf("seed %d: the tables have %v", seed, f)
					}
				}
				for f := range m.has {
					if !want[f] {
						t.Errorf("seed %d: by the events there is %v", seed, f)
					}
				}
				if t.Failed() {
					t.Fatalf("after %q", log[max(0, len(log)-12):])
				}
			}
			m.events.Close()
			cancel()
			run.Wait()
			w.must(w.sw.Close())
			w.vtep.Close()
			w.net.Close()
		})
		if t.Failed() {
			return
		}
	}
}
