package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Forget removes routes of [DefaultProtocol] in the main table that former processes have left on devices that nobody uses for them
// any longer: those via a next hop to prefixes inside of networks, unless they lead into one of the devices keep. namespace is as in
// a [Config].
func Forget(namespace string, networks []netip.Prefix, keep ...string) error {
	k, err := openKernel(namespace)
	if err != nil {
		return fmt.Errorf("hostnet: %w", err)
	}
	defer k.close()
	kept := map[int]bool{}
	for _, name := range keep {
		if l, err := k.nl.LinkByName(name); err == nil {
			kept[l.Attrs().Index] = true
		}
	}
	inside := func(p netip.Prefix) bool {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return p.Bits() > n.Bits() && n.Contains(p.Addr()) })
	}
	var errs []error
	filter := netlink.Route{Table: DefaultTable, Protocol: DefaultProtocol}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := k.list(family, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			errs = append(errs, fmt.Errorf("hostnet: list of routes: %w", err))
		}
		for _, r := range list {
			if r.Gw == nil || kept[r.LinkIndex] || !inside(prefixOf(&r)) {
				continue
			}
			if err := gone(k.nl.RouteDel(&r)); err != nil {
				errs = append(errs, fmt.Errorf("hostnet: route %v of a former process: %w", prefixOf(&r), err))
			}
		}
	}
	return errors.Join(errs...)
}
