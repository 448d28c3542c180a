package node

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/port"
)

// failOnce has the next change fail at a step.
func (m *mortal) failOnce(step string) {
	m.fault = func(s string) error {
		if s != step {
			return nil
		}
		m.fault = nil
		return errors.New("refused")
	}
}

// A port of the program that takes the place of one that has failed, in a change that fails itself, is not left in the node: the next
// one with the name is taken.
func TestAddAgainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		seg, err := m.Segment(10, nil)
		must(t, err)
		mine := func() *port.Pipe { return port.NewPipe(&port.PipeConfig{Name: "mine"}) }
		first, second, third := mine(), mine(), mine()
		must(t, seg.Add(first, nil))
		first.Close()
		m.settle()
		m.wantDown("mine")
		m.failOnce("rows")
		if err := seg.Add(second, nil); err == nil {
			t.Fatal("no error")
		}
		m.settle()
		m.wantDown("mine")
		must(t, seg.Add(third, nil))
		m.settle()
		m.wantDown()
		if got := m.ports["mine"].raw; got != third {
			t.Errorf("the port is %p, want %p", got, third)
		}
	})
}

// A port of the program that a change has closed before it failed is down until the program adds another.
func TestDownOwnAfterRestoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		seg, err := m.Segment(10, nil)
		must(t, err)
		must(t, seg.Add(port.NewPipe(&port.PipeConfig{Name: "mine"}), nil))
		m.failOnce("rows")
		if err := m.Update(func(c *Config) error { c.Ports[len(c.Ports)-1] = Port{Name: "mine"}; return nil }); err == nil {
			t.Fatal("no error")
		}
		m.settle()
		m.wantDown("mine")
		must(t, seg.Add(port.NewPipe(&port.PipeConfig{Name: "mine"}), nil))
		m.settle()
		m.wantDown()
	})
}
