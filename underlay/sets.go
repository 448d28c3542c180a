package underlay

// MaxSets is how many sets of transmit sockets an underlay has, its own included.
const MaxSets = 32

// TxConfig is what one set of transmit sockets differs in from the underlay's own: see
// Sockets. A zero field stands for the underlay's own setting.
type TxConfig struct {
	SrcPorts PortRange `json:"srcPorts,omitzero"`    // range of the outer source ports; default that of the underlay itself
	Checksum Checksum  `json:"udpChecksum,omitzero"` // when the outer UDP checksum is computed
}

// Check returns what Sockets refuses of settings, whatever the underlay's own are.
func (c TxConfig) Check() error {
	u := UDPConfig{SrcPorts: c.SrcPorts, Checksum: c.Checksum}
	return u.complete("TxConfig")
}
