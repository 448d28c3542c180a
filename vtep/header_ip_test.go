package vtep

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// The outer header of a packet of its own: what IP in IP takes from it without being asked,
// and what it never loses.
func TestHeaderOfPackets(t *testing.T) {
	for _, c := range []struct {
		name     string
		cfg      Header
		p        ipPacket
		ttl      uint8
		gpe, tos uint8 // in VXLAN-GPE, and in IP in IP
		gpeDF    bool
		df       bool
	}{
		{"default", Header{}, bare4(0xb8, 7, false), 64, 0, 0xb8, true, true},
		{"default, IPv6", Header{}, bare6(0xb8, 7), 64, 0, 0xb8, true, true},
		{"none", Header{TOS: TOSZero}, bare4(0xb8, 7, true), 64, 0, 0, true, true},
		{"none beside ECN", Header{TOS: TOSZero}, bare4(0xb8|ect0, 7, true), 64, ect0, ect0, true, true},
		{"default beside ECN", Header{}, bare4(0xb8|ect1, 7, true), 64, ect1, 0xb8 | ect1, true, true},
		{"inherited", Header{TOS: Inherit, TTL: Inherit}, bare6(0x48, 7), 7, 0x48, 0x48, true, true},
		{"fixed", Header{TOS: 0x20, TTL: 5}, bare4(0xb8|ce, 7, true), 5, 0x20 | ce, 0x20 | ce, true, true},
		{"DF unset", Header{DF: DFUnset}, bare4(0, 7, false), 64, 0, 0, false, false},
		{"DF unset, and set inside", Header{DF: DFUnset}, bare4(0, 7, true), 64, 0, 0, false, true},
		{"DF unset, IPv6", Header{DF: DFUnset}, bare6(0, 7), 64, 0, 0, false, false},
		{"DF inherited", Header{DF: DFInherit}, bare4(0, 7, true), 64, 0, 0, true, true},
		{"DF inherited, and clear", Header{DF: DFInherit}, bare4(0, 7, false), 64, 0, 0, false, false},
		{"DF set", Header{}, bare4(0, 7, false), 64, 0, 0, true, true},
	} {
		u, r := fake4(), raw4()
		v, w := gpeVTEP(t, Config{Header: c.cfg}, u), ipipVTEP(t, Config{Header: c.cfg}, r)
		check.OK(t, v.Writer(0).Write([]frame.Out{c.p.out(addPeer(t, v, at(1)), vni)}))
		check.OK(t, w.Writer(0).Write([]frame.Out{c.p.out(addPeer(t, w, host(at(1))), 0)}))
		if s := u.sent[0]; s.ttl != c.ttl || s.tos != c.gpe || s.df != c.gpeDF {
			t.Errorf("%s, VXLAN-GPE: TTL %d TOS %#x DF %t, want %d %#x %t", c.name, s.ttl, s.tos, s.df, c.ttl, c.gpe, c.gpeDF)
		}
		if s := r.sent[0]; s.ttl != c.ttl || s.tos != c.tos || s.df != c.df {
			t.Errorf("%s, IP in IP: TTL %d TOS %#x DF %t, want %d %#x %t", c.name, s.ttl, s.tos, s.df, c.ttl, c.tos, c.df)
		}
	}
	// A peer's own header is of the VTEP's type.
	r := raw4()
	v := ipipVTEP(t, Config{Header: Header{TOS: TOSZero}}, r)
	n := addPeer(t, v, host(at(1)))
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Header: Header{TOS: Inherit}}}))
	check.OK(t, v.Writer(0).Write([]frame.Out{bare4(0xb8, 7, false).out(n, 0)}))
	if s := r.sent[0]; s.tos != 0xb8 {
		t.Errorf("TOS %#x", s.tos)
	}
}

// ECN of packets on their way in (RFC 6040, section 4.1).
func TestECNOfPacketsOnSending(t *testing.T) {
	for mode, want := range map[ECN][4]uint8{
		ECNNormal:  {notECT: notECT, ect1: ect1, ect0: ect0, ce: ce},
		ECNCompat:  {},
		ECNRFC3168: {notECT: notECT, ect1: ect1, ect0: ect0, ce: ect0},
	} {
		for in := range uint8(4) {
			for _, p := range []ipPacket{bare4(0xb8|in, 9, true), bare6(0xb8|in, 9)} {
				r := raw4()
				v := ipipVTEP(t, Config{Header: Header{ECN: mode}}, r)
				check.OK(t, v.Writer(0).Write([]frame.Out{p.out(addPeer(t, v, host(at(1))), 0)}))
				if s := r.sent[0]; s.tos != 0xb8|want[in] {
					t.Errorf("mode %d, kind %d: %02b became %#x, want %02b", mode, p.kind, in, s.tos, want[in])
				}
			}
		}
	}
}

// All sixteen cells of RFC 6040, figure 4, for packets without Ethernet.
func TestECNOfPacketsOnReceipt(t *testing.T) {
	const drop, odd = 1 << 4, 1 << 5
	table := [4][4]uint8{ // inner, outer
		notECT: {notECT: notECT, ect0: notECT | odd, ect1: notECT | odd, ce: drop | odd},
		ect0:   {notECT: ect0, ect0: ect0, ect1: ect1, ce: ce},
		ect1:   {notECT: ect1, ect0: ect1 | odd, ect1: ect1, ce: ce},
		ce:     {notECT: ce, ect0: ce, ect1: ce | odd, ce: ce},
	}
	for in := range uint8(4) {
		for outer := range uint8(4) {
			cell := table[in][outer]
			for _, make := range []func(tos uint8) ipPacket{
				func(tos uint8) ipPacket { return bare4(tos, 9, true) },
				func(tos uint8) ipPacket { return bare6(tos, 9) },
			} {
				p := make(0xb8 | in)
				u, r := fake4(), raw4()
				v, w := gpeVTEP(t, Config{}, u), ipipVTEP(t, Config{}, r)
				addPeer(t, w, host(at(1)))
				u.in = []packetIn{{src: endpoint(t, at(1)), data: gpe(vni, p.kind, false, p.data), tos: 0x20 | outer}}
				r.addTOS(t, host(at(1)), p, 0x20|outer)
				for name, x := range map[string]*VTEP{"VXLAN-GPE": v, "IP in IP": w} {
					b := frame.NewBatch(nil)
					check.OK(t, x.Readers()[0].Read(b))
					f, st := &b.Frames[0], x.Stats()
					want := frame.NotDropped
					if cell&drop != 0 {
						want = frame.ECN
					}
					if f.Drop != want || (st.ECN == 1) != (cell&odd != 0) {
						t.Errorf("%s, inner %02b outer %02b: %v, %d anomalies", name, in, outer, f.Drop, st.ECN)
					}
					if want != 0 {
						check.True(t, st.Learned == 0, "%s: a dropped packet taught a peer", name)
						continue
					}
					if got := make(0xb8 | cell&3); !bytes.Equal(f.Bytes(), got.data) { // the checksum with it
						t.Errorf("%s, inner %02b outer %02b: got % x, want % x", name, in, outer, f.Bytes(), got.data)
					}
					if p.kind == frame.IPv4 && wire.Fold(wire.Sum(f.Bytes()[:20], 0)) != 0xffff {
						t.Errorf("%s, inner %02b outer %02b: header checksum", name, in, outer)
					}
				}
			}
		}
	}
}
