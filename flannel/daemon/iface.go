package daemon

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
)

// An uplink is the interface to other nodes.
type uplink struct {
	name       string
	mtu        int
	ipv4, ipv6 netip.Addr // invalid = none
	links      []netip.Prefix
}

// addresses returns the prefixes of an interface that other hosts reach it by.
func addresses(i net.Interface) (list []netip.Prefix) {
	all, _ := i.Addrs()
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback() {
			list = append(list, p)
		}
	}
	return list
}

// toward returns the address from which the host sends to another one. No packet is sent.
func toward(to netip.Addr) (netip.Addr, error) {
	c, err := net.Dial("udp", netip.AddrPortFrom(to, 9).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// somewhere are addresses that only a default route leads to (RFC 5737, RFC 3849).
var somewhere = []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8:ffff::1")}

// uplink finds the interface that the settings say, in flanneld's order.
func (c *Config) uplink() (*uplink, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	by := func(ok func(i net.Interface, addrs []netip.Prefix) bool) *uplink {
		for _, i := range all {
			if addrs := addresses(i); len(addrs) > 0 && ok(i, addrs) {
				return newUplink(i, addrs)
			}
		}
		return nil
	}
	at := func(a netip.Addr) *uplink {
		return by(func(_ net.Interface, addrs []netip.Prefix) bool {
			return slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == a })
		})
	}
	for _, name := range c.Iface {
		a, err := netip.ParseAddr(name)
		if u := by(func(i net.Interface, addrs []netip.Prefix) bool { return i.Name == name }); u != nil {
			return u, nil
		} else if err == nil {
			if u := at(a); u != nil {
				return u.prefer(a), nil
			}
		}
	}
	for _, expr := range c.IfaceRegex {
		re := regexp.MustCompile(expr)
		u := by(func(i net.Interface, addrs []netip.Prefix) bool {
			return re.MatchString(i.Name) || slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return re.MatchString(p.Addr().String()) })
		})
		if u != nil {
			return u, nil
		}
	}
	to := somewhere
	switch {
	case c.IfaceCanReach.IsValid():
		to = []netip.Addr{c.IfaceCanReach}
	case len(c.Iface)+len(c.IfaceRegex) > 0:
		return nil, c.noUplink(all)
	default:
		for _, a := range []netip.Addr{c.PublicIP, c.PublicIPv6} {
			if u := at(a); u != nil && a.IsValid() {
				return u.prefer(a), nil
			}
		}
	}
	for _, x := range to {
		if a, err := toward(x); err == nil {
			if u := at(a); u != nil {
				return u.prefer(a), nil
			}
		}
	}
	if a := c.IfaceCanReach; a.IsValid() {
		return nil, &setting.Error{Path: "ifaceCanReach", Value: a, Text: "no interface of this host leads there"}
	}
	return nil, &setting.Error{Path: "iface", Text: "there is no default route that says which interface leads to other nodes"}
}

const maxMTU = 65535 // of IP; that of lo is greater

// noUplink says what interfaces there are, when the settings name none of them.
func (c *Config) noUplink(all []net.Interface) error {
	key, there := "iface", []string{}
	if len(c.Iface) == 0 {
		key = "ifaceRegex"
	}
	for _, i := range all {
		if addrs := addresses(i); len(addrs) > 0 {
			there = append(there, fmt.Sprintf("%s %v", i.Name, addrs[0].Addr()))
		}
	}
	return &setting.Error{Path: key, Value: strings.Join(slices.Concat(c.Iface, c.IfaceRegex), ", "),
		Allowed: "an interface with an address; there are " + cmp.Or(strings.Join(there, ", "), "none")}
}

func newUplink(i net.Interface, addrs []netip.Prefix) *uplink {
	u := &uplink{name: i.Name, mtu: min(i.MTU, maxMTU), links: addrs}
	for _, p := range addrs {
		if a := p.Addr(); a.Is4() && !u.ipv4.IsValid() {
			u.ipv4 = a
		} else if a.Is6() && !u.ipv6.IsValid() {
			u.ipv6 = a
		}
	}
	return u
}

// prefer takes one of several addresses.
func (u *uplink) prefer(a netip.Addr) *uplink {
	if a.Is4() {
		u.ipv4 = a
	} else {
		u.ipv6 = a
	}
	return u
}
