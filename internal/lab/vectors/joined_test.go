package vectors

import (
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A joined is an IP port and a tunnel for IP, with nothing between them: what the test sends
// in at the port goes to far end 2, and back.
type joined struct {
	*tun
	f    *far
	vni  frame.VNI // of VXLAN-GPE
	peer uint16
}

// lonely starts a switch that is one end of a tunnel, and nobody at the other.
func (l *lab) lonely(vc vtep.Config, n frame.VNI) *joined {
	l.T.Helper()
	j := &joined{tun: l.newTun(9216), vni: n}
	l.typ = vc.Type
	l.Node = l.NodeWith(l.addr(1).String(), nil, &vc)
	l.seg = l.vsi(n, nil)
	near := check.Must(l.seg.Attach(j.tun, 0))(l.T)
	l.tun = check.Must(l.seg.Attach(l.VTEP, tagOf(vc.Type, n)))(l.T)
	j.peer = check.Must(l.VTEP.AddPeer(l.at(2)))(l.T)
	w, err := l3.NewCrossConnect(&l3.CrossConnectConfig{Near: near.Dest(0), Far: l.tun.Dest(j.peer), Tunnel: l.VTEP, Send: l.seg.Send})
	l.must(err)
	l.must(l.seg.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: w, TooBig: w.PathMTU()}}))
	return j
}

// joined is lonely with a far end, in VNI 100.
func (l *lab) joined(vc vtep.Config) *joined {
	l.T.Helper()
	j := l.lonely(vc, vni)
	j.f = l.far(2)
	return j
}

// wrap is a packet as far end 2 gets it.
func (j *joined) wrap(ip []byte) []byte { return wrapped(j.l.typ, j.vni, ip) }

// packet is one that a host behind the IP port sends to one behind the far end.
func (j *joined) packet(v6 bool) packet {
	return packetOf(frame.MAC{}, ipOf(v6, vni, 1), frame.MAC{}, ipOf(v6, vni2, 2)).naked()
}

// back is one on the other way.
func (j *joined) back(v6 bool) packet {
	p := j.packet(v6)
	p.src, p.dst = p.dst, p.src
	return p
}

// tagOf is what a VTEP calls a network: IP-in-IP has one, without a number.
func tagOf(t encap.Type, n frame.VNI) uint32 {
	if t == encap.TypeIPIP {
		return 0
	}
	return uint32(n)
}

// wrapped is an IP packet in a tunnel.
func wrapped(t encap.Type, n frame.VNI, ip []byte) []byte {
	if t == encap.TypeIPIP {
		return ip
	}
	return gpe(n, map[byte]byte{4: 1, 6: 2}[ip[0]>>4], ip)
}

// gpe returns a VXLAN-GPE header with I and P and what follows, written out here so that
// nothing of the code under test has a part in it.
func gpe(n frame.VNI, next byte, inner []byte) []byte {
	return append([]byte{0x0c, 0, 0, next, byte(n >> 16), byte(n >> 8), byte(n), 0}, inner...)
}

// bum is the same with B.
func bum(n frame.VNI, next byte, inner []byte) []byte {
	b := gpe(n, next, inner)
	b[0] |= 2
	return b
}

// forIP is what of a rule both tunnels for IP share.
func forIP(id, name string, test func(l *lab, t encap.Type, v6 bool)) (rows []row) {
	for _, t := range []encap.Type{encap.TypeGPE, encap.TypeIPIP} {
		rows = append(rows, inside(id, name+", "+t.String(), func(l *lab, v6 bool) { test(l, t, v6) })...)
	}
	return rows
}

// A spy is an underlay that hands over what a network has to say, and lets the test say it;
// and whose packets are of the kind that the test says, as if the outer header did.
type spy struct {
	*memory.Underlay
	kind        *frame.Kind // nil: as the version in the packet
	payloads    [][]byte    // what packets are in truth, nil: as they came
	narrow      func(to frame.Endpoint, mtu int, quoted []byte)
	unreachable func(to frame.Endpoint, quoted []byte)
}

func (s *spy) PathMTU(f func(frame.Endpoint, int, []byte)) { s.narrow = f }
func (s *spy) Unreachable(f func(frame.Endpoint, []byte))  { s.unreachable = f }
func (s *spy) Readers() []frame.Reader                     { return []frame.Reader{spyReader{s.Underlay.Readers()[0], s}} }

type spyReader struct {
	frame.Reader
	s *spy
}

func (r spyReader) Read(b *frame.Batch) error {
	err := r.Reader.Read(b)
	for i := range b.Frames {
		f := &b.Frames[i]
		if i < len(r.s.payloads) && r.s.payloads[i] != nil {
			f.Trim(copy(f.Bytes(), r.s.payloads[i]))
		}
		if r.s.kind != nil {
			f.Kind = *r.s.kind
		}
	}
	return err
}

// spied makes a VTEP without a switch, at address 1, with peers 2 and 3.
func (l *lab) spied(vc vtep.Config) (v *vtep.VTEP, s *spy, two, three uint16) {
	l.T.Helper()
	l.typ = vc.Type
	u := check.Must(l.Listen(l.addr(1), vc.Type))(l.T)
	s = &spy{Underlay: u}
	v = check.Must(vtep.New(&vc, s))(l.T)
	l.must(v.Control().Open(tagOf(vc.Type, vni)))
	two = check.Must(v.AddPeer(l.at(2)))(l.T)
	three = check.Must(v.AddPeer(l.at(3)))(l.T)
	return v, s, two, three
}

// endpoint returns far end i as underlays name it.
func (l *lab) endpoint(i byte) frame.Endpoint {
	l.T.Helper()
	e := check.Must(frame.EndpointFrom(l.at(i)))(l.T)
	return e
}
