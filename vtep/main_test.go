package vtep

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	stub "github.com/vxswitch/vxswitch/internal/lab/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is an underlay without a network. It is its own Sender and Reader.
type fake struct {
	stub.Underlay
	local netip.AddrPort
	mtu   int

	in   []packetIn // for the next Read, all in one batch
	sent []sent
	send func(ds []frame.Datagram) error // instead of recording

	path                    func(frame.Endpoint, int, []byte)
	sends                   int
	paused, resumed, closed int
}

type packetIn struct {
	src  frame.Endpoint
	data []byte
	drop frame.Reason
	tos  uint8
	gso  frame.GSO
}

// sent is a copy of a Datagram.
type sent struct {
	payload  []byte
	to       []netip.AddrPort
	flow     uint16
	tos, ttl uint8
	df       bool
	set      uint8
	seg      int
}

func (u *fake) Readers() []frame.Reader                     { return []frame.Reader{u} }
func (u *fake) Sender(int) frame.Sender                     { return u }
func (u *fake) LocalAddr() netip.AddrPort                   { return u.local }
func (u *fake) MTU() int                                    { return u.mtu }
func (u *fake) PathMTU(f func(frame.Endpoint, int, []byte)) { u.path = f }
func (u *fake) Pause()                                      { u.paused++ }
func (u *fake) Resume()                                     { u.resumed++ }
func (u *fake) Close() error                                { u.closed++; return nil }

func (u *fake) Read(b *frame.Batch) error {
	b.Reset()
	if len(u.in) == 0 {
		return net.ErrClosed
	}
	for i := range u.in {
		p := &u.in[i]
		f := b.Borrow(p.data, 0, len(p.data))
		f.Drop, f.GSO = p.drop, p.gso
		b.Outer[len(b.Outer)-1] = frame.Outer{Src: p.src, TOS: p.tos}
	}
	u.in = u.in[:0]
	return nil
}

func (u *fake) Send(ds []frame.Datagram) error {
	u.sends++
	if u.send != nil {
		return u.send(ds)
	}
	for i := range ds {
		d := &ds[i]
		x := sent{payload: bytes.Join(d.Parts, nil), flow: d.Flow, tos: d.TOS, ttl: d.TTL, df: d.DF, set: d.Set, seg: int(d.Seg)}
		for _, e := range d.To {
			x.to = append(x.to, e.AddrPort())
		}
		u.sent = append(u.sent, x)
	}
	return nil
}

var (
	local4 = netip.MustParseAddrPort("192.0.2.1:4789")
	local6 = netip.MustParseAddrPort("[2001:db8::1]:4789")
)

func fake4() *fake { return &fake{local: local4, mtu: 1500} }
func fake6() *fake { return &fake{local: local6, mtu: 1500} }

// at returns the address of an IPv4 peer, and at6 that of an IPv6 one.
func at(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 4789)
}

func at6(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 15: byte(i), 14: byte(i >> 8), 2: 9}), 4789)
}

func newVTEP(t testing.TB, cfg *Config, us ...Underlay) *VTEP {
	t.Helper()
	v := check.Must(New(cfg, us...))(t)
	t.Cleanup(func() { v.Close() })
	return v
}

// flood sets a flood list, after the VNI is opened.
func flood(t testing.TB, v *VTEP, vni frame.VNI, peers ...netip.AddrPort) {
	t.Helper()
	check.OK(t, v.Control().Open(uint32(vni)))
	check.OK(t, v.SetFlood(vni, peers...))
}

func addPeer(t testing.TB, v *VTEP, a netip.AddrPort) uint16 {
	t.Helper()
	n := check.Must(v.AddPeer(a))(t)
	return n
}

const vni = 100

// inner returns a frame whose flow is i.
func inner(i int) []byte {
	b := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i), 0x88, 0xb5}
	return append(b, bytes.Repeat([]byte{byte(i)}, 46)...)
}

// vx returns a frame behind a header.
func vx(n frame.VNI, b []byte) []byte {
	h := make([]byte, encap.VXLANLen)
	encap.PutVXLAN(h, n)
	return append(h, b...)
}

func endpoint(t testing.TB, a netip.AddrPort) frame.Endpoint {
	t.Helper()
	e := check.Must(frame.EndpointFrom(a))(t)
	return e
}

// hear has the VTEP read packets from an address, and returns the frames.
func (u *fake) hear(t testing.TB, r frame.Reader, from netip.AddrPort, packets ...[]byte) []frame.Frame {
	t.Helper()
	for _, p := range packets {
		u.in = append(u.in, packetIn{src: endpoint(t, from), data: bytes.Clone(p)})
	}
	b := frame.NewBatch(nil)
	check.OK(t, r.Read(b))
	return b.Frames
}

// out makes Outs of frames, one flow each, with hashes that never meet: a secret hash of two of
// them may, and they then leave in one datagram.
func out(peer uint16, n int) []frame.Out {
	outs := make([]frame.Out, n)
	for i := range outs {
		f := frame.Make(inner(i))
		f.Hash = uint32(i+1) * 0x9e3779b1
		outs[i] = frame.Out{F: &f, Peer: peer, Tag: vni}
	}
	return outs
}
