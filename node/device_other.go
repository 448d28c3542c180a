//go:build !linux

package node

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/water"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// openTAP opens a TAP or TUN device with what package water has for the system. It does not set the MTU of the
// device, or bring it up.
func openTAP(c *Port) (vswitch.Port, error) {
	for field, asked := range map[string]bool{
		"MAC": !c.MAC.IsZero(), "Queues": c.Queues > 1, "Namespace": c.Namespace != "", "BusyPoll": c.BusyPoll != 0,
	} {
		if asked {
			return nil, fmt.Errorf("port: DeviceConfig.%s: %w on this system", field, errors.ErrUnsupported)
		}
	}
	p, err := water.OpenNamed(c.Name, c.Type == PortTUN, &water.Config{MTU: c.MTU})
	if err != nil {
		return nil, err
	}
	b, err := port.NewBuffered(p, nil) // its Write may wait
	if err != nil {
		p.Close()
		return nil, err
	}
	return b.Port(), nil
}
