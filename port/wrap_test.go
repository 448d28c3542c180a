package port

import (
	"net/netip"
	"reflect"
	"testing"
)

type fakeMover struct{}

func (fakeMover) SetLocal(netip.Addr) error { return nil }

// What a decorator returns has what the thing it wraps has, and no more.
func TestDecoratorsHaveWhatTheyWrap(t *testing.T) {
	c := newCapture(t, nil)
	f := newFakeUnderlay("192.0.2.1:4789")
	for _, u := range []Underlay{f, struct {
		*fakeUnderlay
		fakeMover
	}{f, fakeMover{}}} {
		w := c.Underlay(u)
		_, has := u.(mover)
		if _, moves := w.(mover); moves != has {
			t.Errorf("SetLocal %v, want %v", moves, has)
		}
		for _, m := range []string{"Unreachable", "Join", "Leave", "Superframes"} {
			if _, ok := reflect.TypeOf(w).MethodByName(m); ok {
				t.Errorf("a captured underlay always has %s", m)
			}
		}
		if w.(interface{ Unwrap() any }).Unwrap() != any(u) {
			t.Error("Unwrap returns another")
		}
	}
	if c.Underlay(nil) != nil {
		t.Error("Capture.Underlay makes something of nothing")
	}
	for _, pauses := range []bool{false, true} {
		wrap := map[string]func(p Port) (Port, error){
			"Capture": c.Port,
			"Buffered": func(p Port) (Port, error) {
				b, err := NewBuffered(p, nil)
				return b.Port(), err
			},
			"Faulty": func(p Port) (Port, error) {
				f, err := NewFaulty(p, nil)
				return f.Port(), err
			},
		}
		for name, f := range wrap {
			var p Port = NewPipe(nil)
			if !pauses {
				p = struct{ Port }{p}
			}
			w, err := f(p)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := w.(pauser); ok != pauses {
				t.Errorf("%s: Pause %v, want %v", name, ok, pauses)
			}
			w.Close()
		}
	}
}
