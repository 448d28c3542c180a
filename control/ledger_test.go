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

// Leases of nodes become rows: what a node has now is all that has to be said.
func ExampleLedger() {
	m := &controltest.Model{VNIs: []frame.VNI{100}}
	var leases control.Ledger[string]
	vtep := netip.MustParseAddrPort("10.0.0.2:0")
	show := func() {
		if err := leases.Flush("flannel", m); err != nil {
			fmt.Println(err)
		}
		fmt.Println(m.Flood(100), len(m.Rows("flannel")))
	}
	leases.Set("node2", control.Flood{VNI: 100, VTEP: vtep}, control.MAC{VNI: 100, MAC: frame.MAC{2, 0, 0, 0, 0, 2}, VTEP: vtep})
	leases.Set("node3", control.Flood{VNI: 100, VTEP: vtep}) // behind the same VTEP
	show()
	leases.Set("node2")
	show()
	leases.Set("node3")
	show()
	// Output:
	// [flood vni 100 vtep 10.0.0.2:0] 2
	// [flood vni 100 vtep 10.0.0.2:0] 1
	// [] 0
}

// broken is a Programmer that cannot be reached now and then.
type broken struct {
	control.Programmer
	r *rand.Rand
}

var errUnreachable = errors.New("unreachable")

func (b broken) Program(owner string, u control.Update) error {
	if b.r.IntN(4) == 0 {
		return errUnreachable
	}
	return b.Programmer.Program(owner, u)
}

// Whatever is set in whatever order, after a Flush the Programmer has what was set last.
func TestLedger(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := &controltest.Model{VNIs: []frame.VNI{red, blue, l3vni}, VRFs: map[string][]frame.VNI{"red": {red, l3vni, ipip}}}
		l := control.Ledger[int]{Loose: true}
		d := &draw{r: r}
		sets := map[int][]control.Row{}
		var order []int
		for range 60 {
			k := r.IntN(5)
			var rows []control.Row
			for range r.IntN(4) {
				if x := d.row(); !slices.Contains(rows, x) {
					rows = append(rows, x)
				}
			}
			l.Set(k, rows...)
			if !slices.Equal(sets[k], rows) {
				order = append(slices.DeleteFunc(order, func(x int) bool { return x == k }), k)
			}
			sets[k] = rows
			if r.IntN(10) == 0 {
				m.Forget("bgp")
				l.Resync()
			}
			err := l.Flush("bgp", broken{m, r})
			if errors.Is(err, errUnreachable) {
				if err = l.Flush("bgp", m); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, k := range order {
				for _, x := range sets[k] {
					want[key(x)] = x.String()
				}
			}
			got := map[string]string{}
			for _, x := range m.Rows("bgp") {
				got[key(x)] = x.String()
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: rows\n%v\nwant\n%v", seed, got, want)
			}
		}
	}
}

// key is what makes a row replace another.
func key(r control.Row) string {
	if m, ok := r.(control.MAC); ok {
		return fmt.Sprint("mac ", m.VNI, m.MAC, m.IP)
	}
	if f, ok := r.(control.Flood); ok {
		f.NoBroadcast, f.NoUnknown = false, false
		r = f
	}
	return strings.TrimSpace(r.String())
}

// A row that is none is refused, and does not hold others up.
func TestLedgerNilRow(t *testing.T) {
	m := &controltest.Model{VNIs: []frame.VNI{red}}
	var l control.Ledger[int]
	for range 2 {
		l.Set(1, nil, control.Flood{VNI: red, VTEP: at(2)})
		if err := l.Flush("bgp", m); len(control.Refused(err)) != 1 || len(m.Rows("bgp")) != 1 {
			t.Errorf("%v, rows %v", err, m.Rows("bgp"))
		}
		if err := l.Flush("bgp", m); err != nil {
			t.Error(err)
		}
		l.Set(1)
	}
	if err := l.Flush("bgp", m); err != nil || len(m.Rows("bgp")) != 0 {
		t.Errorf("%v, rows %v", err, m.Rows("bgp"))
	}
}

// What is no row has no order either: each is refused once, and none that has gone.
func TestLedgerNoRows(t *testing.T) {
	p := newLeaf(t, control.Config{})
	var l control.Ledger[int]
	for i := range 10 {
		l.Set(i, &control.Flood{VNI: red, VTEP: at(byte(i + 2))})
	}
	for i := range 9 {
		l.Set(i)
	}
	err := l.Flush("bgp", p)
	if list := control.Refused(err); len(list) != 1 || list[0].Row != l.Rows(9)[0] {
		t.Error(err)
	}
}

func TestLedgerWithoutProgrammer(t *testing.T) {
	var l control.Ledger[int]
	l.Set(1, control.Flood{VNI: 1})
	if err := l.Flush("bgp", nil); err == nil {
		t.Error("no error")
	}
}
