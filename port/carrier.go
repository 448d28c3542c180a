package port

// Carrier reports whether the device is up and has a carrier, or with [OpenInterface] and [OpenVeth] the interface.
func (d *Device) Carrier() bool {
	if d.glue != nil {
		return d.glue.carrier.Load()
	}
	up, err := d.link.Carrier()
	return up || err != nil // a device that is gone fails
}

// Carrier reports whether the interface is up and has a carrier.
func (p *Packet) Carrier() bool { return p.dev.Carrier.Load() }
