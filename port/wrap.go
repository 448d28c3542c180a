package port

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// Port is what the decorators of this package wrap, and what they return: the
// methods of vswitch.Port. What is returned also has Name and the Offloads of the port it
// wraps, and is a Pauser exactly if that is one.
type Port interface {
	Readers() []frame.Reader
	Writer(w int) frame.Writer
	MTU(peer uint16) int
	Close() error
}

// named is what every decorator makes.
type named interface {
	Port
	Name() string
	Offloads() frame.Offloads
}

type pauser interface {
	Pause()
	Resume()
}

// pausable is a decorator of a port that can be paused.
type pausable struct {
	named
	pauser
}

// withPauser gives d Pause and Resume if p has them.
func withPauser(d named, p any) Port {
	if x, ok := p.(pauser); ok {
		return &pausable{d, x}
	}
	return d
}

// nameOf returns what p is called, "" if it does not say.
func nameOf(p any) string {
	if n, ok := p.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}

// offloadsOf returns what p takes, nothing if it does not say.
func offloadsOf(p any) frame.Offloads {
	if o, ok := p.(interface{ Offloads() frame.Offloads }); ok {
		return o.Offloads()
	}
	return 0
}

// wrappable says what is against a decorator around p. A tunnel has methods that a
// decorator does not, and a switch would take what is left for a plain port.
func wrappable(decorator string, p Port) error {
	if absent.Is(p) {
		return fmt.Errorf("port: %s: there is no port to wrap", decorator)
	}
	if _, ok := p.(interface{ Open(tag uint32) error }); ok {
		return fmt.Errorf("port: %s: %q is a tunnel: wrap its underlay instead", decorator, nameOf(p))
	}
	return nil
}
