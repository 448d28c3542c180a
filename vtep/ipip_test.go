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

// ipipVTEP returns an open VTEP for IP in IP.
func ipipVTEP(t testing.TB, cfg Config, us ...Underlay) *VTEP {
	t.Helper()
	cfg.Type = encap.TypeIPIP
	v := newVTEP(t, &cfg, us...)
	check.OK(t, v.Control().Open(0))
	return v
}

// All packets of IP-in-IP are of one network: under another tag nothing would ever come in.
func TestIPIPHasOneNetwork(t *testing.T) {
	v := ipipVTEP(t, Config{}, raw4())
	check.ErrorHas(t, v.Control().Open(7), "vtep: tag 7: ")
}

func TestIPIPReaderMixedBatch(t *testing.T) {
	u := raw4()
	v := ipipVTEP(t, Config{Peers: AnyPeer}, u) // listed only, whatever is asked for
	a, b := addPeer(t, v, host(at(1))), addPeer(t, v, host(at(2)))
	flood(t, v, 0, host(at(3))) // in a list is listed
	c := addPeer(t, v, host(at(3)))
	four, six := bare4(0, 9, true), bare6(0, 9)
	as := func(k frame.Kind, p ipPacket) ipPacket { return ipPacket{k, p.data} }
	padded := ipPacket{frame.IPv4, append(bytes.Clone(four.data), 1, 2, 3)}
	rows := []struct {
		name string
		from netip.AddrPort
		in   ipPacket
		drop frame.Reason
		peer uint16
		vni  frame.VNI
		want []byte
	}{
		{"IPv4", at(1), four, 0, a, 0, four.data},
		{"IPv6", at(1), six, 0, a, 0, six.data},
		{"another peer", at(2), four, 0, b, 0, four.data},
		{"a peer of a flood list", at(3), six, 0, c, 0, six.data},
		{"padding", at(1), padded, 0, a, 0, four.data},
		{"TTL 1", at(1), bare4(0, 1, true), 0, a, 0, bare4(0, 1, true).data},
		{"nobody", at(9), four, frame.UnknownPeer, 0, 0, nil},
		{"rubbish from nobody", at(9), as(frame.IPv6, four), frame.UnknownPeer, 0, 0, nil},
		{"ourselves", local4, four, frame.OwnAddress, 0, 0, nil},
		{"IPv4 as protocol 41", at(1), as(frame.IPv6, ipPacket{0, append(bytes.Clone(four.data), make([]byte, 20)...)}), frame.BadHeader, 0, 0, nil},
		{"IPv6 as protocol 4", at(1), as(frame.IPv4, six), frame.BadHeader, 0, 0, nil},
		{"cut short", at(1), ipPacket{frame.IPv4, four.data[:19]}, frame.Short, 0, 0, nil},
		{"nothing", at(1), ipPacket{frame.IPv4, nil}, frame.Short, 0, 0, nil},
		{"TTL 0", at(1), bare4(0, 0, true), frame.TTL, 0, 0, nil},
		{"hop limit 0", at(1), bare6(0, 0), frame.TTL, 0, 0, nil},
		{"and again what is right", at(1), four, 0, a, 0, four.data},
	}
	for _, x := range rows {
		u.add(t, host(x.from), x.in)
	}
	batch := frame.NewBatch(nil)
	check.OK(t, v.Readers()[0].Read(batch))
	for i, x := range rows {
		f := &batch.Frames[i]
		if f.Drop != x.drop || f.VNI != x.vni || f.From.Peer() != x.peer || !f.Tunnel || f.Replicated {
			t.Errorf("%s: %v from %v in VNI %v, want %v %d %v", x.name, f.Drop, f.From, f.VNI, x.drop, x.peer, x.vni)
		}
		if x.drop == 0 && (f.Kind != x.in.kind || !bytes.Equal(f.Bytes(), x.want) || f.GSO != (frame.GSO{})) {
			t.Errorf("%s: kind %d, % x", x.name, f.Kind, f.Bytes())
		}
	}
	if st := v.Stats(); st.Learned != 0 || len(st.Peers) != 3 {
		t.Errorf("%+v", st)
	}

	// Whoever is no longer listed is a stranger; and there is one network, if it is open.
	one := func(from int) frame.Reason {
		u.add(t, host(at(from)), four)
		check.OK(t, v.Readers()[0].Read(batch))
		return batch.Frames[0].Drop
	}
	v.DeletePeer(b)
	check.Equal(t, "a peer that was deleted", one(2), frame.UnknownPeer)
	v.Control().Shut(0)
	check.Equal(t, "shut", one(1), frame.UnknownVNI)
}

// The packet is what is sent, with nothing in front of it.
func TestIPIPWriter(t *testing.T) {
	a, b := raw4(), raw6()
	v := ipipVTEP(t, Config{}, a, b)
	n, six := addPeer(t, v, host(at(1))), addPeer(t, v, host(at6(1)))
	flood(t, v, 0, host(at(1)))
	group := check.Must(v.Group(n))(t)
	eth := frame.Make(inner(1))
	outs := []frame.Out{
		bare4(0, 9, true).out(n, 0), bare6(0, 9).out(n, 0), bare4(0, 9, true).out(six, 0), bare6(0, 9).out(six, 0), bare6(0, 9).out(group, 0),
		{F: &eth, Peer: n}, {F: &eth}, bare4(0, 9, true).out(0, 0), bare6(0, 9).out(99, 0),
	}
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range []frame.Reason{0, 0, 0, 0, 0, frame.BadKind, frame.BadKind, frame.NoPeer, frame.NoPeer} {
		check.True(t, outs[i].Drop == want, "frame %d: %v, want %v", i, outs[i].Drop, want)
	}
	for _, c := range []struct {
		u    *rawFake
		to   netip.AddrPort
		outs []frame.Out
	}{{a, at(1), []frame.Out{outs[0], outs[1], outs[4]}}, {b, at6(1), outs[2:4]}} {
		check.Need(t, len(c.u.sent) == len(c.outs), "%d datagrams, want %d", len(c.u.sent), len(c.outs))
		for i, s := range c.u.sent {
			if !bytes.Equal(s.payload, c.outs[i].F.Bytes()) || !slices.Equal(s.to, []netip.AddrPort{host(c.to)}) || s.seg != 0 || s.ttl != 64 || !s.df {
				t.Errorf("datagram %d: %+v", i, s)
			}
		}
	}
	if f := outs[0].F; f.Hash != encap.FlowHashIP(f.Bytes(), v.seed) {
		t.Errorf("flow %#x", f.Hash)
	}
	if st := v.Stats(); st.Tx.Frames != 5 || st.Tx.Bytes != 20+40+20+40+40 {
		t.Errorf("%+v", st.Tx)
	}
	if v.PeerName(n) != at(1).Addr().String() || v.PeerName(six) != at6(1).Addr().String() {
		t.Errorf("%q %q", v.PeerName(n), v.PeerName(six))
	}
	if got := fmt.Sprint(v.MTU(n), v.MTU(six), v.MTU(0)); got != "1480 1460 1460" {
		t.Error(got)
	}
	// Nobody cuts packets that were put together: each leaves alone.
	a.sent = nil
	p := bare4(0, 9, true)
	check.OK(t, v.Writer(0).Write([]frame.Out{p.out(n, 0), p.out(n, 0)}))
	check.True(t, len(a.sent) == 2 && a.sent[1].seg == 0, "%+v", a.sent)
}

// Packets that would come round again, and those whose TTL is spent (RFC 2003, section 3.2).
func TestIPIPLoops(t *testing.T) {
	const (
		own4, peer4, own6 = "192.0.2.1", "198.51.0.1", "2001:db8::1"
		net4, other4      = "10.0.0.1", "10.0.0.2"
		net6, other6      = "fd00::1", "fd00::2"
	)
	peer6 := at6(1).Addr().String()
	spent := func(p ipPacket) ipPacket {
		if p.kind == frame.IPv6 {
			p.data[7] = 0
		} else {
			p.data[8] = 0
		}
		return p
	}
	short := func(p ipPacket, n int) ipPacket { return ipPacket{p.kind, p.data[:n]} }
	for _, c := range []struct {
		name string
		p    ipPacket
		over [2]frame.Reason // IPv4, IPv6
	}{
		{"IPv4", between(t, net4, other4), [2]frame.Reason{}},
		{"IPv6", between(t, net6, other6), [2]frame.Reason{}},
		{"from this end", between(t, own4, other4), [2]frame.Reason{frame.Martian, 0}},
		{"from the other", between(t, peer4, other4), [2]frame.Reason{frame.Martian, 0}},
		{"for the other", between(t, net4, peer4), [2]frame.Reason{frame.Martian, 0}},
		{"for this end", between(t, net4, own4), [2]frame.Reason{}},
		{"IPv6 from this end", between(t, own6, other6), [2]frame.Reason{0, frame.Martian}},
		{"IPv6 from the other", between(t, peer6, other6), [2]frame.Reason{0, frame.Martian}},
		{"IPv6 for the other", between(t, net6, peer6), [2]frame.Reason{0, frame.Martian}},
		{"IPv6 for this end", between(t, net6, own6), [2]frame.Reason{}},
		{"IPv6 from what looks like this end", between(t, "::c000:201", other6), [2]frame.Reason{}},
		{"TTL 0", spent(between(t, net4, other4)), [2]frame.Reason{frame.TTL, frame.TTL}},
		{"hop limit 0", spent(between(t, net6, other6)), [2]frame.Reason{frame.TTL, frame.TTL}},
		{"TTL before addresses", spent(between(t, own4, peer4)), [2]frame.Reason{frame.TTL, frame.TTL}},
		{"cut short", short(between(t, net4, other4), 19), [2]frame.Reason{frame.BadHeader, frame.BadHeader}},
		{"IPv6 cut short", short(between(t, net6, other6), 39), [2]frame.Reason{frame.BadHeader, frame.BadHeader}},
		{"nothing", ipPacket{frame.IPv4, nil}, [2]frame.Reason{frame.BadHeader, frame.BadHeader}},
		{"IPv4 said to be IPv6", ipPacket{frame.IPv6, append(between(t, net4, other4).data, make([]byte, 40)...)}, [2]frame.Reason{frame.BadHeader, frame.BadHeader}},
		{"IPv6 said to be IPv4", ipPacket{frame.IPv4, between(t, net6, other6).data}, [2]frame.Reason{frame.BadHeader, frame.BadHeader}},
	} {
		u4, u6 := raw4(), raw6()
		v := ipipVTEP(t, Config{}, u4, u6)
		one, two := addPeer(t, v, host(at(1))), addPeer(t, v, host(at6(1)))
		group := check.Must(v.Group(one))(t)
		for i, w := range []struct {
			u    *rawFake
			peer uint16
			want frame.Reason
		}{{u4, one, c.over[0]}, {u6, two, c.over[1]}, {u4, group, c.over[0]}} {
			w.u.sent = nil
			outs := []frame.Out{c.p.out(w.peer, 0)}
			check.OK(t, v.Writer(0).Write(outs))
			if outs[0].Drop != w.want || (len(w.u.sent) == 1) != (w.want == 0) {
				t.Errorf("%s, way %d: %v, want %v; %d sent", c.name, i, outs[0].Drop, w.want, len(w.u.sent))
			}
			var tx uint64
			for _, p := range v.Stats().Peers {
				tx += p.Tx.Frames
			}
			if tx != v.Stats().Tx.Frames {
				t.Errorf("%s: %d frames, and %d of peers", c.name, v.Stats().Tx.Frames, tx)
			}
		}
	}
	// Bound to all addresses it cannot tell its own; of the peer it can.
	u := &rawFake{fake: &fake{local: netip.MustParseAddrPort("0.0.0.0:0"), mtu: 1500}}
	v := ipipVTEP(t, Config{}, u)
	n := addPeer(t, v, host(at(1)))
	outs := []frame.Out{between(t, own4, other4).out(n, 0), between(t, net4, peer4).out(n, 0)}
	check.OK(t, v.Writer(0).Write(outs))
	check.True(t, outs[0].Drop == 0 && outs[1].Drop == frame.Martian, "%v %v", outs[0].Drop, outs[1].Drop)
}

// Loops are the business of IP in IP alone: elsewhere an inner address is anybody's.
func TestGPEHasNoLoopRules(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	n := addPeer(t, v, at(1))
	outs := []frame.Out{between(t, "192.0.2.1", "198.51.0.1").out(n, vni)}
	check.OK(t, v.Writer(0).Write(outs))
	check.True(t, outs[0].Drop == 0 && len(u.sent) == 1, "%v", outs[0].Drop)
}
