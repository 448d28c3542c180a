package fake

import (
	"errors"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// An Underlay has the methods of a [vtep.Underlay] that tests seldom need: it calls nobody and has no multicast
// groups. A stub embeds it.
type Underlay struct{}

func (Underlay) MTU() int                                  { return 1500 }
func (Underlay) PathMTU(func(frame.Endpoint, int, []byte)) {}
func (Underlay) Unreachable(func(frame.Endpoint, []byte))  {}
func (Underlay) Superframes(func([]byte) bool)             {}
func (Underlay) Join(netip.Addr) error                     { return errors.ErrUnsupported }
func (Underlay) Leave(netip.Addr) error                    { return errors.ErrUnsupported }
func (Underlay) Pause()                                    {}
func (Underlay) Resume()                                   {}
