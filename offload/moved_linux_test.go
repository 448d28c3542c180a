package offload

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// many is how many frames of a flow a moved device takes to the other network namespace.
const many = 2000

// TestMoved: a device is moved to another network namespace while somebody sends as fast as he can, and the program stays on it.
// Not one frame leaves by the device there that has the number of the flow's, although that one is all that a flow needs; with a
// beacon there, they do.
//
//	       host h                            host other        host sink
//	guest g: veth -- hook --+                decoy ----------- decoy
//	           tap0, tap1 --+-- eth0 -- far
func TestMoved(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"tap0", "peer"}, {"tap0", "tap1"}, {"tap0", "veth"}, {"veth", "peer"}, {"veth", "tap1"}, {"peer", "tap0"}, {"peer", "veth"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			m := newMovable(t)
			from, to := m.dests[c.from], m.dests[c.to]
			p := vswitch.Pair{From: from, Src: macA, Dst: macB}
			if c.from == "peer" {
				p.Tag = vni
			}
			check.OK(t, m.table.Set(macA, from, fdb.Static))
			check.OK(t, m.table.Set(macB, to, fdb.Static))
			if m.o.offer(p); m.o.entries[p] == nil {
				t.Fatalf("no flow: %+v", check.Must(m.o.Stats())(t))
			}
			there, through := m.decoy(m.index[c.to])
			m.send(c.from, p)
			m.h.Until("frames are carried", func() bool { return check.Must(m.o.Stats())(t).Carried.Frames > many })

			m.h.IP("link", "set", m.names[c.from], "netns", m.other.NS)
			m.other.Up(m.names[c.from])
			missed := func() uint64 { return check.Must(m.o.Stats())(t).Misses["namespace"] }
			m.h.Until("frames of the flow arrive in the other network namespace", func() bool { return missed() > many })
			was := check.Must(m.o.Stats())(t).Carried.Frames
			for _, l := range []*listener{there, through} {
				if n := len(l.all.Load().after(0)); n != 0 {
					t.Errorf("%d frames left by the other device, of %d", n, missed())
				}
			}
			m.h.Until("more", func() bool { return missed() > 2*many })
			if n := check.Must(m.o.Stats())(t).Carried.Frames - was; n != 0 {
				t.Errorf("%d frames were carried there", n)
			}

			netns.Open(t, m.other, func() (io.Closer, error) { return m.o.dp.Beacon(int(m.index[c.from])) })
			m.h.Until("frames leave by the other device where there is a beacon", func() bool {
				return len(there.all.Load().after(0))+len(through.all.Load().after(0)) > 0
			})
			check.OK(t, m.o.Close())
		})
	}
}

// TestMaster: a device with a master, which may be a VRF, has a beacon that is bound to it; another has not. None is left by Close.
func TestMaster(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	h.Bridge("br0", "tap0")
	r.hosts(r.dests[0], r.dests[1])
	sockets := func(at string) int { return strings.Count(h.Run("ss", "-Hlnu"), at+":") }
	h.Do(func() {
		for _, p := range []vswitch.Pair{{From: r.dests[0], Src: macA, Dst: macB}, {From: r.dests[1], Src: macB, Dst: macA}} {
			r.o.offer(p)
			check.True(t, r.carried(p), "%v is not carried: %+v", p, check.Must(r.o.Stats())(t))
		}
		check.Equal(t, "beacons of all devices", sockets("127.0.0.1"), 1)
		check.Equal(t, "beacons bound to tap0", sockets("127.0.0.2%tap0"), 1)
		check.Equal(t, "beacons bound to tap1", sockets("127.0.0.2%tap1"), 0)
		check.OK(t, r.o.Close())
		check.Equal(t, "sockets left", sockets("127.0.0.1")+sockets("127.0.0.2%tap0"), 0)
	})
}

// TestMasterOfTwo: a device with a master may be a port and that of an underlay: the two programs have one beacon.
func TestMasterOfTwo(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	h.Bridge("br0", "tap0")
	h.Do(func() {
		for _, n := range []need{{int(r.index[0]), datapath.PortOut}, {int(r.index[0]), datapath.TunnelIn}} {
			check.OK(t, r.o.devices.attach(n))
		}
		check.Equal(t, "programs", len(r.o.devices.with), 2)
		check.OK(t, r.o.Close())
	})
}

// A movable is a switch with ports of all kinds, and an Offload without its goroutine, so that nothing detaches a program.
type movable struct {
	t           *testing.T
	n           *netns.Net
	h, g, far   *netns.Host
	other, sink *netns.Host
	table       *fdb.Table
	o           *Offload
	dests       map[string]frame.Dest
	index       map[string]uint32 // of the devices, by the places of a flow
	names       map[string]string
}

func newMovable(t *testing.T) *movable {
	t.Helper()
	n := netns.New(t)
	m := &movable{t: t, n: n, dests: map[string]frame.Dest{}, index: map[string]uint32{}, names: map[string]string{}}
	for name, h := range map[string]**netns.Host{"h": &m.h, "g": &m.g, "far": &m.far, "other": &m.other, "sink": &m.sink} {
		*h = n.Host(name)
		(*h).Quiet()
	}
	m.pad()
	n.Link(m.h, "192.0.2.1/24", m.far, "192.0.2.2/24")
	m.h.Neighbour("eth0", "192.0.2.2", m.far.MAC("eth0"))
	sw := check.Must(vswitch.New(nil))(t)
	t.Cleanup(func() { sw.Close() })
	vsi := check.Must(sw.VSI(vni, nil))(t)
	m.table = vsi.FDB()
	for _, name := range []string{"tap0", "tap1", "veth"} {
		d := netns.Open(t, m.h, func() (*port.Device, error) {
			if name == "veth" {
				return port.OpenVeth("guest0", &port.DeviceConfig{Namespace: m.g.NS})
			}
			return port.OpenTAP(name, nil)
		})
		m.dests[name] = check.Must(vsi.Attach(d, 0))(t).Dest(0)
		m.place(name, check.Must(d.Hook())(t).Index)
		m.h.Up(m.names[name])
	}
	m.g.Up("guest0")
	u := netns.Open(t, m.h, func() (*underlay.UDP, error) { return underlay.ListenUDP(netip.AddrPortFrom(addr(1), oldPort), nil) })
	v := check.Must(vtep.New(nil, u))(t)
	a := check.Must(vsi.Attach(v, vni))(t)
	m.dests["peer"] = a.Dest(check.Must(v.AddPeer(netip.AddrPortFrom(addr(2), 0)))(t))
	m.h.Do(func() { m.place("peer", check.Must(net.InterfaceByName("eth0"))(t).Index) })
	m.o = netns.Open(t, m.h, func() (*Offload, error) { return newOffload(sw, nil) })
	return m
}

// pad uses up the first numbers of devices in h, so that those of its devices are free elsewhere.
func (m *movable) pad() {
	for i := range 6 {
		name := fmt.Sprintf("pad%d", i)
		m.h.IP("link", "add", name, "type", "bridge")
		defer m.h.IP("link", "del", name)
	}
}

func (m *movable) place(name string, index int) {
	m.index[name] = uint32(index)
	m.h.Do(func() { m.names[name] = check.Must(net.InterfaceByIndex(index))(m.t).Name })
}

// decoy makes a device in the other network namespace with a number, by which the peer can be reached as well, and listens at both
// of its ends.
func (m *movable) decoy(index uint32) (there, through *listener) {
	m.other.IP("link", "add", "decoy", "index", fmt.Sprint(index), "type", "veth", "peer", "name", "decoy", "netns", m.sink.NS)
	for _, h := range []*netns.Host{m.other, m.sink} {
		h.Up("decoy")
	}
	m.other.Addr("decoy", "192.0.2.1/24")
	m.other.Neighbour("decoy", "192.0.2.2", m.sink.MAC("decoy"))
	there, through = listenOn(m.t, m.other, "decoy"), listenOn(m.t, m.sink, "decoy")
	there.all.Store(newNumberSet())
	through.all.Store(newNumberSet())
	return there, through
}

// send has the frames of a pair sent into the device where they come from, wherever that is.
func (m *movable) send(from string, p vswitch.Pair) {
	b, hosts, dev := numbered(p.Src, p.Dst, 0), []*netns.Host{m.h, m.other}, int(m.index[from])
	find := func(h *netns.Host, name string) {
		hosts = []*netns.Host{h}
		h.Do(func() { dev = check.Must(net.InterfaceByName(name))(m.t).Index })
	}
	switch from {
	case "peer":
		m.h.Do(func() { b = outer(m.t, encap.TypeVXLAN, p, b, dev) })
		find(m.far, "eth0")
	case "veth":
		find(m.g, "guest0")
	}
	for _, h := range hosts {
		s := &stream{frame: append([]byte(nil), b...), to: &unix.SockaddrLinklayer{Ifindex: dev}}
		s.number = s.frame[len(s.frame)-8:]
		startSender(m.t, h).now.Store(s)
	}
}
