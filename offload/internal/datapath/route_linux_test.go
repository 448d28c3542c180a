package datapath

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A router is the programs and a switch in user space that runs, with a gateway between three segments. What the gateway says of a
// packet is put as a flow of the programs.
//
//	near, port a -- segment 1 --+
//	                            gateway
//	host, port b, VLAN 9 -- 2 --+  |   addresses whose first bit is 0
//	far, tunnel of vni ------ 3 ---+   the others
type router struct {
	t       testing.TB
	d       *Datapath
	sw      *vswitch.Switch
	gateway [4]*l3.Interface // by segment
	a, b    *port.Pipe
	far     *memory.Underlay
	got     *frame.Batch
	flows   map[Key]bool

	carried [3]int // to the port, to the tunnel, out of it
}

var (
	macGateway = frame.MAC{2, 0, 0, 0, 3, 1}
	macHost    = frame.MAC{2, 0, 0, 0, 3, 2}
)

const hostTag = 9

func newRouter(t testing.TB) *router {
	t.Helper()
	r := &router{t: t, d: loadFor(t, 1024), a: port.NewPipe(nil), b: port.NewPipe(nil), got: frame.NewBatch(nil), flows: map[Key]bool{}}
	r.sw = check.Must(vswitch.New(nil))(t)
	g := check.Must(l3.NewGateway(nil))(t).VRF("red")
	net := memory.NewNetwork(&memory.NetworkConfig{MTU: tunMTU})
	local, peer := netip.AddrPortFrom(locals[0], 4789), netip.AddrPortFrom(peerOf(0, 0), 4789)
	r.far = check.Must(net.Listen(peer, nil))(t)
	v := check.Must(vtep.New(nil, check.Must(net.Listen(local, nil))(t)))(t)
	check.OK(t, v.SetPeers([]vtep.PeerConfig{{Address: peer.Addr(), Header: vtep.Header{TTL: vtep.Inherit, TOS: vtep.Inherit, DF: vtep.DFInherit}}}))
	var via [4][]l3.NextHop
	for i, m := range []struct {
		p   vswitch.Port
		tag uint32
		mac frame.MAC
	}{{r.a, 0, macNear}, {r.b, hostTag, macHost}, {v, vni, macFar}} {
		seg := frame.VNI(i + 1)
		vsi := check.Must(r.sw.VSI(seg, nil))(t)
		at := check.Must(vsi.Attach(m.p, m.tag))(t)
		d := at.Dest(0)
		if m.tag == vni {
			d = at.Dest(check.Must(v.AddPeer(peer))(t))
		}
		check.OK(t, vsi.FDB().Set(m.mac, d, fdb.Static))
		check.OK(t, vsi.FDB().Set(macGateway, 0, fdb.Static))
		table := check.Must(arp.NewTable(nil))(t)
		a4, a6 := netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 1}), netip.AddrFrom16([16]byte{0xfd, byte(i + 1), 15: 1})
		r.gateway[seg] = check.Must(g.NewInterface(&l3.InterfaceConfig{
			VNI: seg, MAC: macGateway, Addresses: []netip.Prefix{netip.PrefixFrom(a4, 24), netip.PrefixFrom(a6, 64)},
			Neighbours: check.Must(arp.NewResponder(&arp.Config{Table: table}))(t), Send: vsi.Send,
		}))(t)
		for _, ip := range []netip.Addr{a4.Next(), a6.Next()} {
			check.OK(t, table.Set(ip, m.mac, arp.Static, 0))
			via[seg] = append(via[seg], l3.NextHop{Interface: r.gateway[seg], IP: ip})
		}
		check.OK(t, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: r.gateway[seg], TooBig: r.gateway[seg].PathMTU()}}))
	}
	for i, p := range []string{"0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"} {
		check.OK(t, g.Add(l3.Route{Prefix: netip.MustParsePrefix(p), Via: via[2+i%2][i/2 : i/2+1]}))
	}
	t.Cleanup(func() { r.sw.Close(); net.Close() })
	check.Run(t, r.sw.Run)
	r.d.Slot(0).Validate(Validity{1, 0, 0})
	return r
}

// addressesOf returns the addresses of a frame's packet, as a Tuple.
func addressesOf(b []byte) (t frame.Tuple, ok bool) {
	if len(b) >= 34 && binary.BigEndian.Uint16(b[12:]) == 0x0800 {
		return frame.Tuple{Src: netip.AddrFrom4([4]byte(b[26:])), Dst: netip.AddrFrom4([4]byte(b[30:]))}, true
	}
	if len(b) >= 54 && binary.BigEndian.Uint16(b[12:]) == 0x86dd {
		return frame.Tuple{Src: netip.AddrFrom16([16]byte(b[22:])), Dst: netip.AddrFrom16([16]byte(b[38:]))}, true
	}
	return t, false
}

// learn puts the flow of a frame to the gateway as the gateway of its segment says: of its addresses, or of its tuple. It returns the
// segment of the host.
func (r *router) learn(seg frame.VNI, b []byte, tuple bool) frame.VNI {
	r.t.Helper()
	t, ok := addressesOf(b)
	if tuple {
		if x, is := frame.TupleOf(b); is {
			t = x
		}
	}
	hop, _, routed := r.gateway[seg].Lookup(macGateway, t)
	if !ok || !routed || seg == 3 && hop.VNI == 3 {
		return 0
	}
	f := &Flow{SrcEpoch: 1, DstEpoch: 2, Oif: oif, How: Egress, Max: maxLen, NewDst: hop.Dst, NewSrc: hop.Src}
	switch hop.VNI {
	case 2:
		f.Tag = hostTag
	case 3:
		f.How, f.Outer = Neigh, Outer{Local: locals[0], Remote: peerOf(0, 0), Port: 4789, SrcPorts: srcPorts, VNI: vni, TOSIn: true, DF: DFInherit}
	}
	var key Key = OutKey{Ifindex: 1, Dst: macGateway, Src: macNear, Tuple: t}
	if seg == 3 {
		key = InKey{Peer: peerOf(0, 0).As16(), VNI: vni, Dst: macGateway, Src: macFar, Tuple: t}
		f.Outer = Outer{Local: locals[0], Port: 4789, ZeroChecksum: true}
	}
	if r.flows[key] {
		return hop.VNI
	}
	if len(r.flows) > 900 {
		for k := range r.flows {
			check.OK(r.t, r.d.Delete(k))
		}
		clear(r.flows)
	}
	r.flows[key] = true
	check.OK(r.t, r.d.Put(key, f))
	return hop.VNI
}

// run runs a program, and reports whether it has carried the frame. It fails the test if a miss has changed it.
func (r *router) run(p Program, b []byte) (got []byte, ok bool) {
	r.t.Helper()
	act, got, after, err := r.d.Run(p, b, Meta{})
	if errors.Is(err, unix.EINVAL) && len(b) < 54 {
		return nil, false // BPF_PROG_TEST_RUN takes no packets without a whole IP header
	}
	check.OK(r.t, err)
	if act == Miss && bytes.Equal(got, b) && after.Tag == 0 {
		return nil, false
	}
	if act != Redirect {
		r.t.Fatalf("action %d\nfrom %x\nto   %x, tag %#x", act, b, got, after.Tag)
	}
	return tagged(got, after.Tag), true
}

// recv returns what the switch sends to the host.
func (r *router) recv(b []byte) []byte {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	want, err := r.b.Recv(ctx)
	if err != nil {
		r.t.Fatalf("user space does not route %x: %v", b, err)
	}
	return want
}

// sends fails the test unless a frame of near to the gateway is a miss, or becomes what the switch makes of it. It reports which.
func (r *router) sends(b []byte, tuple bool) bool {
	r.t.Helper()
	b = append(append(macGateway[:], macNear[:]...), b...)
	to := r.learn(1, b, tuple)
	got, ok := r.run(PortIn, b)
	if !ok {
		return false
	}
	check.OK(r.t, r.a.Send(b))
	var want []byte
	switch to {
	case 2:
		want = r.recv(b)
	case 3:
		check.OK(r.t, r.far.Readers()[0].Read(r.got))
		o := &r.got.Outer[0]
		if got[15] != o.TOS || got[22] != o.TTL {
			r.t.Fatalf("frame %x: outer TOS %#x, TTL %d; want %#x, %d", b, got[15], got[22], o.TOS, o.TTL)
		}
		got, want = got[42:], r.got.Frames[0].Bytes()
	}
	if !bytes.Equal(got, want) {
		r.t.Fatalf("segment %v: frame\n%x\ngot\n%x\nwant\n%x", to, b, got, want)
	}
	r.carried[to-2]++
	return true
}

// reads is sends for a frame of far.
func (r *router) reads(b []byte, tos uint8, tuple bool) bool {
	r.t.Helper()
	b = append(append(macGateway[:], macFar[:]...), b...)
	r.learn(3, b, tuple)
	got, ok := r.run(TunnelIn, received(0, vxlan(b), tos))
	if !ok {
		return false
	}
	to := check.Must(frame.EndpointFrom(netip.AddrPortFrom(locals[0], 4789)))(r.t)
	check.OK(r.t, r.far.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{vxlan(b)}, To: []frame.Endpoint{to}, TTL: 64, TOS: tos}}))
	want := r.recv(b)
	if len(want) < len(got) {
		got = got[:len(want)] // unfinished: padding is cut off
	}
	if !bytes.Equal(got, want) {
		r.t.Fatalf("frame\n%x\ngot\n%x\nwant\n%x", b, got, want)
	}
	r.carried[2]++
	return true
}

// routable is a random frame without its MACs; of IPv6 addresses, most can be routed.
func (r dice) routable() []byte {
	b := r.frame(macFar, macNear)[12:]
	if len(b) > 42 && binary.BigEndian.Uint16(b) == 0x86dd && !r.one(8) {
		b[10], b[26] = 0x20, []byte{0x20, 0xa0}[r.IntN(2)]
	}
	return b
}

// For random packets, the programs route as the gateway does, or it is a miss.
func TestRandomRoutes(t *testing.T) {
	g := newRouter(t)
	r := dice{rand.New(rand.NewPCG(9, 10))}
	const rounds = 10000
	for range rounds {
		g.sends(r.routable(), r.one(2))
		g.reads(r.routable(), uint8(r.Uint32()), r.one(2))
	}
	t.Log(g.carried)
	for way, n := range g.carried {
		check.True(t, n > rounds/20, "way %d: %d of %d carried", way, n, rounds)
	}
}

// FuzzRoutes is TestRandomRoutes with the packets of the fuzzer.
func FuzzRoutes(f *testing.F) {
	r := dice{rand.New(rand.NewPCG(11, 12))}
	for i := range 64 {
		f.Add(r.routable(), uint8(i), i%2 == 0)
	}
	g := newRouter(f)
	f.Fuzz(func(t *testing.T, b []byte, tos uint8, tuple bool) {
		if len(b) < 2 || len(b) > 3000 {
			return
		}
		g.t = t
		g.sends(b, tuple)
		g.reads(b, tos, tuple)
	})
}

// What a router does not pass on, or not as it came, is a miss that has a name.
func TestRouteCauses(t *testing.T) {
	d := load(t)
	d.Slot(0).Validate(Validity{1, 0, 0})
	f := &Flow{SrcEpoch: 1, DstEpoch: 2, Oif: 1, How: Egress, Max: maxLen, NewDst: macHost, NewSrc: macGateway, Outer: Outer{Local: locals[0], Port: 4789, ZeroChecksum: true}}
	for _, v6 := range []bool{false, true} {
		s := shape{dst: macGateway, src: macFar, v6: v6, proto: layers.IPProtocolUDP, size: 100}
		plain := s.bytes()
		hosts, _ := addressesOf(plain)
		check.OK(t, d.Put(OutKey{Ifindex: 1, Dst: macGateway, Src: macFar, Tuple: hosts}, f))
		check.OK(t, d.Put(InKey{Peer: peerOf(0, 0).As16(), VNI: vni, Dst: macGateway, Src: macFar, Tuple: hosts}, f))
		ttl, length := 22, 16
		if v6 {
			ttl, length = 21, 18
		}
		with := func(at int, x ...byte) []byte {
			b := bytes.Clone(plain)
			copy(b[at:], x)
			if !v6 {
				sealed(b)
			}
			return b
		}
		spoilt := bytes.Clone(plain)
		spoilt[24]++
		other := bytes.Clone(plain)
		other[29]++
		fragment := s
		fragment.offset, fragment.next = 100, layers.IPProtocolIPv6Fragment
		for _, c := range []struct {
			name string
			b    []byte
			want Cause
		}{
			{"plain", plain, NumCauses},
			{"TTL 2", with(ttl, 2), NumCauses},
			{"TTL 1", with(ttl, 1), Hops},
			{"TTL 0", with(ttl, 0), Hops},
			{"longer than the frame", with(length, 1, 0), Header},
			{"later fragment", fragment.bytes(), NumCauses},
			{"checksum", spoilt, Header},
			{"other address", other, NoFlow},
		} {
			if v6 && c.name == "checksum" {
				continue
			}
			check.Equal(t, c.name, d.why(t, PortIn, c.b, Meta{}), c.want)
			check.Equal(t, c.name+" out of a tunnel", d.why(t, TunnelIn, received(0, vxlan(c.b), 0), Meta{}), c.want)
		}
		check.Equal(t, "superframe", d.why(t, PortIn, plain, Meta{GSOSize: 50, GSOSegs: 2}), NumCauses)
	}
	bad := *f
	bad.NewSrc = frame.MAC{}
	check.True(t, d.Put(OutKey{}, &bad) != nil, "no error for one MAC")
}
