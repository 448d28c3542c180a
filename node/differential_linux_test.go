package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

var (
	diffSteps = flag.Int("differential.steps", 400, "configurations that TestDifferential applies in a row")
	diffSeed  = flag.Uint64("differential.seed", 1, "what it makes them of")
)

// A replay is a node that goes through steps, and the rows of another owner on it.
type replay struct {
	t    *testing.T
	b    *bench
	rows []control.Row // of the other owner, in the order they came
}

func newReplay(t *testing.T) *replay { return &replay{t: t, b: closedBench(t)} }

func (r *replay) close() { r.b.close() }

// apply takes a step, and tells how its result differs from what a new node makes of it.
func (r *replay) apply(s step) string {
	if err := r.b.Apply(s.cfg); err != nil {
		return fmt.Sprintf("Apply: %v", err)
	}
	for _, x := range s.del {
		r.b.Program("hand", control.Update{Del: []control.Row{x}})
		r.rows = slices.DeleteFunc(r.rows, func(have control.Row) bool { return sameRow(have, x) })
	}
	for _, x := range s.add {
		refused := r.b.Program("hand", control.Update{Add: []control.Row{x}}) != nil
		if refused || !slices.Contains(r.rows, x) {
			r.rows = slices.DeleteFunc(r.rows, func(have control.Row) bool { return sameRow(have, x) }) // one that is refused counts as removed
		}
		if !refused && !slices.Contains(r.rows, x) {
			r.rows = append(r.rows, x)
		}
	}
	fresh := closedBench(r.t)
	defer fresh.close()
	if err := fresh.Apply(s.cfg); err != nil {
		return fmt.Sprintf("Apply on a new node: %v", err)
	}
	for _, groups := range []bool{true, false} { // what names them would be refused
		for _, x := range r.rows {
			if _, is := x.(control.Group); is == groups {
				fresh.Program("hand", control.Update{Add: []control.Row{x}}) // some have to wait
			}
		}
	}
	got, want := r.b.tables(), fresh.tables()
	var list []string
	for _, line := range got {
		if !slices.Contains(want, line) {
			list = append(list, "is and should not be: "+line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			list = append(list, "should be and is not: "+line)
		}
	}
	if len(list) == 0 && len(got) != len(want) {
		list = append(list, fmt.Sprintf("%d lines, on a new node %d", len(got), len(want)))
	}
	return strings.Join(list, "\n")
}

// sameRow reports whether one row replaces another.
func sameRow(a, b control.Row) bool {
	x, ok := a.(control.MAC)
	y, is := b.(control.MAC)
	if ok && is {
		return x.VNI == y.VNI && x.MAC == y.MAC && x.IP == y.IP
	}
	return a == b
}

// closedBench is a bench that its test closes.
func closedBench(t *testing.T) *bench {
	n, err := New(&Options{Owners: []string{"hand"}})
	must(t, err)
	return benchOf(t, n)
}

func (b *bench) close() {
	b.Close()
	b.net.Close()
}

// tables is all there is, a line each: of stages, which they are and of whom.
func (b *bench) tables() []string {
	list := b.state()
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	names := map[uintptr]string{}
	name := func(x any, format string, args ...any) {
		if v := reflect.ValueOf(x); !v.IsNil() {
			names[v.Pointer()] = fmt.Sprintf(format, args...)
		}
	}
	for n, p := range b.Policies() {
		name(p, "policy %s", n)
		for i, f := range probes() {
			in, out := f, f
			add("policy %s: probe %d: in %v, out %v", n, i, p.Ingress().Process(&in, frame.At{}), p.Egress().Process(&out, frame.At{}))
		}
	}
	for vni, ports := range b.Guards() {
		for port, g := range ports {
			name(g, "guard of %s in %d", port, vni)
			for i, f := range probes() {
				add("guard %s %d: probe %d: %v", port, vni, i, g.Process(&f, frame.At{}))
			}
		}
	}
	for vni, s := range b.segments {
		name(s.responder, "responder of %d", vni)
		name(s.iface, "interface of %d", vni)
	}
	for _, vsi := range b.sw.VSIs() {
		add("vsi %d: %s", vsi.VNI(), named(reflect.ValueOf(vsi).Elem().FieldByName("cfg"), names))
		for _, a := range vsi.Attachments() {
			if r, ok := a.Config().Slots.Neighbour.(*arp.Responder); ok {
				name(r, "responder of mode %v", r.Mode())
			}
			add("attachment %d %s: %s", vsi.VNI(), b.sw.Name(a.Dest(0)), named(reflect.ValueOf(a).Elem().FieldByName("cfg"), names))
		}
		for e := range vsi.FDB().All() {
			add("fdb %d %v at %s, %v %v", vsi.VNI(), e.MAC, b.sw.Name(e.Dest), e.Origin, e.Flags)
		}
		if r := b.Neighbours(vsi.VNI()); r != nil {
			for e := range r.Table().All() {
				add("neighbour %d %v %v %v %v", vsi.VNI(), e.IP, e.MAC, e.Origin, e.Flags)
			}
		}
	}
	for n, v := range b.Tunnels() {
		for it := reflect.ValueOf(v).Elem().FieldByName("settings").MapRange(); it.Next(); {
			head := it.Value().FieldByName("header")
			if head.IsNil() {
				add("peer of %s: %v port %v", n, it.Key(), it.Value().FieldByName("port"))
				continue
			}
			head = head.Elem()
			add("peer of %s: %v port %v TTL %v DF %v sockets %v", n, it.Key(), it.Value().FieldByName("port"),
				head.FieldByName("ttl"), head.FieldByName("df"), head.FieldByName("set").Uint() != 0)
		}
		for _, tag := range []frame.VNI{0, 10, 20, 30, 40} {
			if f := v.Flood(tag); len(f) > 0 {
				add("flood %s tag %d: %v", n, tag, f)
			}
			if a := v.Allowed(tag); len(a) > 0 {
				slices.SortFunc(a, netip.AddrPort.Compare)
				add("allowed %s tag %d: %v", n, tag, a)
			}
		}
	}
	slices.Sort(list)
	return list
}

// probes are packets that rules differ about.
func probes() (list []frame.Frame) {
	for _, protocol := range []byte{6, 17} {
		for _, net := range []byte{10, 20} {
			for _, src := range []byte{0, 1} {
				b := make([]byte, 64)
				copy(b, []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, src, 8, 0, 0x45, 0, 0, 40})
				b[22], b[23] = 64, protocol
				copy(b[26:], []byte{10, 0, 9, 9, 10, 0, net, 7})
				b[46] = 0x50
				list = append(list, frame.Make(b))
			}
		}
	}
	return list
}

// named is settings, with the names of what is known.
func named(v reflect.Value, names map[uintptr]string) string {
	switch v.Kind() {
	case reflect.Struct:
		var list []string
		for i := range v.NumField() {
			list = append(list, v.Type().Field(i).Name+":"+named(v.Field(i), names))
		}
		return "{" + strings.Join(list, " ") + "}"
	case reflect.Interface:
		if v.IsNil() {
			return "none"
		}
		return named(v.Elem(), names)
	case reflect.Pointer:
		if v.IsNil() {
			return "none"
		}
		if s := names[v.Pointer()]; s != "" {
			return s
		}
		return v.Type().String()
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, named(v.Index(i), names))
		}
		return fmt.Sprint(list)
	}
	return fmt.Sprint(v)
}

// Whatever was there before, and whatever another owner has said, a configuration leaves in all
// tables what it leaves on a new node.
func TestDifferential(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(*diffSeed, 0))}
	t.Logf("seed %d, %d steps", *diffSeed, *diffSteps)
	r := newReplay(t)
	defer func() { r.close() }()
	cfg := new(Config)
	var steps []step
	rows, segments := 0, 0
	for i := range *diffSteps {
		cfg = m.next(cfg)
		s := step{cfg: cfg}
		for range m.IntN(6) {
			s.add = append(s.add, m.row(cfg))
		}
		if len(r.rows) > 0 && m.some(3) {
			s.del = append(s.del, pick(m, r.rows...))
		}
		steps = append(steps, s)
		diff := r.apply(s)
		rows += len(r.rows)
		segments += len(cfg.Segments)
		if diff == "" {
			continue
		}
		t.Logf("seed %d, step %d: %s", *diffSeed, i, diff)
		steps = shrink(steps, func(steps []step) bool { return fails(t, steps) != "" })
		for k, s := range steps {
			t.Logf("%d of %d:\n%v", k+1, len(steps), s)
		}
		t.Fatalf("seed %d, step %d:\n%s", *diffSeed, i, fails(t, steps))
	}
	t.Logf("%d segments and %d rows of another owner, counted in each step", segments, rows)
	if rows < *diffSteps || segments < *diffSteps {
		t.Error("there is too little that could differ")
	}
}

// fails tells what is wrong after any of the steps.
func fails(t *testing.T, steps []step) string {
	r := newReplay(t)
	defer r.close()
	for _, s := range steps {
		if diff := r.apply(s); diff != "" {
			return diff
		}
	}
	return ""
}
