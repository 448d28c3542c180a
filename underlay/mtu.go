package underlay

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// A linkMTU is the MTU of an underlay's interface. While there is none, because it or its address has gone, it is as last seen.
type linkMTU struct{ last atomic.Int32 }

// look asks the system.
func (l *linkMTU) look(local netip.Addr, device string) {
	if m, err := interfaceMTU(local, device); err == nil && m != 0 {
		l.last.Store(int32(m))
	}
}

func (l *linkMTU) seen() int { return cmp.Or(int(l.last.Load()), datagrams.DefaultMTU) }

// interfaceMTU returns the MTU of the named device, or if that is empty, of the interface with the
// address. For a wildcard address it is 1500, and without such an interface 0.
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
		return 0, err
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
	m = cmp.Or(m, datagrams.DefaultMTU)
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
