// Package water makes ports of TAP and TUN devices that the package songgao/water opens: for macOS
// and Windows, where port.OpenTAP returns [errors.ErrUnsupported].
package water

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/songgao/water"

	"github.com/vxswitch/vxswitch/port"
)

// Config configures [From] and [Open]. The zero value works.
type Config struct {
	// MTU says what the device's MTU is: bytes behind the Ethernet header of a TAP, of
	// the IP packet of a TUN. It is not set on the device. 0 is what the system says of a
	// device with this name in the network namespace of the calling thread, 1500 if it
	// knows none.
	MTU int
}

// From makes a port of a TAP or TUN interface, which belongs to the port from here on. A nil cfg is
// the zero value. The port is called after the interface: one frame a batch, no Pauser. Frames of a TUN
// are IP packets.
func From(ifce *water.Interface, cfg *Config) (*port.RWC, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if ifce == nil || ifce.ReadWriteCloser == nil {
		return nil, errors.New("water: From: the interface is not open")
	}
	if c.MTU < 0 {
		return nil, fmt.Errorf("water: Config.MTU: %d is negative", c.MTU)
	}
	mtu := c.MTU
	if i, err := net.InterfaceByName(ifce.Name()); mtu == 0 && err == nil {
		mtu = i.MTU
	}
	mtu = cmp.Or(mtu, 1500)
	if ifce.IsTAP() {
		mtu += port.DefaultMTU - 1500 // the Ethernet header
	}
	return port.FromReadWriteCloser(counting{ifce}, &port.RWCConfig{Name: cmp.Or(ifce.Name(), "water"), MTU: mtu, IP: !ifce.IsTAP()}), nil
}

// Open opens a device with water.New and makes a port of it. On systems that water does not know
// the error is [errors.ErrUnsupported] here too. The device is not brought up and has no address.
//
// On Linux use port.OpenTAP, which has none of these traps of water (of 2020-03-17): it
// leaves the descriptor open in programs that are started meanwhile (no CLOEXEC), and
// for good when opening fails; without Persist in its Config it takes the persistence
// from a device that somebody else made persistent; it cuts a name of more than 15
// bytes short, which is an error here.
func Open(device water.Config, cfg *Config) (*port.RWC, error) {
	if err := check(&device); err != nil {
		return nil, fmt.Errorf("water: Open: %w", err)
	}
	ifce, err := water.New(device)
	if err != nil {
		return nil, fmt.Errorf("water: Open: %w", err)
	}
	p, err := From(ifce, cfg)
	if err != nil {
		ifce.Close()
	}
	return p, err
}

// counting mends the counts of a macOS TUN, which are 4 too low when a call fails:
// less than nothing.
type counting struct{ *water.Interface }

func (w counting) Read(p []byte) (int, error) {
	n, err := w.Interface.Read(p)
	return max(n, 0), err
}

func (w counting) Write(p []byte) (int, error) {
	n, err := w.Interface.Write(p)
	return max(n, 0), err
}
