package election

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

func at(s string) route.Addr { return route.AddrFrom(netip.MustParseAddr(s)) }

func of(algorithm uint8, addrs ...string) (list []Candidate) {
	for _, a := range addrs {
		list = append(list, Candidate{at(a), route.Election{Algorithm: algorithm}})
	}
	return list
}

var esi = route.ESI{3, 2, 0, 0, 0, 0, 5, 0, 0, 1}

// The ordinal is that of the address among all, from 0, and IPv4 comes first (RFC 7432, section 8.5).
func TestModulo(t *testing.T) {
	list := Sort(of(Modulo, "192.0.2.10", "2001:db8::1", "192.0.2.9", "10.0.0.1"))
	for vni, want := range []string{"10.0.0.1", "192.0.2.9", "192.0.2.10", "2001:db8::1", "10.0.0.1"} {
		if got := Elect(esi, frame.VNI(vni), list); got != at(want) {
			t.Errorf("VNI %d: %v, want %s", vni, got, want)
		}
	}
	if got := Elect(esi, 5, nil); got.Bits() != 0 {
		t.Errorf("of nobody: %v", got)
	}
}

// One that wants another algorithm, or one that nobody has, has all take the default.
func TestAlgorithm(t *testing.T) {
	for _, x := range []struct {
		want uint8
		list []Candidate
	}{
		{Modulo, nil},
		{HRW, of(HRW, "10.0.0.1", "10.0.0.2")},
		{Preference, of(Preference, "10.0.0.1")},
		{Modulo, append(of(HRW, "10.0.0.1", "10.0.0.2"), of(Modulo, "10.0.0.3")...)},
		{Modulo, append(of(HRW, "10.0.0.1"), of(Preference, "10.0.0.3")...)},
		{Modulo, of(3, "10.0.0.1", "10.0.0.2")},
	} {
		if got := Algorithm(x.list); got != x.want {
			t.Errorf("%v: %d, want %d", x.list, got, x.want)
		}
	}
}

func TestPreference(t *testing.T) {
	list := of(Preference, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	for _, x := range []struct {
		want  string
		prefs [3]uint16
		caps  [3]uint16
	}{
		{"10.0.0.1", [3]uint16{5, 5, 5}, [3]uint16{}},
		{"10.0.0.2", [3]uint16{5, 6, 6}, [3]uint16{}},
		{"10.0.0.3", [3]uint16{5, 5, 5}, [3]uint16{0, 0, stays}},
		{"10.0.0.1", [3]uint16{6, 5, 5}, [3]uint16{0, 0, stays}},
	} {
		for i := range list {
			list[i].Preference, list[i].Capabilities = x.prefs[i], x.caps[i]
		}
		if got := Elect(esi, 7, list); got != at(x.want) {
			t.Errorf("%v %v: %v, want %s", x.prefs, x.caps, got, x.want)
		}
	}
}

// The forwarder is one of the candidates, the same for all that know them. With HRW a candidate that goes takes only its own networks
// along, and each has its share.
func TestElect(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 500 {
		var list []Candidate
		for range 2 + r.IntN(6) {
			list = append(list, Candidate{route.AddrOf([]byte{192, 0, 2, byte(r.IntN(12))}), route.Election{Algorithm: uint8(r.IntN(3)), Preference: uint16(r.IntN(3))}})
		}
		mixed := slices.Clone(list)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		a, b := Sort(list), Sort(mixed)
		if !slices.Equal(a, b) {
			t.Fatalf("%v, %v", a, b)
		}
		vni := frame.VNI(r.IntN(1 << 24))
		if x := Elect(esi, vni, a); x != Elect(esi, vni, b) || !slices.ContainsFunc(a, func(c Candidate) bool { return c.Addr == x }) {
			t.Fatalf("%v of %v", x, a)
		}
	}
	all := Sort(of(HRW, "192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::7"))
	fewer := Sort(of(HRW, "192.0.2.1", "192.0.2.3", "2001:db8::7"))
	n := map[route.Addr]int{}
	for vni := range frame.VNI(4000) {
		x := Elect(esi, vni, all)
		if n[x]++; x != at("192.0.2.2") && x != Elect(esi, vni, fewer) {
			t.Fatalf("VNI %d leaves %v, which stays", vni, x)
		}
	}
	for a, n := range n {
		if n < 500 {
			t.Errorf("%v has %d of 4000 networks", a, n)
		}
	}
}
