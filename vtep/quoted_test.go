package vtep

import (
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A path MTU is believed where the packet that is quoted may be ours, as far as it is quoted.
func TestPathMTUQuotedGPE(t *testing.T) {
	edit := func(at int, x byte) []byte { b := gpe(vni, frame.IPv4, false, nil); b[at] = x; return b }
	for _, c := range []struct {
		name   string
		quoted []byte
		ours   bool
	}{
		{"IPv4", gpe(vni, frame.IPv4, false, nil), true},
		{"IPv6", gpe(vni, frame.IPv6, false, []byte{0x60}), true},
		{"Ethernet", gpe(vni, frame.Ethernet, false, nil), true},
		{"a flooded copy", gpe(vni, frame.Ethernet, true, nil), true},
		{"the VNI of a next hop", gpe(7, frame.IPv4, false, nil), true},
		{"nothing", nil, true},
		{"7 bytes", gpe(5, frame.IPv4, false, nil)[:7], true},
		{"a VNI that is not ours", gpe(5, frame.IPv4, false, nil), false},
		{"version", edit(0, 0x1c), false},
		{"no I", edit(0, 0x04), false},
		{"O", edit(0, 0x0d), false},
		{"no P, which we always send", edit(0, 0x08), false},
		{"first bits", edit(0, 0x8c), false},
		{"reserved octet", edit(1, 1), false},
		{"last octet", edit(7, 1), false},
		{"NSH", edit(3, 4), false},
		{"next protocol 0", edit(3, 0), false},
		{"VXLAN", vx(vni, nil), false},
	} {
		u := fake4()
		v := gpeVTEP(t, Config{}, u)
		n := addPeer(t, v, at(1))
		far := check.Must(v.NextHop(at(1), 7))(t)
		u.path(endpoint(t, at(1)), 1400, c.quoted)
		want := 1500 - 36
		if c.ours {
			want = 1400 - 36
		}
		if v.MTU(n) != want || v.MTU(far) != want {
			t.Errorf("%s: MTU %d and %d, want %d", c.name, v.MTU(n), v.MTU(far), want)
		}
	}
}

func TestPathMTUQuotedIPIP(t *testing.T) {
	for _, c := range []struct {
		name   string
		quoted []byte
		ours   bool
	}{
		{"IPv4", bare4(0, 9, true).data, true},
		{"IPv6", bare6(0, 9).data, true},
		{"a byte", []byte{0x45}, true},
		{"nothing", nil, true},
		{"version 5", []byte{0x55, 0, 0, 20}, false},
		{"VXLAN", vx(vni, nil), false},
	} {
		a, b := raw4(), raw6()
		v := ipipVTEP(t, Config{}, a, b)
		one, two, six := addPeer(t, v, host(at(1))), addPeer(t, v, host(at(2))), addPeer(t, v, host(at6(1)))
		a.path(endpoint(t, at(1)), 1400, c.quoted)
		b.path(endpoint(t, host(at6(1))), 1400, c.quoted)
		want4, want6 := 1480, 1460
		if c.ours {
			want4, want6 = 1380, 1360
		}
		if v.MTU(one) != want4 || v.MTU(six) != want6 || v.MTU(two) != 1480 {
			t.Errorf("%s: MTU %d, %d and %d, want %d and %d", c.name, v.MTU(one), v.MTU(six), v.MTU(two), want4, want6)
		}
		// Not less than every host takes.
		a.path(endpoint(t, at(1)), 68, nil)
		b.path(endpoint(t, at6(1)), 68, nil)
		if v.MTU(one) != 576-encap.TypeIPIP.Outer(false) || v.MTU(six) != 1280-encap.TypeIPIP.Outer(true) {
			t.Errorf("%s: floors %d and %d", c.name, v.MTU(one), v.MTU(six))
		}
	}
}
