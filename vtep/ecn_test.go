package vtep

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// All sixteen cells of RFC 6040, figure 4, written out by name.
func TestECNOnReceipt(t *testing.T) {
	for _, c := range []struct {
		inner, outer uint8
		want         uint8
		drop, odd    bool
	}{
		{notECT, notECT, notECT, false, false}, {notECT, ect0, notECT, false, true}, {notECT, ect1, notECT, false, true}, {notECT, ce, 0, true, true},
		{ect0, notECT, ect0, false, false}, {ect0, ect0, ect0, false, false}, {ect0, ect1, ect1, false, false}, {ect0, ce, ce, false, false},
		{ect1, notECT, ect1, false, false}, {ect1, ect0, ect1, false, true}, {ect1, ect1, ect1, false, false}, {ect1, ce, ce, false, false},
		{ce, notECT, ce, false, false}, {ce, ect0, ce, false, false}, {ce, ect1, ce, false, true}, {ce, ce, ce, false, false},
	} {
		for name, make := range map[string]func(tos uint8) []byte{
			"IPv4":   func(tos uint8) []byte { return ip4(tos, 64, true) },
			"IPv6":   func(tos uint8) []byte { return ip6(tos, 64) },
			"tagged": func(tos uint8) []byte { return tagged(ip4(tos, 64, true), 0x8100, 0x88a8) },
		} {
			u := fake4()
			v := newVTEP(t, nil, u)
			check.OK(t, v.Control().Open(vni))
			u.in = []packetIn{{src: endpoint(t, at(1)), data: vx(vni, make(0xb8|c.inner)), tos: 0x20 | c.outer}}
			b := frame.NewBatch(nil)
			check.OK(t, v.Readers()[0].Read(b))
			f, st := &b.Frames[0], v.Stats()
			want := frame.NotDropped
			if c.drop {
				want = frame.ECN
			}
			if f.Drop != want || (st.ECN == 1) != c.odd {
				t.Errorf("%s, inner %02b outer %02b: %v, %d anomalies", name, c.inner, c.outer, f.Drop, st.ECN)
			}
			if c.drop {
				check.True(t, len(st.Peers) == 0, "%s: a dropped frame taught a peer", name)
				continue
			}
			if got := make(0xb8 | c.want); !bytes.Equal(f.Bytes(), got) { // the checksum with it
				t.Errorf("%s, inner %02b outer %02b: got % x, want % x", name, c.inner, c.outer, f.Bytes(), got)
			}
			if name == "IPv4" && wire.Fold(wire.Sum(f.Bytes()[14:], 0)) != 0xffff {
				t.Errorf("inner %02b outer %02b: header checksum", c.inner, c.outer)
			}
		}
	}
}

func TestECNOfOtherFrames(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	bad := ip4(notECT, 64, true)
	bad[6] = 1 // source MAC of a group
	short := ip4(notECT, 64, true)[:30]
	for _, c := range []struct {
		name  string
		frame []byte
		drop  frame.Reason
	}{
		{"ARP passes", arp(), frame.NotDropped},
		{"an IP header cut short passes", short, frame.NotDropped},
		{"the source MAC is asked first", bad, frame.BadSourceMAC},
	} {
		u.in = []packetIn{{src: endpoint(t, at(1)), data: vx(vni, c.frame), tos: ce}}
		b := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(b))
		if f := &b.Frames[0]; f.Drop != c.drop || !bytes.Equal(f.Bytes(), c.frame) {
			t.Errorf("%s: %v, % x", c.name, f.Drop, f.Bytes())
		}
	}
}
