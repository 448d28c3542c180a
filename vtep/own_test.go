package vtep

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/geneve"
)

func ownVTEP(t testing.TB, e encap.Encapsulation, us ...Underlay) *VTEP {
	t.Helper()
	v := newVTEP(t, &Config{Own: e}, us...)
	check.OK(t, v.Control().Open(vni))
	check.OK(t, v.Control().Open(200))
	return v
}

// What one VTEP writes in an encapsulation of a stranger, another reads: frames, packets with a shorter header, copies, and superframes
// cut into segments. The MTU leaves room for the longest header, flows have source ports of their own, and nothing is allocated.
func TestOwn(t *testing.T) {
	a, b := fake4(), fake4()
	from, to := ownVTEP(t, geneve.Geneve{}, a), ownVTEP(t, geneve.Geneve{}, b)
	n := addPeer(t, from, at(1))
	flood(t, from, vni, at(1), at(2))
	check.Equal(t, "MTU", from.MTU(n), 1500-20-8-16)
	f, g := frame.Make(inner(1)), frame.Make(inner(2))
	outs := []frame.Out{{F: &f, Peer: n, Tag: vni}, {F: &g, Tag: 200 - 100}, bare4(0, 9, true).out(n, 200), bare6(0, 9).out(n, vni), bare6(0, 9).out(0, vni)}
	w := from.Writer(0)
	check.OK(t, w.Write(outs))
	check.Need(t, len(a.sent) == 4, "%d datagrams", len(a.sent))
	check.True(t, outs[4].Drop == frame.NoPeer, "%v", outs[4].Drop)
	want := []byte{2, 0, 0x65, 0x58, 0, 0, vni, 0, 0xff, 0xff, 1, 1, 'v', 'x', 's', 'w'}
	check.True(t, bytes.Equal(a.sent[0].payload, append(want, inner(1)...)), "% x", a.sent[0].payload)
	check.True(t, len(a.sent[1].to) == 2, "%v", a.sent[1].to)
	for i, s := range a.sent {
		check.True(t, outs[i].Drop == 0 && outs[i].F.Hash != 0 && s.flow == uint16(outs[i].F.Hash), "%d: %v, flow %#x", i, outs[i].Drop, s.flow)
		b.in = append(b.in, packetIn{src: endpoint(t, at(9)), data: s.payload})
	}
	batch := frame.NewBatch(nil)
	check.OK(t, to.Readers()[0].Read(batch))
	for i, o := range outs[:4] {
		g := &batch.Frames[i]
		check.True(t, g.Drop == 0 && uint32(g.VNI) == o.Tag && g.Kind == o.F.Kind && bytes.Equal(g.Bytes(), o.F.Bytes()) && g.From.Peer() != 0, "%d: %+v", i, g)
	}
	a.sent = nil
	super := tcpPacket(t, true, 4000).out(n, vni)
	head := uint16(super.F.Headroom())
	super.F.GSO = frame.GSO{Type: frame.GSOTCP6, Size: 1000, Flags: frame.NeedsCsum, CsumStart: head + 40, CsumOffset: 16, DataStart: head + 60}
	check.OK(t, w.Write([]frame.Out{super}))
	check.Need(t, len(a.sent) == 1 && a.sent[0].seg == 8+60+1000, "%+v", a.sent)
	for k := range 4 {
		p := a.sent[0].payload[k*a.sent[0].seg:]
		check.True(t, bytes.Equal(p[:8], []byte{0, 0, 0x86, 0xdd, 0, 0, vni, 0}) && p[8]>>4 == 6, "% x", p[:32])
	}
	a.send = func([]frame.Datagram) error { return nil }
	outs = outs[:4]
	if n := testing.AllocsPerRun(20, func() { check.OK(t, w.Write(outs)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// copying is an encapsulation whose header of 12 bytes says no more than whether a packet is a copy.
type copying struct{}

func (copying) Header() int { return 12 }

func (copying) Put(b []byte, p encap.Packet) (int, frame.Reason) {
	clear(b)
	if p.Copy {
		b[0] = 1
	}
	return 12, frame.NotDropped
}

func (copying) Parse(b []byte) (encap.Packet, int, frame.Reason) {
	if len(b) < 12 {
		return encap.Packet{}, 0, frame.Short
	}
	return encap.Packet{VNI: vni, Copy: b[0] == 1}, 12, frame.NotDropped
}

// The encapsulation is told which packets are copies, and tells the switch. An ICMP error quotes eight bytes of it at least (RFC 792).
func TestOwnCopies(t *testing.T) {
	a, b := fake4(), fake4()
	from, to := ownVTEP(t, copying{}, a), ownVTEP(t, copying{}, b)
	flood(t, from, vni, at(1))
	f, g := frame.Make(inner(1)), frame.Make(inner(2))
	n := addPeer(t, from, at(1))
	check.OK(t, from.Writer(0).Write([]frame.Out{{F: &f, Peer: n, Tag: vni}, {F: &g, Tag: vni}}))
	check.Need(t, len(a.sent) == 2, "%d datagrams", len(a.sent))
	for i, x := range b.hear(t, to.Readers()[0], at(9), a.sent[0].payload, a.sent[1].payload) {
		check.True(t, x.Drop == 0 && x.Replicated == (i == 1), "%d: %v, a copy %v", i, x.Drop, x.Replicated)
	}
	a.path(endpoint(t, at(1)), 1300, a.sent[0].payload[:8])
	check.Equal(t, "MTU after an error", from.MTU(n), 1300-20-8-12)
}

// lies is an encapsulation that says anything.
type lies struct {
	head int
	p    encap.Packet
	n    int
	drop frame.Reason
}

func (l *lies) Header() int                                    { return l.head }
func (l *lies) Put([]byte, encap.Packet) (int, frame.Reason)   { return l.n, l.drop }
func (l *lies) Parse([]byte) (encap.Packet, int, frame.Reason) { return l.p, l.n, l.drop }

// What an encapsulation says wrong drops a packet by name, and breaks nothing.
func TestOwnLies(t *testing.T) {
	for name, x := range map[string]struct {
		lies
		want frame.Reason
	}{
		"right":            {lies{0, encap.Packet{VNI: vni}, 0, 0}, 0},
		"past the end":     {lies{0, encap.Packet{VNI: vni}, 61, 0}, frame.BadHeader},
		"before the start": {lies{0, encap.Packet{VNI: vni}, -1, 0}, frame.BadHeader},
		"all of it":        {lies{0, encap.Packet{VNI: vni}, 60, 0}, frame.Short},
		"kind":             {lies{0, encap.Packet{VNI: vni, Kind: 3}, 0, 0}, frame.BadHeader},
		"VNI":              {lies{0, encap.Packet{VNI: frame.MaxVNI + 1}, 0, 0}, frame.BadHeader},
		"not attached":     {lies{0, encap.Packet{VNI: 5}, 0, 0}, frame.UnknownVNI},
		"IPv4":             {lies{0, encap.Packet{VNI: vni, Kind: frame.IPv4}, 0, 0}, frame.BadHeader},
		"refused":          {lies{0, encap.Packet{VNI: vni}, 0, frame.Policy}, frame.Policy},
		"no reason":        {lies{0, encap.Packet{VNI: vni}, 0, 255}, frame.BadHeader},
	} {
		u := fake4()
		v := ownVTEP(t, &x.lies, u)
		f := u.hear(t, v.Readers()[0], at(1), inner(1))[0]
		check.True(t, f.Drop == x.want && v.Stats().Learned == min(1, int(1-min(x.want, 1))), "%s: %v, want %v", name, f.Drop, x.want)
		v.superframe(inner(1))
		v.sends(inner(1))
		g := frame.Make(inner(1))
		o := []frame.Out{{F: &g, Peer: addPeer(t, v, at(2)), Tag: vni}}
		check.OK(t, v.Writer(0).Write(o))
		want := named(x.drop)
		if x.n != 0 {
			want = frame.BadHeader
		}
		check.True(t, o[0].Drop == want, "%s: %v", name, o[0].Drop)
		_, err := v.Path(o[0].Peer, vni)
		check.True(t, err == ErrEncapsulation, "%v", err)
	}
	for want, c := range map[string]Config{
		"Own: 257: must be a header of 0 to 256 bytes": {Own: &lies{head: 257}},
		"Own: the tunnel has Type gpe already":         {Own: &lies{}, Type: encap.TypeGPE},
		"Own: is (*vtep.lies)(nil)":                    {Own: (*lies)(nil)},
		"GBP: own has no group policy":                 {Own: &lies{}, GBP: true},
		"Reserved: ":                                   {Own: &lies{}, Reserved: ReservedStrict},
		"Type: 255: must be TypeVXLAN":                 {Type: encap.TypeOwn},
	} {
		_, err := New(&c, fake4())
		check.ErrorHas(t, err, "vtep: ", want)
	}
	_, err := New(&Config{Own: &lies{head: 256}, MTU: 297}, fake4())
	check.ErrorHas(t, err, "vtep: ", "at least 298")
}
