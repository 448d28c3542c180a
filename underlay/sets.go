package underlay

import "fmt"

// MaxSets is how many sets of transmit sockets an underlay has, its own included.
const MaxSets = 32

// TxConfig is what one set of transmit sockets differs in from the underlay's own: see
// Sockets. A zero field stands for the underlay's own setting.
type TxConfig struct {
	SrcPorts PortRange `json:"srcPorts,omitzero"`    // range of the outer source ports; default that of the underlay itself
	Checksum Checksum  `json:"udpChecksum,omitzero"` // when the outer UDP checksum is computed
}

// Check returns what Sockets refuses of settings, whatever the underlay's own are.
func (c *TxConfig) Check() error {
	u := UDPConfig{SrcPorts: c.SrcPorts, Checksum: c.Checksum}
	return u.complete("TxConfig")
}

// number returns the number of c in list, whose first entry is the underlay's own
// configuration, and the list with c in it.
func (c TxConfig) number(list []TxConfig) (uint8, []TxConfig, error) {
	if c.SrcPorts == (PortRange{}) {
		c.SrcPorts = list[0].SrcPorts
	}
	if c.Checksum == ChecksumAuto {
		c.Checksum = list[0].Checksum
	}
	if err := c.Check(); err != nil {
		return 0, list, err
	}
	for i := range list {
		if list[i] == c {
			return uint8(i), list, nil
		}
	}
	if len(list) == MaxSets {
		return 0, list, fmt.Errorf("underlay: TxConfig: there are %d sets of transmit sockets already", MaxSets)
	}
	return uint8(len(list)), append(list, c), nil
}
