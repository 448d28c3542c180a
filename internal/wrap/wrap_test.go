package wrap_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/wrap"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/porttest"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// decorators are all there are, by what their errors begin with.
var decorators = map[string]func(p wrap.Port) (wrap.Port, error){
	"port: Buffered: ": func(p wrap.Port) (wrap.Port, error) {
		b, err := port.NewBuffered(p, nil)
		if err != nil {
			return nil, err
		}
		return same(b.Port(), b.Port())
	},
	"capture: Port: ": func(p wrap.Port) (wrap.Port, error) {
		c, err := capture.New(nil)
		if err != nil {
			return nil, err
		}
		return c.Port(p)
	},
	"porttest: Faulty: ": func(p wrap.Port) (wrap.Port, error) {
		f, err := porttest.NewFaulty(p, nil)
		if err != nil {
			return nil, err
		}
		return same(f.Port(), f.Port())
	},
}

func same(a, b wrap.Port) (wrap.Port, error) {
	if a != b {
		panic("Port is another one each time")
	}
	return a, nil
}

// taking says what it takes.
type taking struct {
	*fake.Port
	takes frame.Offloads
}

func (p *taking) Offloads() frame.Offloads { return p.takes }

// What a decorator returns has what the port inside has, and no more.
func TestDecoratorsKeepWhatThePortIs(t *testing.T) {
	u := check.Must(memory.NewNetwork(nil).Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil))(t)
	tunnel, err := vtep.New(nil, u)
	check.OK(t, err)
	for name, around := range decorators {
		pausing := &fake.Pauser{Port: fake.New("p1")}
		var all []wrap.Port
		for _, p := range []wrap.Port{fake.New("p1"), pausing, &taking{fake.New("p1"), 0}, &taking{fake.New("p1"), frame.OffloadAll | frame.IPOnly}, &taking{fake.New("p1"), frame.OffloadCsum | frame.OffloadVLAN}} {
			d, err := around(p)
			if err != nil {
				t.Fatal(name, err)
			}
			all = append(all, d)
			takes := frame.Offloads(0)
			if x, ok := p.(*taking); ok {
				takes = x.takes
			}
			if got := d.(interface{ Offloads() frame.Offloads }).Offloads(); got != takes {
				t.Errorf("%s takes %b, want %b", name, got, takes)
			}
			if _, ok := d.(wrap.Pauser); ok != (p == wrap.Port(pausing)) || wrap.Name(d) != "p1" || d.MTU(7) != 1407 || len(d.Readers()) != 1 {
				t.Errorf("%s: pauser %v, name %q, MTU %d", name, ok, wrap.Name(d), d.MTU(7))
			}
		}
		all[1].(wrap.Pauser).Pause()
		if pausing.Paused != 1 {
			t.Errorf("%s: the port is not paused", name)
		}
		all[1].(wrap.Pauser).Resume()
		if pausing.Paused != 0 {
			t.Errorf("%s: the port is not resumed", name)
		}
		for _, d := range append(all, all...) {
			if err := d.Close(); err != fake.ErrClose {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		for p, want := range map[wrap.Port]string{
			tunnel: `"vtep" is a tunnel: wrap its underlay`,
			nil:    "there is no port", (*port.Pipe)(nil): "there is no port",
		} {
			if _, err := around(p); err == nil || !strings.HasPrefix(err.Error(), name+want) {
				t.Errorf("%s of %T: %v", name, p, err)
			}
		}
	}
}
