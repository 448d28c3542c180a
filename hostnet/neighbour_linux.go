package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// A next hop with a MAC is a permanent neighbour: the kernel keeps it while the device has no carrier, and does not count it
// among those that it has room for.

// neighbour is the next hop of a route for the kernel.
func (h *Host) neighbour(r Route) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: h.index, IP: r.Via.AsSlice(), HardwareAddr: r.MAC[:], State: netlink.NUD_PERMANENT}
}

// setMAC has the kernel know the next hop of a route.
func (h *Host) setMAC(r Route) error {
	if r.MAC.IsZero() {
		return nil
	}
	return h.explain(r, h.nl.NeighSet(h.neighbour(r)))
}

// unsetMACs removes the next hops of routes that are no longer those of others.
func (h *Host) unsetMACs(routes []Route) {
	routes = slices.DeleteFunc(routes, func(r Route) bool { return r.MAC.IsZero() })
	if len(routes) == 0 {
		return
	}
	used := map[netip.Addr]bool{}
	h.mu.Lock()
	for _, r := range h.set {
		used[r.Via] = true
	}
	h.mu.Unlock()
	for _, r := range routes {
		if !used[r.Via] {
			h.nl.NeighDel(h.neighbour(r))
		}
	}
}

// macsOf adds the MACs of permanent neighbours to routes, if there are any that should have one. On a Sole device, those of
// other next hops are left from a former process, too.
func (h *Host) macsOf(set map[key]Route) error {
	h.mu.Lock()
	wanted, any := map[netip.Addr]bool{}, false
	for _, r := range h.want {
		wanted[r.Via] = true
		any = any || !r.MAC.IsZero()
	}
	h.mu.Unlock()
	if !any {
		return nil
	}
	for _, r := range set {
		wanted[r.Via] = true // until it goes
	}
	macs := map[netip.Addr]frame.MAC{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := h.neighbours(family)
		if err != nil {
			return fmt.Errorf("hostnet: list of the neighbours on %s: %w", h.cfg.Device, err)
		}
		for _, n := range list {
			ip, ok := netip.AddrFromSlice(n.IP)
			if !ok || n.State != netlink.NUD_PERMANENT || len(n.HardwareAddr) != 6 {
				continue
			}
			if ip = ip.Unmap(); wanted[ip] {
				macs[ip] = frame.MAC(n.HardwareAddr)
			} else if h.cfg.Sole {
				h.nl.NeighDel(&n)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, r := range set {
		if w, ok := h.want[k]; ok && w.MAC.IsZero() {
			continue // somebody else's neighbour
		}
		if r.MAC = macs[r.Via]; !r.MAC.IsZero() {
			set[k] = r
		}
	}
	return nil
}

// neighbours returns those on the device. The library has no way to have the kernel filter them.
func (h *Host) neighbours(family int) (list []netlink.Neigh, err error) {
	for range 10 {
		list, err = h.nl.NeighList(h.index, family)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return list, err
}
