package port

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/songgao/water"
)

// WaterConfig configures [FromWater] and [OpenWater]. The zero value works.
type WaterConfig struct {
	// MTU says what the device's MTU is: bytes behind the Ethernet header of a TAP, of
	// the IP packet of a TUN. It is not set on the device. 0 is what the system says of a
	// device with this name in the network namespace of the calling thread, 1500 if it
	// knows none.
	MTU int
}

// FromWater makes a port of a TAP or TUN interface of the package songgao/water,
// which belongs to the port from here on. A nil cfg is the zero value. The port is
// called after the interface and is an [RWC] in what it costs: one frame a batch, no
// Pauser.
//
// A TUN is an RWC of IP packets.
func FromWater(ifce *water.Interface, cfg *WaterConfig) (Port, error) {
	var c WaterConfig
	if cfg != nil {
		c = *cfg
	}
	if ifce == nil || ifce.ReadWriteCloser == nil {
		return nil, errors.New("port: FromWater: the interface is not open")
	}
	if c.MTU < 0 {
		return nil, fmt.Errorf("port: WaterConfig.MTU: %d is negative", c.MTU)
	}
	mtu := cmp.Or(c.MTU, systemMTU(ifce.Name()), 1500)
	if ifce.IsTAP() {
		mtu += ethLen
	}
	return FromReadWriteCloser(waterIO{ifce}, &RWCConfig{Name: cmp.Or(ifce.Name(), "water"), MTU: mtu, IP: !ifce.IsTAP()}), nil
}

// OpenWater opens a device with water.New and makes a port of it: for macOS and
// Windows, where [OpenTAP] returns [errors.ErrUnsupported]. On systems water does not
// know that is the error here too. The device is not brought up and has no address.
//
// On Linux use [OpenTAP], which has none of these traps of water (of 2020-03-17): it
// leaves the descriptor open in programs that are started meanwhile (no CLOEXEC), and
// for good when opening fails; without Persist in its Config it takes the persistence
// from a device that somebody else made persistent; it cuts a name of more than 15
// bytes short, which is an error here.
func OpenWater(device water.Config, cfg *WaterConfig) (Port, error) {
	if err := checkWater(&device); err != nil {
		return nil, fmt.Errorf("port: OpenWater: %w", err)
	}
	ifce, err := water.New(device)
	if err != nil {
		return nil, fmt.Errorf("port: OpenWater: %w", err)
	}
	p, err := FromWater(ifce, cfg)
	if err != nil {
		ifce.Close()
	}
	return p, err
}

// systemMTU returns the MTU of a device, 0 if it is not known.
func systemMTU(name string) int {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return i.MTU
}

// waterIO mends the counts of a macOS TUN, which are 4 too low when a call fails:
// less than nothing.
type waterIO struct{ *water.Interface }

func (w waterIO) Read(p []byte) (int, error) {
	n, err := w.Interface.Read(p)
	return max(n, 0), err
}

func (w waterIO) Write(p []byte) (int, error) {
	n, err := w.Interface.Write(p)
	return max(n, 0), err
}
