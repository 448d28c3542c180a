package underlay

import (
	"net"
	"net/netip"
	"strconv"
)

// defaultMTU is assumed where no interface can be named.
const defaultMTU = 1500

// interfaceMTU returns the MTU of the interface called device or, when that is
// empty, of the one that has the address; [defaultMTU] when there is none, as for a
// wildcard address.
func interfaceMTU(local netip.Addr, device string) int {
	if device != "" {
		if ifi, err := net.InterfaceByName(device); err == nil {
			return ifi.MTU
		}
		return defaultMTU
	}
	if local.IsUnspecified() {
		return defaultMTU
	}
	if ifi := interfaceOf(local); ifi != nil {
		return ifi.MTU
	}
	return defaultMTU
}

// interfaceOf returns the interface that has an address, or that its zone names; nil when
// there is none.
func interfaceOf(local netip.Addr) *net.Interface {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for i := range ifs {
		if z := local.Zone(); z != "" {
			if sameZone(&ifs[i], z) {
				return &ifs[i]
			}
			continue
		}
		if hasAddress(&ifs[i], local) {
			return &ifs[i]
		}
	}
	return nil
}

// hasAddress reports whether ifi has the address. All of 127.0.0.0/8 belongs to
// the loopback interface, whatever its list of addresses says.
func hasAddress(ifi *net.Interface, a netip.Addr) bool {
	if a.IsLoopback() && ifi.Flags&net.FlagLoopback != 0 {
		return true
	}
	addrs, _ := ifi.Addrs()
	for _, x := range addrs {
		if n, ok := x.(*net.IPNet); ok {
			if y, ok := netip.AddrFromSlice(n.IP); ok && y.Unmap() == a {
				return true
			}
		}
	}
	return false
}

// largestMTU returns the largest MTU of the interfaces that are up, loopback left
// out: what may arrive at a wildcard address.
func largestMTU() int {
	ifs, err := net.Interfaces()
	if err != nil {
		return defaultMTU
	}
	m := defaultMTU
	for _, ifi := range ifs {
		if ifi.Flags&net.FlagUp != 0 && ifi.Flags&net.FlagLoopback == 0 {
			m = max(m, ifi.MTU)
		}
	}
	return m
}

// maxDatagram is the default of UDPConfig.MaxDatagram.
func maxDatagram(local netip.Addr, device string) int {
	m := interfaceMTU(local, device)
	if device == "" && local.IsUnspecified() {
		m = largestMTU()
	}
	return min(max(m, minMax), maxMax)
}

// sameZone reports whether a zone, a name or an index, is ifi.
func sameZone(ifi *net.Interface, zone string) bool {
	return ifi.Name == zone || strconv.Itoa(ifi.Index) == zone
}
