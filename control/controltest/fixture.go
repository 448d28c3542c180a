package controltest

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// Tables is what a test sees of what was programmed. A [Model] is one.
type Tables interface {
	// MAC returns where a MAC is: what Behind says of a VTEP, of those of a group in order of these
	// texts, with ", " between them; a port's name; "filter"; "" if nowhere.
	MAC(vni frame.VNI, mac frame.MAC) string

	Neighbour(vni frame.VNI, ip netip.Addr) frame.MAC

	// Flood returns the flood list in order of address and MAC, as rows without port and Tunnel.
	Flood(vni frame.VNI) []control.Flood

	Prefix(vrf string, p netip.Prefix) ([]control.Via, bool)
}

// A Fixture is a Programmer under test, without rows, and what it stands on. Every test gets
// a fresh one; what has to be closed goes into t.Cleanup.
type Fixture struct {
	Programmer control.Programmer
	Tables     Tables

	VNIs   [2]frame.VNI      // segments with a VTEP each
	VTEPs  [3]netip.AddrPort // addresses of others, in order
	Port   string            // local, on VNIs[0]; "" if there is none
	VRF    string            // "" if there are none
	Links  [2]control.Via    // next hops in VRF for prefixes of IPv4
	Router control.Via       // with VNI, MAC and VTEP; zero if there is none
	Owners [2]string         // by precedence

	// Bad is a row that only writing shows to be wrong; nil if there is none.
	Bad control.Row

	// Writes returns how often a table was written to so far; nil if that cannot be said.
	Writes func() uint64
}

func host(n byte) frame.MAC  { return frame.MAC{2, 0, 0, 0, 1, n} }
func addr(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 7, n}) }

func (f *Fixture) at(n byte, vtep int) control.MAC {
	return control.MAC{VNI: f.VNIs[0], MAC: host(n), VTEP: f.VTEPs[vtep]}
}

func (f *Fixture) with(n byte, vtep int) control.MAC {
	r := f.at(n, vtep)
	r.IP = addr(n)
	return r
}

func (f *Fixture) flood(vtep int) control.Flood {
	return control.Flood{VNI: f.VNIs[0], VTEP: f.VTEPs[vtep]}
}

func (f *Fixture) prefix(s string, v control.Via) control.Prefix {
	return control.Prefix{VRF: f.VRF, Prefix: netip.MustParsePrefix(s), Via: v}
}

func (f *Fixture) group(name string, vtep int) control.Group {
	return control.Group{VNI: f.VNIs[0], Name: name, VTEP: f.VTEPs[vtep]}
}

// behind is a host behind a group.
func (f *Fixture) behind(n byte, name string) control.MAC {
	return control.MAC{VNI: f.VNIs[0], MAC: host(n), Group: name}
}

// all is a row of each kind that there is, behind one VTEP.
func (f *Fixture) all(vtep int) []control.Row {
	list := []control.Row{f.at(1, vtep), f.with(2, vtep), f.flood(vtep)}
	if f.VRF != "" {
		list = append(list, f.prefix("10.9.0.0/16", f.Links[vtep%2]))
	}
	return list
}

// tester is a test with its fixture: its methods read as sentences.
type tester struct {
	testing.TB
	*Fixture
}

func (t tester) program(owner string, u control.Update) {
	t.Helper()
	if err := t.Programmer.Program(owner, u); err != nil {
		t.Fatalf("Program(%s, %+v): %v", owner, u, err)
	}
}

func (t tester) add(owner string, rows ...control.Row) {
	t.Helper()
	t.program(owner, control.Update{Add: rows})
}

func (t tester) del(owner string, rows ...control.Row) {
	t.Helper()
	t.program(owner, control.Update{Del: rows})
}

func (t tester) snapshot(owner string, rows ...control.Row) {
	t.Helper()
	t.program(owner, control.Update{Snapshot: true, Add: rows})
}

// refuse wants one row of an Update to be refused, for an error if it is not nil.
func (t tester) refuse(owner string, u control.Update, row control.Row, want error) {
	t.Helper()
	err := t.Programmer.Program(owner, u)
	if list := control.Refused(err); len(list) != 1 || list[0].Row != row || want != nil && !errors.Is(err, want) {
		t.Errorf("Program(%s, %+v): %v, want %v refused: %v", owner, u, err, row, want)
	}
}

// wantMAC wants a host behind a VTEP, -1 for nowhere.
func (t tester) wantMAC(n byte, vtep int) {
	t.Helper()
	want := ""
	if vtep >= 0 {
		want = t.VTEPs[vtep].Addr().String()
	}
	if got := t.Tables.MAC(t.VNIs[0], host(n)); got != want {
		t.Errorf("%v is at %q, want %q", host(n), got, want)
	}
}

// wantPlace wants a host where Tables.MAC says.
func (t tester) wantPlace(mac frame.MAC, want string) {
	t.Helper()
	if got := t.Tables.MAC(t.VNIs[0], mac); got != want {
		t.Errorf("%v is at %q, want %q", mac, got, want)
	}
}

// wantBehind wants a host behind VTEPs, given in the order of their addresses.
func (t tester) wantBehind(n byte, vteps ...int) {
	t.Helper()
	var list []string
	for _, i := range vteps {
		list = append(list, t.VTEPs[i].Addr().String())
	}
	slices.Sort(list)
	t.wantPlace(host(n), strings.Join(list, ", "))
}

func (t tester) wantNeighbour(n byte, want frame.MAC) {
	t.Helper()
	if got := t.Tables.Neighbour(t.VNIs[0], addr(n)); got != want {
		t.Errorf("%v is %v, want %v", addr(n), got, want)
	}
}

func (t tester) wantFlood(vteps ...int) {
	t.Helper()
	var want []control.Flood
	for _, i := range vteps {
		want = append(want, t.bare(t.flood(i)))
	}
	t.wantFloods(want...)
}

// bare returns a row as Tables.Flood does.
func (t tester) bare(r control.Flood) control.Flood {
	r.VTEP = netip.AddrPortFrom(r.VTEP.Addr(), 0)
	return r
}

func (t tester) wantFloods(want ...control.Flood) {
	t.Helper()
	if got := t.Tables.Flood(t.VNIs[0]); !slices.Equal(got, want) {
		t.Errorf("flood list %v, want %v", got, want)
	}
}

// wantRoute wants these next hops, in any order; none is a blackhole.
func (t tester) wantRoute(p string, want ...control.Via) {
	t.Helper()
	got, ok := t.Tables.Prefix(t.VRF, netip.MustParsePrefix(p))
	missing := func(v control.Via) bool { return !slices.Contains(got, v) }
	if !ok || len(got) != len(want) || slices.ContainsFunc(want, missing) {
		t.Errorf("route %s: %v %v, want %v", p, got, ok, want)
	}
}

func (t tester) wantNoRoute(p string) {
	t.Helper()
	if got, ok := t.Tables.Prefix(t.VRF, netip.MustParsePrefix(p)); ok {
		t.Errorf("route %s: %v, want none", p, got)
	}
}

// wantAll wants the rows of all(vtep), -1 for none of them.
func (t tester) wantAll(vtep int) {
	t.Helper()
	t.wantMAC(1, vtep)
	t.wantMAC(2, vtep)
	if vtep < 0 {
		t.wantNeighbour(2, frame.MAC{})
		t.wantFlood()
	} else {
		t.wantNeighbour(2, host(2))
		t.wantFlood(vtep)
	}
	switch {
	case t.VRF == "":
	case vtep < 0:
		t.wantNoRoute("10.9.0.0/16")
	default:
		t.wantRoute("10.9.0.0/16", t.Links[vtep%2])
	}
}

// unwritten wants do to write nothing.
func (t tester) unwritten(what string, do func()) {
	t.Helper()
	if t.Writes == nil {
		do()
		return
	}
	before := t.Writes()
	do()
	if n := t.Writes() - before; n != 0 {
		t.Errorf("%s: %d writes, want none", what, n)
	}
}
