package control_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
)

var errBad = errors.New("bad")

// draw makes updates out of bytes: few keys, so that they meet.
type draw struct {
	bytes []byte
	r     *rand.Rand // when there are no more; nil: the end
}

func (d *draw) n(n int) int {
	if len(d.bytes) > 0 {
		b := int(d.bytes[0])
		d.bytes = d.bytes[1:]
		return b % n
	}
	if d.r == nil {
		return 0
	}
	return d.r.IntN(n)
}

func (d *draw) more() bool { return len(d.bytes) > 0 || d.r != nil }

func (d *draw) row() control.Row {
	vni := []frame.VNI{red, blue, l3vni, 7}[max(d.n(24)-20, d.n(2))]
	vtep := at(byte(2 + d.n(4)))
	far := []frame.VNI{0, 0, 0, 7001, 7002, red}[d.n(6)]
	switch d.n(10) {
	case 8, 9:
		return control.Group{VNI: vni, Name: []string{"a", "b"}[d.n(2)], VTEP: vtep, FarVNI: far}
	case 0, 1, 2, 3:
		r := control.MAC{VNI: vni, MAC: mac(byte(d.n(4))), VTEP: vtep, Sticky: vni == l3vni} // as MACs of routers are
		if i := byte(d.n(4)); i > 0 {
			r.IP = ip(i)
		}
		switch d.n(9) {
		case 3:
			r.FarVNI = far
		case 4, 5, 6:
			r.VTEP, r.Group = netip.AddrPort{}, []string{"a", "b"}[d.n(2)]
		case 7:
			r.VTEP, r.Filter, r.IP = netip.AddrPort{}, true, netip.Addr{}
		case 8:
			r.VTEP, r.Port = netip.AddrPort{}, []string{"pipe", "pipe", "pipe", "none"}[d.n(4)]
		}
		return r
	case 4, 5:
		r := control.Flood{VNI: vni, VTEP: vtep, NoBroadcast: d.n(4) == 3, NoUnknown: d.n(4) == 3}
		if n := d.n(5); n < 2 {
			r.MAC, r.NoUnknown = groups[n], false
		}
		return r
	}
	r := control.Prefix{VRF: "red", Prefix: prefixes[d.n(len(prefixes))], Distance: uint8(max(d.n(6), 3) - 3)}
	switch d.n(6) {
	case 0:
	case 1, 2:
		r.Via = control.Via{VNI: red, IP: ip(byte(1 + d.n(3)))}
	case 3:
		r.Via = control.Via{VNI: ipip, VTEP: vtep}
	case 4:
		r.Via = control.Via{VNI: l3vni, MAC: mac(byte(2 + d.n(2))), VTEP: vtep}
	case 5:
		if d.n(6) == 0 {
			return bad["route"]
		}
		r.Via = control.Via{VNI: l3vni, MAC: mac(9), VTEP: vtep}
	}
	return r
}

var groups = []frame.MAC{{1, 0, 0x5e, 1, 1, 1}, {0x33, 0x33, 0, 1, 0, 1}}

var prefixes = []netip.Prefix{pfx("10.1.0.0/16"), pfx("10.1.2.0/24"), pfx("0.0.0.0/0")}

func (d *draw) update() (u control.Update) {
	u.Snapshot, u.Loose = d.n(5) == 0, d.n(3) == 0
	for range d.n(4) {
		u.Del = append(u.Del, d.row())
	}
	for range d.n(5) {
		u.Add = append(u.Add, d.row())
	}
	return u
}

// tables is what a leaf and its model can be asked.
type tables interface {
	MAC(frame.VNI, frame.MAC) string
	Neighbour(frame.VNI, netip.Addr) frame.MAC
	Flood(frame.VNI) []control.Flood
	Prefix(string, netip.Prefix) ([]control.Via, bool)
	Origin(control.Row) []string
}

// view is all there is to see, a line for each entry.
func view(x tables) map[string]string {
	v := map[string]string{}
	origin := func(key control.Row) {
		if list := x.Origin(key); len(list) > 0 {
			v["origin "+key.String()] = fmt.Sprint(list)
		}
	}
	for _, p := range prefixes {
		origin(control.Prefix{VRF: "red", Prefix: p})
	}
	for _, vni := range []frame.VNI{red, blue, l3vni} {
		for n := range byte(10) {
			origin(control.MAC{VNI: vni, MAC: mac(n)})
			for _, g := range append(groups, frame.MAC{}) {
				origin(control.Flood{VNI: vni, VTEP: at(n), MAC: g})
			}
			if vni != l3vni {
				origin(control.MAC{VNI: vni, IP: ip(n)})
			}
		}
	}
	for _, vni := range []frame.VNI{red, blue, l3vni} {
		for _, n := range []byte{0, 1, 2, 3, 9} {
			if s := x.MAC(vni, mac(n)); s != "" {
				v[fmt.Sprintf("mac %d %d", vni, n)] = s
			}
		}
		if s := fmt.Sprint(x.Flood(vni)); s != "[]" {
			v[fmt.Sprintf("flood %d", vni)] = s
		}
		for n := byte(1); n < 4 && vni != l3vni; n++ {
			if m := x.Neighbour(vni, ip(n)); !m.IsZero() {
				v[fmt.Sprintf("neighbour %d %d", vni, n)] = m.String()
			}
		}
	}
	for _, p := range prefixes {
		if list, ok := x.Prefix("red", p); ok {
			var hops []string
			for _, h := range list {
				if !h.MAC.IsZero() {
					h.VTEP = netip.AddrPort{} // the MAC table says where it is
				}
				hops = append(hops, h.String())
			}
			slices.Sort(hops)
			v["route "+p.String()] = fmt.Sprint(slices.Compact(hops))
		}
	}
	return v
}

// entries is what the entries of MACs name. A group that has another VTEP is written once, and they are not.
func entries(m *controltest.Model) map[string]string {
	v := map[string]string{}
	for _, vni := range []frame.VNI{red, blue, l3vni} {
		for _, n := range []byte{0, 1, 2, 3, 9} {
			if s := m.Entry(vni, mac(n)); s != "" {
				v[fmt.Sprintf("mac %d %d", vni, n)] = s
			}
		}
	}
	return v
}

// changed counts the entries of a kind that differ.
func changed(a, b map[string]string, kind string) (n uint64) {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for k := range keys {
		if len(k) > len(kind) && k[:len(kind)+1] == kind+" " && a[k] != b[k] {
			n++
		}
	}
	return n
}

// play does what d says to a Plane and its model, and compares all after each update: rows,
// tables, and how often each table was written to. It leaves the leaf as it found it, or the
// test has failed.
func play(t testing.TB, l *leaf, d *draw, updates int) {
	l.t = t
	m := model()
	names := []string{"bgp", "first name", "second name", "other", "another"}
	want, named := view(m), entries(m)
	refused := 0
	for i := 0; i < updates && d.more(); i++ {
		owner, u := names[d.n(len(names))], d.update()
		before := l.Stats()
		err, wantErr := l.Program(owner, u), m.Program(owner, u)
		if got, want := refusedRows(err), refusedRows(wantErr); got != want {
			t.Fatalf("%d: %s %+v: refused %s, want %s", i, owner, u, got, want)
		}
		if d.n(10) == 0 {
			l.Reapply()
		}
		was, were := want, named
		want, named = view(m), entries(m)
		if got := view(l); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%d: %s %+v (%v):\n got %v\nwant %v", i, owner, u, err, got, want)
		}
		now := l.Stats()
		if err != nil {
			refused++
		} else {
			for kind, n := range map[string]uint64{
				"neighbour": now.Neighbours - before.Neighbours,
				"flood":     now.Floods - before.Floods,
			} {
				if w := changed(was, want, kind); n != w {
					t.Fatalf("%d: %s %+v: %d writes of kind %s, want %d:\n from %v\n   to %v", i, owner, u, n, kind, w, was, want)
				}
			}
			if n, w := now.MACs-before.MACs, changed(were, named, "mac"); n != w {
				t.Fatalf("%d: %s %+v: %d writes of MACs, want %d:\n from %v\n   to %v", i, owner, u, n, w, were, named)
			}
			if n, w := now.Routes-before.Routes, changed(was, want, "route"); n != w {
				t.Fatalf("%d: %s %+v: %d writes of routes, want %d:\n from %v\n   to %v", i, owner, u, n, w, was, want)
			}
		}
		for _, o := range names {
			got, want := slices.Collect(l.Rows(o)), m.Rows(o)
			missing := func(r control.Row) bool { return !slices.Contains(got, r) }
			if len(got) != len(want) || slices.ContainsFunc(want, missing) {
				t.Fatalf("%d: %s has %v, want %v", i, o, got, want)
			}
		}
		l.check()
	}
	if d.r != nil && updates > 100 && (refused == 0 || refused > updates/2) {
		t.Errorf("%d of %d updates were refused: the test draws too few of one kind", refused, updates)
	}
	for _, o := range names {
		l.Forget(o)
	}
	if got := view(l); len(got) != 0 || !l.Empty() || len(listed(l.vtep)) != 0 || len(listed(l.tun)) != 0 {
		t.Errorf("left after all is withdrawn: %v, peers %v %v", got, listed(l.vtep), listed(l.tun))
	}
}

// refusedRows is one line for each row that was refused.
func refusedRows(err error) string {
	var list []string
	for _, e := range control.Refused(err) {
		list = append(list, e.Row.String())
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func TestPlaneModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			play(t, newLeaf(t, control.Config{Owners: owners()}), &draw{r: rand.New(rand.NewPCG(seed, 0))}, 400)
		})
	}
}

func FuzzPlane(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		b := make([]byte, 120)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	l := newLeaf(f, control.Config{Owners: owners()}) // one for all: a new one costs more than a play
	f.Fuzz(func(t *testing.T, b []byte) {
		if !l.Empty() { // after a failure
			l = newLeaf(t, control.Config{Owners: owners()})
		}
		play(t, l, &draw{bytes: b}, 60)
	})
}
