package vtep

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// ip4 and ip6 are frames with an IP header; tagged puts VLAN tags in front of that.
func ip4(tos, ttl byte, df bool) []byte {
	b := make([]byte, 14+20)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0})
	ip := b[14:]
	copy(ip, []byte{0x45, tos, 0, 20, 0, 9, 0, 0, ttl, 1, 0, 0, 192, 168, 7, 1, 192, 168, 7, 2})
	if df {
		ip[6] = 0x40
	}
	binary.BigEndian.PutUint16(ip[10:], wire.Checksum(wire.Sum(ip, 0)))
	return b
}

func ip6(class, limit byte) []byte {
	b := make([]byte, 14+40)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60 | class>>4, class<<4 | 0xa, 0xbc, 0xde})
	b[14+6], b[14+7] = 59, limit
	return b
}

func tagged(b []byte, types ...uint16) []byte {
	for _, t := range types {
		b = slices.Insert(b, 12, byte(t>>8), byte(t), 0x60, 5)
	}
	return b
}

func arp() []byte {
	b := inner(1)
	b[12], b[13] = 8, 6
	return b
}

// outerOf sends a frame to one peer and returns what the underlay was given.
func outerOf(t *testing.T, cfg Header, b []byte) sent {
	t.Helper()
	u := fake4()
	v := newVTEP(t, &Config{Header: cfg}, u)
	f := frame.Make(b)
	check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}))
	return u.sent[0]
}

func TestHeaderModes(t *testing.T) {
	inherit := Header{TTL: Inherit, TOS: Inherit, DF: DFInherit}
	for _, c := range []struct {
		name     string
		cfg      Header
		frame    []byte
		ttl, tos uint8
		df       bool
	}{
		{"default", Header{}, ip4(0xb8, 7, false), 64, 0, true},
		{"fixed", Header{TTL: 255, TOS: 0xfc, DF: DFUnset}, ip4(0x20, 7, true), 255, 0xfc, false},
		{"inherit IPv4", inherit, ip4(0xb8, 7, true), 7, 0xb8, true},
		{"inherit IPv4 without DF", inherit, ip4(0x20, 1, false), 1, 0x20, false},
		{"inherit IPv6", inherit, ip6(0xb8, 9), 9, 0xb8, true},
		{"inherit through a tag", inherit, tagged(ip4(0x48, 3, false), 0x8100), 3, 0x48, false},
		{"inherit through two", inherit, tagged(ip6(0x48, 3), 0x8100, 0x88a8), 3, 0x48, true},
		{"three tags hide it", inherit, tagged(ip4(0x48, 3, false), 0x8100, 0x8100, 0x88a8), 64, 0, true},
		{"ARP has none", inherit, arp(), 64, 0, true},
		{"IPv4 of another version", inherit, append(ip4(0, 3, false)[:14], make([]byte, 20)...), 64, 0, true},
		{"IPv4 cut short", inherit, ip4(0x48, 3, false)[:33], 64, 0, true},
		{"IPv6 cut short", inherit, ip6(0x48, 3)[:53], 64, 0, true},
		{"no EtherType behind a tag", inherit, tagged(ip4(0x48, 3, false), 0x8100)[:17], 64, 0, true},
		{"a TTL of 0 is none", Header{TTL: Inherit}, ip4(0, 0, false), 0, 0, true}, // 0: the underlay's default
		{"fixed DSCP beside ECN", Header{TOS: 0xb8}, ip4(0x21, 7, true), 64, 0xb9, true},
	} {
		if s := outerOf(t, c.cfg, c.frame); s.ttl != c.ttl || s.tos != c.tos || s.df != c.df {
			t.Errorf("%s: TTL %d TOS %#x DF %t, want %d %#x %t", c.name, s.ttl, s.tos, s.df, c.ttl, c.tos, c.df)
		}
	}
}

// RFC 6040, section 4.1, and RFC 3168, section 9.1.1.
func TestECNOnSending(t *testing.T) {
	for mode, want := range map[ECN][4]uint8{
		ECNDefault: {notECT: notECT, ect1: ect1, ect0: ect0, ce: ce},
		ECNNormal:  {notECT: notECT, ect1: ect1, ect0: ect0, ce: ce},
		ECNCompat:  {},
		ECNRFC3168: {notECT: notECT, ect1: ect1, ect0: ect0, ce: ect0},
	} {
		for in := range uint8(4) {
			for name, b := range map[string][]byte{"IPv4": ip4(0xb8|in, 64, true), "IPv6": ip6(0xb8|in, 64), "tagged": tagged(ip4(in, 64, true), 0x8100)} {
				if s := outerOf(t, Header{ECN: mode}, b); s.tos != want[in] {
					t.Errorf("mode %d, %s: %02b became %02b, want %02b", mode, name, in, s.tos, want[in])
				}
			}
		}
		if s := outerOf(t, Header{ECN: mode, TOS: Inherit}, ip4(0xb8|ect1, 64, true)); s.tos != 0xb8|want[ect1] {
			t.Errorf("mode %d: TOS %#x", mode, s.tos)
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	for _, c := range []struct {
		h    Header
		want string
	}{
		{Header{TTL: 256}, "Header.TTL: 256"}, {Header{TTL: -2}, `Header.TTL: "none"`},
		{Header{TOS: 256}, "Header.TOS: 256"}, {Header{TOS: -4}, "Header.TOS: -4"}, {Header{TOS: 0x11}, "ECN"},
		{Header{DF: 4}, "Header.DF: 4"}, {Header{ECN: 4}, "Header.ECN: 4"},
	} {
		if _, err := New(&Config{Header: c.h}, fake4()); err == nil || !strings.Contains(err.Error(), "Config."+c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("New: %v, want something about %s", err, c.want)
		}
		v := newVTEP(t, nil, fake4())
		check.ErrorHas(t, v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Header: c.h}}), "vtep: ", c.want)
	}
}

// Peers with headers of their own get copies of their own; neighbours in the list that
// have the same share one; the order stays.
func TestHeaderOfAPeer(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Header: Header{TTL: 9}}, u)
	flood(t, v, vni, at(1), at(2), at(3), at(4), at(5))
	one, two := addPeer(t, v, at(2)), addPeer(t, v, at(3))
	other := Header{TTL: 30, TOS: 8, DF: DFUnset, Sockets: 2}
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(2).Addr(), Header: other}, {Address: at(3).Addr(), Header: other}, {Address: at(4).Addr(), Header: Header{TTL: 9, DF: DFSet}}}))
	check.Equal(t, "hops have a header or path MTU of their own", v.varied.Load(), 2)

	outs := out(0, 2)
	outs[1].Skip = two
	check.OK(t, v.Writer(0).Write(append(outs, out(one, 1)...)))
	var got []string
	for _, s := range u.sent {
		got = append(got, fmt.Sprint(s.to, s.ttl, s.tos, s.df, s.set))
	}
	line := func(ttl, tos int, df bool, set int, to ...int) string {
		var as []netip.AddrPort
		for _, i := range to {
			as = append(as, at(i))
		}
		return fmt.Sprint(as, ttl, tos, df, set)
	}
	if w := []string{
		line(9, 0, true, 0, 1), line(30, 8, false, 2, 2, 3), line(9, 0, true, 0, 4, 5),
		line(9, 0, true, 0, 1), line(30, 8, false, 2, 2), line(9, 0, true, 0, 4, 5),
		line(30, 8, false, 2, 2),
	}; !slices.Equal(got, w) {
		t.Errorf("got  %v\nwant %v", got, w)
	}
	for _, p := range v.Stats().Peers {
		tx := map[uint16]uint64{one: 3, two: 1}[p.Peer]
		if tx == 0 {
			tx = 2
		}
		check.True(t, p.Tx.Frames == tx, "peer %d: tx %d, want %d", p.Peer, p.Tx.Frames, tx)
	}

	check.OK(t, v.SetPeers(nil))
	check.Equal(t, "hops have a header or path MTU of their own", v.varied.Load(), 0)
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(3).Addr(), Header: Header{TTL: 31}}}))
	check.OK(t, v.SetFlood(vni))
	v.DeletePeer(two)
	v.DeletePeer(one)
	u.sent = nil
	check.OK(t, v.Writer(0).Write(out(one, 1)))
	check.Equal(t, "TTL", u.sent[0].ttl, 9)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	if n := v.varied.Load(); n != 0 {
		t.Errorf("%d hops have a header or path MTU of their own, and there are none", n)
	}
}
