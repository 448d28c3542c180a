package underlay

// MaxSets is the limit of sets of transmit sockets in an underlay, including set 0.
const MaxSets = 32

// TxConfig configures a set of transmit sockets; see Sockets. Zero fields are as in the underlay.
type TxConfig struct {
	SrcPorts PortRange `json:"srcPorts,omitzero"`    // range of the outer source ports; default that of the underlay itself
	Checksum Checksum  `json:"udpChecksum,omitzero"` // when the outer UDP checksum is computed
}

// Check returns what is wrong with the settings for any underlay. Sockets returns the same error.
func (c TxConfig) Check() error {
	u := UDPConfig{SrcPorts: c.SrcPorts, Checksum: c.Checksum}
	return u.complete("TxConfig")
}
