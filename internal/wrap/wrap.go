// Package wrap has what ports around other ports share.
package wrap

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// A Port has the methods of vswitch.Port.
type Port interface {
	Decorator
	MTU(peer uint16) int
}

// A Decorator is what a port around another one implements itself, perhaps with Pause and Resume.
type Decorator interface {
	Readers() []frame.Reader
	Writer(w int) frame.Writer
	Close() error
}

// A Pauser is a port that can be paused.
type Pauser interface {
	Pause()
	Resume()
}

// Around returns d as a port with the MTU, the name and the offloads of the port inside, p. It is a Pauser if p is one, by
// d's own methods if it has them, else by those of p.
func Around(d Decorator, p Port) Port {
	w := wrapped{d, p}
	x, ok := p.(Pauser)
	if !ok {
		return &w
	}
	if own, ok := d.(Pauser); ok {
		x = own
	}
	return &pausable{w, x}
}

type wrapped struct {
	Decorator
	in Port
}

func (w *wrapped) Name() string             { return Name(w.in) }
func (w *wrapped) MTU(peer uint16) int      { return w.in.MTU(peer) }
func (w *wrapped) Offloads() frame.Offloads { return offloads(w.in) }

// Inside returns the port inside, if the Decorator says that frames may be carried past it by those who ask.
func (w *wrapped) Inside() any {
	if d, ok := w.Decorator.(interface{ Inside() any }); ok {
		return d.Inside()
	}
	return nil
}

type pausable struct {
	wrapped
	Pauser
}

// Name returns the name of p, "" if it has none.
func Name(p any) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}

// offloads returns the offloads of p, 0 if it has none.
func offloads(p any) frame.Offloads {
	if o, ok := p.(interface{ Offloads() frame.Offloads }); ok {
		return o.Offloads()
	}
	return 0
}

// Check returns an error if p cannot be wrapped. A tunnel has methods that a Decorator has not, so a switch would take it
// for a plain port.
func Check(p Port) error {
	if absent.Is(p) {
		return errors.New("there is no port to wrap")
	}
	if _, ok := p.(interface{ Control() frame.TunnelControl }); ok {
		return fmt.Errorf("%q is a tunnel: wrap its underlay instead", Name(p))
	}
	return nil
}
