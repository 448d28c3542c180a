package underlay

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// interfaceMTU returns the MTU of the named device, or if that is empty, of the interface with the
// address. Without such an interface, as for a wildcard address, it is 1500.
func interfaceMTU(local netip.Addr, device string) (int, error) {
	if device == "" && local.IsUnspecified() {
		return datagrams.DefaultMTU, nil
	}
	ifi, err := interfaceWith(func(i *net.Interface) (bool, error) {
		if device != "" {
			return i.Name == device, nil
		}
		return isAt(i, local)
	})
	if ifi == nil {
		return datagrams.DefaultMTU, err
	}
	return ifi.MTU, err
}

// interfaceOf returns the interface that has an address, or that its zone names, or nil.
func interfaceOf(local netip.Addr) (*net.Interface, error) {
	return interfaceWith(func(i *net.Interface) (bool, error) { return isAt(i, local) })
}

// interfaceWith returns the first interface for which ok reports true, or nil.
func interfaceWith(ok func(i *net.Interface) (bool, error)) (*net.Interface, error) {
	ifs, err := net.Interfaces()
	for i := range ifs {
		switch yes, err := ok(&ifs[i]); {
		case err != nil:
			return nil, err
		case yes:
			return &ifs[i], nil
		}
	}
	return nil, err
}

// isAt reports whether ifi has the address, or is named by its zone. All of 127.0.0.0/8 is on the
// loopback interface.
func isAt(ifi *net.Interface, a netip.Addr) (bool, error) {
	if z := a.Zone(); z != "" {
		return sameZone(ifi, z), nil
	}
	if a.IsLoopback() && ifi.Flags&net.FlagLoopback != 0 {
		return true, nil
	}
	addrs, err := ifi.Addrs()
	for _, x := range addrs {
		if n, ok := x.(*net.IPNet); ok {
			if y, ok := netip.AddrFromSlice(n.IP); ok && y.Unmap() == a {
				return true, nil
			}
		}
	}
	return false, err
}

// at checks a local address and sets the default of MaxDatagram there.
func (c *UDPConfig) at(local netip.AddrPort) (netip.AddrPort, error) {
	local, err := datagrams.Local("underlay", local)
	if err == nil && c.MaxDatagram == 0 {
		if c.MaxDatagram, err = maxDatagram(local.Addr(), c.Device); err != nil {
			err = fmt.Errorf("underlay: UDPConfig.MaxDatagram: asking for the interfaces' MTU: %w", err)
		}
	}
	return local, err
}

// maxDatagram returns the default of UDPConfig.MaxDatagram: the MTU of the interface, or at a wildcard
// address the largest of all interfaces that are up, except loopback.
func maxDatagram(local netip.Addr, device string) (int, error) {
	m, err := interfaceMTU(local, device)
	if device == "" && local.IsUnspecified() {
		_, err = interfaceWith(func(i *net.Interface) (bool, error) {
			if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
				m = max(m, i.MTU)
			}
			return false, nil
		})
	}
	return min(max(m, minMax), maxMax), err
}

// sameZone reports whether a zone, a name or an index, is ifi.
func sameZone(ifi *net.Interface, zone string) bool {
	return ifi.Name == zone || strconv.Itoa(ifi.Index) == zone
}
