package underlay

import "fmt"

// maxSets is how many sets of transmit sockets an underlay has, its own included.
const maxSets = 32

// TxConfig is what one set of transmit sockets differs in from the underlay's own: see
// Sockets. A zero field stands for the underlay's own setting.
type TxConfig struct {
	SrcPorts PortRange `json:"srcPorts,omitzero"`    // of the outer source ports, as in UDPConfig
	Checksum Checksum  `json:"udpChecksum,omitzero"` // as in UDPConfig; ChecksumAuto stands for the underlay's own mode
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
	u := UDPConfig{SrcPorts: c.SrcPorts, Checksum: c.Checksum}
	if err := u.complete("TxConfig"); err != nil {
		return 0, list, err
	}
	for i := range list {
		if list[i] == c {
			return uint8(i), list, nil
		}
	}
	if len(list) == maxSets {
		return 0, list, fmt.Errorf("underlay: TxConfig: there are %d sets of transmit sockets already", maxSets)
	}
	return uint8(len(list)), append(list, c), nil
}
