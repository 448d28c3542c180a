package frame

// Offloads is the work that the Writers of a port do for the switch, as a network card does it for the kernel
// (virtio 1.2, section 5.1.3, has a feature bit for each). The switch does the work that a port does not take.
//
// An ordinary port has no offloads. Its Writers get Ethernet frames of at least 14 bytes, at most as long as its
// MTU plus a VLAN tag, with the tag in them and complete checksums. Tag of its Outs is 0, and GSO of the frames is
// the zero value.
type Offloads uint8

// Offloads. IPOnly is not work, but the kind of frames that the port takes.
const (
	OffloadCsum Offloads = 1 << iota // complete checksums: NeedsCsum
	OffloadTSO4                      // cut TCP over IPv4: GSOTCP4, with or without GSOECN
	OffloadTSO6                      // cut TCP over IPv6: GSOTCP6, with or without GSOECN
	OffloadUSO                       // cut UDP: GSOUDP
	OffloadVLAN                      // put Out.VLANTag into the frame
	IPOnly                           // take IP packets instead of Ethernet, as a TUN: the Kinds IPv4 and IPv6

	OffloadAll = OffloadCsum | OffloadTSO4 | OffloadTSO6 | OffloadUSO | OffloadVLAN
)

// Take reports whether the port takes a frame with this GSO as it is.
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
