// Package mem builds test networks in memory: switches joined by an in-memory
// underlay, hosts that are Go programs, time that stands still until asked to pass
// (testing/synctest). Tests read as sentences; see [Fabric].
package mem

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A Fabric is a test network in memory: switches with a VTEP each, joined by one
// in-memory underlay, and hosts on them. It lives in a synctest bubble:
//
//	mem.Run(t, nil, func(f *mem.Fabric) {
//		a, b := f.Node("10.0.0.1"), f.Node("10.0.0.2")
//		f.Mesh(100, a, b)
//		h1, h2 := a.Host(100), b.Host(100)
//		h1.Send(mem.ARPRequest(h1, h2.IP))
//		h2.Want(mem.ARPRequest(h1, h2.IP))
//		f.WantQuiet()
//	})
type Fabric struct {
	T   testing.TB
	Net *memory.Network

	nodes []*Node
	hosts []*Host
}

// A Node is one switch with its VTEP.
type Node struct {
	*vswitch.Switch
	Underlay *memory.Underlay // what the VTEP stands on
	VTEP     *vtep.VTEP
	Addr     netip.AddrPort // of the underlay: the port is that of the VTEP's encapsulation
	fab      *Fabric
}

// A Host is a Go program on a port of its own.
type Host struct {
	*port.Pipe
	At   *vswitch.Attachment
	Node *Node
	VNI  frame.VNI
	MAC  frame.MAC
	IP   netip.Addr
}

// Run runs test in a synctest bubble on a new network, and closes everything
// afterwards. A nil cfg is a perfect network.
func Run(t *testing.T, cfg *memory.NetworkConfig, test func(f *Fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &Fabric{T: t, Net: memory.NewNetwork(cfg)}
		defer f.close()
		test(f)
	})
}

func (f *Fabric) close() {
	for _, n := range f.nodes {
		n.Close()
	}
	f.Net.Close()
}

func (f *Fabric) must(err error) {
	f.T.Helper()
	if err != nil {
		f.T.Fatal(err)
	}
}

// Node starts a switch whose VTEP has the given underlay address, port 4789, and
// default settings.
func (f *Fabric) Node(addr string) *Node {
	f.T.Helper()
	return f.NodeWith(addr, nil, nil)
}

// NodeWith is Node with settings. The VTEP's type says which port it is on, or that it has
// none.
func (f *Fabric) NodeWith(addr string, sc *vswitch.Config, vc *vtep.Config) *Node {
	f.T.Helper()
	t := encap.TypeVXLAN
	if vc != nil {
		t = vc.Type
	}
	u, err := f.Listen(netip.MustParseAddr(addr), t)
	f.must(err)
	v, err := vtep.New(vc, u)
	f.must(err)
	sw, err := vswitch.New(sc)
	f.must(err)
	go sw.Run(context.Background())
	return f.NodeOf(sw, v, u)
}

// NodeOf is a Node of a switch that runs already, with its VTEP.
func (f *Fabric) NodeOf(sw *vswitch.Switch, v *vtep.VTEP, u *memory.Underlay) *Node {
	n := &Node{Switch: sw, Underlay: u, VTEP: v, Addr: u.LocalAddr(), fab: f}
	f.nodes = append(f.nodes, n)
	return n
}

// Listen makes an underlay for an encapsulation, on the port that IANA assigned to it.
func (f *Fabric) Listen(addr netip.Addr, t encap.Type) (*memory.Underlay, error) {
	if t == encap.TypeIPIP {
		return f.Net.ListenIP(addr, nil)
	}
	return f.Net.Listen(netip.AddrPortFrom(addr, Port(t)), nil)
}

// Port returns the UDP port that IANA assigned to an encapsulation, 0 if it has none.
func Port(t encap.Type) uint16 {
	return map[encap.Type]uint16{encap.TypeVXLAN: encap.VXLANPort, encap.TypeGPE: encap.GPEPort}[t]
}

// Mesh makes the nodes members of a VNI, each with all others in its flood list.
func (f *Fabric) Mesh(vni frame.VNI, nodes ...*Node) {
	f.T.Helper()
	for _, n := range nodes {
		var peers []netip.AddrPort
		for _, o := range nodes {
			peers = append(peers, o.Addr) // its own is left out by the VTEP
		}
		_, err := n.Segment(vni).Attach(n.VTEP, uint32(vni))
		f.must(err)
		f.must(n.VTEP.SetFlood(vni, peers...))
	}
}

// Segment returns a node's VSI of a VNI, making it if there is none.
func (n *Node) Segment(vni frame.VNI) *vswitch.VSI {
	n.fab.T.Helper()
	v, err := n.VSI(vni, nil)
	n.fab.must(err)
	return v
}

// Host puts a new host on an access port in a VNI of the node.
func (n *Node) Host(vni frame.VNI) *Host {
	n.fab.T.Helper()
	return n.HostWith(vni, 0, vswitch.AttachConfig{})
}

// HostWith is Host with a VLAN tag and settings for its attachment.
func (n *Node) HostWith(vni frame.VNI, tag uint32, cfg vswitch.AttachConfig) *Host {
	n.fab.T.Helper()
	i := len(n.fab.hosts) + 1
	h := &Host{
		Pipe: port.NewPipe(&port.PipeConfig{Name: fmt.Sprintf("host%d", i)}), Node: n, VNI: vni,
		MAC: frame.MACFrom(0x020000000000 + uint64(i)), IP: netip.AddrFrom4([4]byte{192, 168, byte(i >> 8), byte(i)}),
	}
	var err error
	h.At, err = n.Segment(vni).AttachWith(h.Pipe, tag, &cfg)
	n.fab.must(err)
	n.fab.hosts = append(n.fab.hosts, h)
	return h
}

// Settle waits until nothing moves any more: every goroutine waits, and no datagram
// is under way that arrives by itself.
func (f *Fabric) Settle() {
	synctest.Wait()
	for f.Net.Stats().InFlight > 0 {
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
}

// T returns the test the host is in.
func (h *Host) T() testing.TB { return h.Node.fab.T }

// Send sends frames into the host's port, one at a time until all is quiet.
func (h *Host) Send(frames ...[]byte) {
	f := h.Node.fab
	f.T.Helper()
	for _, b := range frames {
		f.must(h.Pipe.Send(b))
		f.Settle()
	}
}

// Got returns the frames that have arrived at the host.
func (h *Host) Got() [][]byte {
	h.Node.fab.Settle()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	var all [][]byte
	for {
		b, err := h.Recv(ctx)
		if err != nil {
			return all
		}
		all = append(all, b)
	}
}

// Want fails the test unless exactly these frames have arrived at the host, in this
// order.
func (h *Host) Want(frames ...[]byte) {
	t := h.Node.fab.T
	t.Helper()
	got := h.Got()
	for i := range max(len(got), len(frames)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: missing % x", h.Name(), frames[i])
		case i >= len(frames):
			t.Errorf("%s: unexpected % x", h.Name(), got[i])
		case !bytes.Equal(got[i], frames[i]):
			t.Errorf("%s: got % x, want % x", h.Name(), got[i], frames[i])
		}
	}
}

// WantQuiet fails the test if anything is left at any host.
func (f *Fabric) WantQuiet() {
	f.T.Helper()
	for _, h := range f.hosts {
		h.Want()
	}
}

// Hosts returns all hosts there are.
func (f *Fabric) Hosts() []*Host { return f.hosts }

// WantNoDrops fails the test if any node has dropped anything.
func (f *Fabric) WantNoDrops() {
	f.T.Helper()
	for _, n := range f.nodes {
		n.WantDrops(nil)
	}
}

// WantDrops fails the test unless the node has dropped, since it started, exactly
// this on its way in and out: reasons by name.
func (n *Node) WantDrops(want map[string]uint64) {
	t := n.fab.T
	t.Helper()
	n.fab.Settle()
	got := n.Drops()
	for r, c := range got {
		if want[r] != c {
			t.Errorf("%v: %d drops %q, want %d", n.Addr, c, r, want[r])
		}
	}
	for r, c := range want {
		if got[r] == 0 && c != 0 {
			t.Errorf("%v: no drops %q, want %d", n.Addr, r, c)
		}
	}
}

// Drops returns a node's drops of all ports, both ways, by the name of the reason.
func (n *Node) Drops() map[string]uint64 {
	m := map[string]uint64{}
	for _, p := range n.Stats().Ports {
		for _, d := range []frame.Drops{p.RxDrops, p.TxDrops} {
			for r, c := range d.All() {
				m[r.String()] += c
			}
		}
	}
	return m
}

// Ethernet returns a frame, padded to 60 bytes as network cards do.
func Ethernet(dst, src frame.MAC, etherType uint16, payload []byte) []byte {
	b := append(dst[:], src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = append(b, payload...)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

// Tagged returns an 802.1Q-tagged copy of a frame.
func Tagged(vid uint16, b []byte) []byte {
	t := append(bytes.Clone(b[:12]), 0x81, 0, byte(vid>>8), byte(vid))
	return append(t, b[12:]...)
}

func arp(op uint16, dst frame.MAC, from *Host, toMAC frame.MAC, to netip.Addr) []byte {
	p := []byte{0, 1, 8, 0, 6, 4, byte(op >> 8), byte(op)}
	p = append(append(p, from.MAC[:]...), from.IP.AsSlice()...)
	p = append(append(p, toMAC[:]...), to.AsSlice()...)
	return Ethernet(dst, from.MAC, 0x0806, p)
}

// ARPRequest returns a host's broadcast question for an address (RFC 826).
func ARPRequest(from *Host, to netip.Addr) []byte {
	return arp(1, frame.Broadcast, from, frame.MAC{}, to)
}

// ARPReply returns a host's answer to another.
func ARPReply(from, to *Host) []byte { return arp(2, to.MAC, from, to.MAC, to.IP) }

// Unicast returns a frame from one host to another, with a text in it.
func Unicast(from, to *Host, text string) []byte {
	return Ethernet(to.MAC, from.MAC, 0x88b5, []byte(text)) // local experimental (IEEE 802)
}
