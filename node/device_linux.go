package node

import (
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// openTAP opens a TAP or TUN device.
func openTAP(c *Port) (vswitch.Port, error) {
	if c.Type == PortTUN {
		return port.OpenTUN(c.Name, &c.DeviceConfig)
	}
	return port.OpenTAP(c.Name, &c.DeviceConfig)
}
