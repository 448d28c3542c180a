// Package water adapts package github.com/songgao/water, which opens TAP and TUN devices on macOS and
// Windows, where port.OpenTAP returns [errors.ErrUnsupported]:
//
//	macOS      TUN: utun0, utun1, ... of the system, which carry IP packets only. The system has no TAP:
//	           an Ethernet segment, which VXLAN is as a rule, needs a driver such as tuntaposx.
//	Windows    TAP: an adapter of the TAP-Windows driver (tap0901, of OpenVPN), by its name. TUN: not by name.
//
// Its code for macOS and Windows is compiled by CI and not run there.
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
	// MTU is the MTU that the device has, in bytes of IP packet. It is not set on the device. If it is 0,
	// the system is asked, in the network namespace of the calling thread; 1500 if it does not know.
	MTU int
}

// From returns a port for an open interface, with the interface's name. Frames of a TUN are IP packets. A
// nil cfg is the zero value. Closing the port closes the interface; if From fails the interface is left
// open.
func From(ifce *water.Interface, cfg *Config) (*port.ReadWriteCloser, error) {
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
	return port.FromReadWriteCloser(counting{ifce}, &port.ReadWriteCloserConfig{Name: cmp.Or(ifce.Name(), "water"), MTU: mtu, IP: !ifce.IsTAP()}), nil
}

// Open opens a device with water.New and returns a port for it. It does not bring the device up and gives
// it no address. The caller closes the port, or attaches it to a switch. On systems other than Linux, macOS
// and Windows Open fails with [errors.ErrUnsupported].
//
// On Linux use port.OpenTAP instead. songgao/water (of 2020-03-17) leaves the descriptor open in child
// processes (no CLOEXEC), and leaks it when opening fails; without Persist in its Config it makes a
// persistent device of somebody else's temporary; and it cuts a name to 15 bytes, which is an error here.
func Open(device water.Config, cfg *Config) (*port.ReadWriteCloser, error) {
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

// OpenNamed opens the TAP or TUN device with a name, as [Open] does: on macOS "utun7", or "" for a free one,
// or "tap0" and "tun0" of tuntaposx; on Windows the name of an adapter, or "" for the first.
func OpenNamed(name string, tun bool, cfg *Config) (*port.ReadWriteCloser, error) {
	device, err := named(name, tun)
	if err != nil {
		return nil, fmt.Errorf("water: %q: %w", name, err)
	}
	return Open(device, cfg)
}

// counting corrects the byte count of a failed call on a macOS TUN, which is -4.
type counting struct{ *water.Interface }

func (w counting) Read(p []byte) (int, error) {
	n, err := w.Interface.Read(p)
	return max(n, 0), err
}

func (w counting) Write(p []byte) (int, error) {
	n, err := w.Interface.Write(p)
	return max(n, 0), err
}
