package bfd

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/setting"
)

// A UDPConfig has the settings of a [UDP].
type UDPConfig struct {
	Local    []netip.Addr // addresses to receive on; none = all, IPv4 and IPv6
	Multihop bool         // receive on port 4784 too

	// Listen opens a socket on a local address such as "192.0.2.1:50000" and a network, "udp4" or "udp6"; by default
	// [net.ListenPacket] does. It returns a *net.UDPConn, which may be in another network namespace, or bound to a device or
	// a VRF. ListenUDP calls it to receive, and the Speaker's goroutine for each session.
	Listen func(network, address string) (net.PacketConn, error)
}

// Check returns what is wrong with c as [setting.Errors], or nil.
func (c *UDPConfig) Check() error {
	w := setting.Of("bfd: UDPConfig")
	for i, a := range c.Local {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() {
			w.Want("Local["+strconv.Itoa(i)+"]", a, "a unicast address")
		}
	}
	return w.Err()
}

// Peer returns the Peer of a session through the host's sockets. Of link-local IPv6 addresses one at least has the interface
// as its zone, by its name or its number; in the Peer both have the number. An interface that is made anew has another one.
func (u *UDP) Peer(local, remote netip.Addr, multihop bool) (Peer, error) {
	p := Peer{Path: u, Local: local.Unmap(), Remote: remote.Unmap(), Multihop: multihop}
	w := setting.Of("bfd: Peer")
	if multihop && !u.cfg.Multihop {
		w.Wrong("Multihop", nil, "needs UDPConfig.Multihop")
	}
	zone := cmp.Or(p.Remote.Zone(), p.Local.Zone())
	if i, err := net.InterfaceByName(zone); err == nil {
		zone = strconv.Itoa(i.Index)
	}
	number, err := strconv.Atoi(zone)
	if err != nil && p.Remote.Is6() && p.Remote.IsLinkLocalUnicast() {
		w.Want("Remote", p.Remote, "an address with an interface of the host as its zone, as in %v", p.Remote.WithZone("eth0"))
	}
	p.Local, p.Remote = zoned(p.Local, number), zoned(p.Remote, number)
	w.Add("", p.Check())
	return p, w.Err()
}

// zoned returns an address with the zone of an interface if it is a link-local IPv6 address, else without one.
func zoned(a netip.Addr, number int) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(strconv.Itoa(number))
	}
	return a.WithZone("")
}

func udpError(what string, err error) error { return fmt.Errorf("bfd: %s: %w", what, err) }
