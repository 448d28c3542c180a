package vtep

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// gpeVTEP returns a VTEP with VNIs 100 and 200 open.
func gpeVTEP(t testing.TB, cfg Config, us ...Underlay) *VTEP {
	t.Helper()
	cfg.Type = encap.TypeGPE
	v := newVTEP(t, &cfg, us...)
	check.OK(t, v.Control().Open(vni))
	check.OK(t, v.Control().Open(200))
	return v
}

// Each packet of a batch is judged for itself: kind, VNI and reason.
func TestGPEReaderMixedBatch(t *testing.T) {
	edit := func(b []byte, at int, x byte) []byte { b = bytes.Clone(b); b[at] = x; return b }
	four, six := bare4(0, 9, true).data, bare6(0, 9).data
	ok := gpe(vni, frame.IPv4, false, four)
	withoutP := edit(gpe(vni, frame.Ethernet, false, inner(8)), 0, 0x08)
	bad := inner(1)
	bad[6] = 1
	for _, withP := range []bool{false, true} {
		u := fake4()
		v := gpeVTEP(t, Config{EthernetWithoutP: !withP}, u)
		a, b := addPeer(t, v, at(1)), addPeer(t, v, at(2))
		noP, noPPeer := frame.NotDropped, a
		if withP {
			noP, noPPeer = frame.GPEProtocol, 0
		}
		rows := []struct {
			name       string
			from       netip.AddrPort
			data       []byte
			drop       frame.Reason
			peer       uint16
			vni        frame.VNI
			kind       frame.Kind
			replicated bool
			want       []byte
		}{
			{"IPv4", at(1), ok, 0, a, vni, frame.IPv4, false, four},
			{"Ethernet behind IPv4", at(1), gpe(200, frame.Ethernet, false, inner(2)), 0, a, 200, frame.Ethernet, false, inner(2)},
			{"IPv6", at(2), gpe(200, frame.IPv6, false, six), 0, b, 200, frame.IPv6, false, six},
			{"a copy", at(2), gpe(vni, frame.Ethernet, true, inner(3)), 0, b, vni, frame.Ethernet, true, inner(3)},
			{"no copy behind one", at(2), gpe(vni, frame.Ethernet, false, inner(4)), 0, b, vni, frame.Ethernet, false, inner(4)},
			{"a copy of a packet", at(2), gpe(vni, frame.IPv4, true, four), 0, b, vni, frame.IPv4, true, four},
			{"padding", at(1), append(bytes.Clone(ok), 1, 2, 3), 0, a, vni, frame.IPv4, false, four},
			{"reserved bits", at(1), edit(edit(ok, 1, 0xff), 7, 0xff), 0, a, vni, frame.IPv4, false, four},
			{"without P", at(1), withoutP, noP, noPPeer, vni, frame.Ethernet, false, inner(8)},
			{"without P, though IPv4 is said", at(1), edit(withoutP, 3, 1), noP, noPPeer, vni, frame.Ethernet, false, inner(8)},

			{"version", at(1), edit(ok, 0, 0x1c), frame.GPEVersion, 0, noVNI, 0, false, nil},
			{"I", at(1), edit(ok, 0, 0x04), frame.NoVNIFlag, 0, noVNI, 0, false, nil},
			{"O", at(1), edit(ok, 0, 0x0d), frame.GPEOAM, 0, vni, 0, false, nil},
			{"NSH", at(1), edit(ok, 3, 4), frame.GPEProtocol, 0, vni, 0, false, nil},
			{"next protocol 0", at(1), edit(ok, 3, 0), frame.GPEProtocol, 0, vni, 0, false, nil},
			{"next protocol 5", at(1), edit(ok, 3, 5), frame.GPEProtocol, 0, vni, 0, false, nil},
			{"protocol before VNI", at(1), edit(edit(ok, 3, 5), 6, 77), frame.GPEProtocol, 0, 77, 0, false, nil},
			{"VNI", at(1), gpe(5, frame.IPv4, false, four), frame.UnknownVNI, 0, 5, 0, false, nil},
			{"VNI before what is inside", at(1), gpe(5, frame.IPv4, false, nil), frame.UnknownVNI, 0, 5, 0, false, nil},
			{"7 bytes", at(1), ok[:7], frame.Short, 0, noVNI, 0, false, nil},
			{"nothing inside", at(1), ok[:8], frame.Short, 0, vni, 0, false, nil},
			{"13 bytes of Ethernet", at(1), gpe(vni, frame.Ethernet, false, inner(1)[:13]), frame.Short, 0, vni, 0, false, nil},
			{"IPv4 cut short", at(1), ok[:27], frame.Short, 0, vni, 0, false, nil},
			{"IPv6 under IPv4", at(1), gpe(vni, frame.IPv4, false, six), frame.BadHeader, 0, vni, 0, false, nil},
			{"IPv4 under IPv6", at(1), gpe(vni, frame.IPv6, false, append(bytes.Clone(four), make([]byte, 20)...)), frame.BadHeader, 0, vni, 0, false, nil},
			{"Ethernet under IPv4", at(1), gpe(vni, frame.IPv4, false, inner(1)), frame.BadHeader, 0, vni, 0, false, nil},
			{"TTL", at(1), gpe(vni, frame.IPv4, false, bare4(0, 0, true).data), frame.TTL, 0, vni, 0, false, nil},
			{"hop limit", at(1), gpe(vni, frame.IPv6, false, bare6(0, 0).data), frame.TTL, 0, vni, 0, false, nil},
			{"own address", local4, ok, frame.OwnAddress, 0, vni, 0, false, nil},
			{"source MAC of a stranger", at(3), gpe(vni, frame.Ethernet, false, bad), frame.BadSourceMAC, 0, vni, 0, false, nil},
			{"a stranger's bad packet", at(3), gpe(vni, frame.IPv4, false, six), frame.BadHeader, 0, vni, 0, false, nil},
			{"and again what is right", at(1), ok, 0, a, vni, frame.IPv4, false, four},
		}
		for _, x := range rows {
			u.in = append(u.in, packetIn{src: endpoint(t, x.from), data: bytes.Clone(x.data)})
		}
		batch := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(batch))
		for i, x := range rows {
			f := &batch.Frames[i]
			if f.Drop != x.drop || f.VNI != x.vni || f.From.Peer() != x.peer || !f.Tunnel {
				t.Errorf("%s: %v from %v in VNI %v, want %v %d %v", x.name, f.Drop, f.From, f.VNI, x.drop, x.peer, x.vni)
			}
			if x.drop == 0 && (f.Kind != x.kind || f.Replicated != x.replicated || !bytes.Equal(f.Bytes(), x.want)) {
				t.Errorf("%s: kind %d, replicated %v, % x", x.name, f.Kind, f.Replicated, f.Bytes())
			}
		}
		check.True(t, v.Stats().Learned == 0, "a refused packet made a peer of its sender")
	}
}

// An IP packet makes a peer of its sender, as a frame does; listed only, it does not.
func TestGPEPeers(t *testing.T) {
	p := gpe(vni, frame.IPv4, false, bare4(0, 9, true).data)
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	f := u.hear(t, v.Readers()[0], at(4), p)[0]
	if f.Drop != 0 || f.From.Peer() == 0 || v.Stats().Learned != 1 || v.PeerName(f.From.Peer()) != at(4).String() {
		t.Errorf("%v from %v", f.Drop, f.From)
	}
	v = gpeVTEP(t, Config{Peers: ListedOnly}, u)
	if f := u.hear(t, v.Readers()[0], at(4), p)[0]; f.Drop != frame.UnknownPeer || v.Stats().Learned != 0 {
		t.Errorf("%v", f.Drop)
	}
}

// One write of all kinds: what is known to Linux byte for byte, B on copies only.
func TestGPEWriter(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	n := addPeer(t, v, at(1))
	flood(t, v, vni, at(1), at(2))
	far := check.Must(v.NextHop(at(3), 9))(t)
	group := check.Must(v.Group(n))(t)
	four, six := bare4(0, 9, true), bare6(0, 9)
	eth := func(peer uint16) frame.Out {
		f := frame.Make(inner(1))
		return frame.Out{F: &f, Peer: peer, Tag: vni}
	}
	outs := []frame.Out{four.out(n, 77), six.out(n, 77), eth(n), eth(0), six.out(far, 77), eth(group), four.out(group, 77),
		four.out(0, vni), six.out(0, vni), four.out(99, vni), eth(far)}
	check.OK(t, v.Writer(0).Write(outs))
	head := func(b ...byte) []byte { return b }
	want := []struct {
		head, data []byte
		to         []netip.AddrPort
	}{
		{head(0x0c, 0, 0, 1, 0, 0, 0x4d, 0), four.data, []netip.AddrPort{at(1)}},
		{head(0x0c, 0, 0, 2, 0, 0, 0x4d, 0), six.data, []netip.AddrPort{at(1)}},
		{head(0x0c, 0, 0, 3, 0, 0, vni, 0), inner(1), []netip.AddrPort{at(1)}},
		{head(0x0e, 0, 0, 3, 0, 0, vni, 0), inner(1), []netip.AddrPort{at(1), at(2)}},
		{head(0x0c, 0, 0, 2, 0, 0, 9, 0), six.data, []netip.AddrPort{at(3)}},
		{head(0x0c, 0, 0, 3, 0, 0, vni, 0), inner(1), []netip.AddrPort{at(1)}},
		{head(0x0c, 0, 0, 1, 0, 0, 0x4d, 0), four.data, []netip.AddrPort{at(1)}},
		{head(0x0c, 0, 0, 3, 0, 0, 9, 0), inner(1), []netip.AddrPort{at(3)}},
	}
	check.Need(t, len(u.sent) == len(want), "%d datagrams, want %d", len(u.sent), len(want))
	for i, w := range want {
		if s := u.sent[i]; !bytes.Equal(s.payload, slices.Concat(w.head, w.data)) || !slices.Equal(s.to, w.to) || s.ttl != 64 || s.tos != 0 || !s.df {
			t.Errorf("datagram %d: % x to %v, %+v", i, s.payload, s.to, s)
		}
	}
	for i, o := range outs {
		want := frame.NotDropped
		if i >= 7 && i <= 9 {
			want = frame.NoPeer
		}
		check.True(t, o.Drop == want, "frame %d: %v, want %v", i, o.Drop, want)
	}
	if f := outs[0].F; f.Hash != encap.FlowHashIP(four.data, v.seed) || u.sent[0].flow != uint16(f.Hash) {
		t.Errorf("flow %#x", f.Hash)
	}
	if f := outs[2].F; f.Hash != encap.FlowHash(inner(1), v.seed) {
		t.Errorf("flow %#x", f.Hash)
	}
	if st := v.Stats(); st.Tx.Frames != 9 {
		t.Errorf("%+v", st.Tx)
	}
}

// What one VTEP writes another reads, whatever the kind.
func TestGPERoundTrip(t *testing.T) {
	a, b := fake4(), fake4()
	from, to := gpeVTEP(t, Config{}, a), gpeVTEP(t, Config{}, b)
	n := addPeer(t, from, at(1))
	flood(t, from, vni, at(1))
	r, batch := to.Readers()[0], frame.NewBatch(nil)
	f := frame.Make(inner(1))
	outs := []frame.Out{bare4(0, 9, true).out(n, vni), {F: &f, Tag: vni}, bare6(0, 9).out(n, 200), {F: &f, Peer: n, Tag: 200}}
	check.OK(t, from.Writer(0).Write(outs))
	for _, s := range a.sent {
		b.in = append(b.in, packetIn{src: endpoint(t, at(9)), data: s.payload})
	}
	check.OK(t, r.Read(batch))
	for i, o := range outs {
		g := &batch.Frames[i]
		if g.Drop != 0 || uint32(g.VNI) != o.Tag || g.Kind != o.F.Kind || !bytes.Equal(g.Bytes(), o.F.Bytes()) || g.Replicated != (i == 1) {
			t.Errorf("frame %d: %+v", i, g)
		}
	}
}

// Segment after segment of one flow of IP leave as a run, each behind its header.
func TestGPERuns(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	n := addPeer(t, v, at(1))
	p := bare4(0, 9, true)
	check.OK(t, v.Writer(0).Write([]frame.Out{p.out(n, vni), p.out(n, vni), p.out(n, vni)}))
	one := gpe(vni, frame.IPv4, false, p.data)
	if len(u.sent) != 1 || u.sent[0].seg != len(one) || !bytes.Equal(u.sent[0].payload, bytes.Repeat(one, 3)) {
		t.Errorf("%+v", u.sent)
	}
}

// VXLAN carries Ethernet alone.
func TestVXLANRefusesPackets(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	flood(t, v, vni, at(1))
	outs := []frame.Out{bare4(0, 9, true).out(n, vni), bare6(0, 9).out(n, vni), bare4(0, 9, true).out(0, vni)}
	check.OK(t, v.Writer(0).Write(outs))
	for i, o := range outs {
		check.True(t, o.Drop == frame.BadKind, "packet %d: %v", i, o.Drop)
	}
	check.True(t, len(u.sent) == 0, "something was sent")
}

func TestGPEMTU(t *testing.T) {
	a, b := fake4(), fake6()
	v := gpeVTEP(t, Config{}, a, b)
	p4, p6 := addPeer(t, v, at(1)), addPeer(t, v, at6(1))
	if got := fmt.Sprint(v.MTU(p4), v.MTU(p6), v.MTU(0)); got != "1464 1444 1444" {
		t.Error(got)
	}
}

// A packet whose TTL is spent enters no tunnel, nor does what is no IP.
func TestGPESendsNoSpentPacket(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Type: encap.TypeGPE}, u)
	p := addPeer(t, v, at(1))
	for _, c := range []struct {
		kind frame.Kind
		b    []byte
		want frame.Reason
	}{
		{frame.IPv4, ip4(0, 0, true)[14:], frame.TTL},
		{frame.IPv6, ip6(0, 0)[14:], frame.TTL},
		{frame.IPv4, ip6(0, 64)[14:], frame.BadHeader},
		{frame.IPv4, ip4(0, 1, true)[14:], frame.NotDropped},
	} {
		f := frame.Make(c.b)
		f.Kind = c.kind
		out := []frame.Out{{F: &f, Peer: p, Tag: vni}}
		check.OK(t, v.Writer(0).Write(out))
		check.True(t, out[0].Drop == c.want, "% x: %v, want %v", c.b[:10], out[0].Drop, c.want)
	}
}
