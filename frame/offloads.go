package frame

// Offloads is what the Writers of a port take beyond ordinary frames: work that is left to them, as
// the kernel leaves it to a network card (virtio 1.2, section 5.1.3, has a feature bit for each). For
// a port that does not take it the switch does the work.
//
// Zero is an ordinary port. It gets Ethernet frames of 14 bytes or more and no longer than its MTU,
// a VLAN tag not counted, with the tag in them and complete checksums: Tag of its Outs is 0, and
// GSO of their frames the zero value.
type Offloads uint8

// Offloads, and IPOnly, which is none but goes with them.
const (
	OffloadCsum Offloads = 1 << iota // completing a checksum: NeedsCsum
	OffloadTSO4                      // cutting TCP over IPv4: GSOTCP4, with GSOECN or without
	OffloadTSO6                      // cutting TCP over IPv6: GSOTCP6, likewise
	OffloadUSO                       // cutting UDP: GSOUDP
	OffloadVLAN                      // putting Out.Tag into the frame
	IPOnly                           // the port is for IP packets, as a TUN: it gets the Kinds IPv4 and IPv6 in place of Ethernet

	OffloadAll = OffloadCsum | OffloadTSO4 | OffloadTSO6 | OffloadUSO | OffloadVLAN
)

// Take reports whether a frame with this GSO can be handed over as it is.
func (o Offloads) Take(g GSO) bool {
	if g == (GSO{}) {
		return true
	}
	switch g.Type &^ GSOECN {
	case GSONone:
		return o&OffloadCsum != 0
	case GSOTCP4:
		return o&OffloadTSO4 != 0
	case GSOTCP6:
		return o&OffloadTSO6 != 0
	}
	return o&OffloadUSO != 0
}
