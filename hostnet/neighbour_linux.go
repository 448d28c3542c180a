package hostnet

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// A next hop with a MAC is a permanent neighbour: the kernel keeps it while the device has no carrier, and does not count it
// among those that it has room for.

// unsetMACs removes the next hops of routes that are no longer those of others.
func (h *Host) unsetMACs(routes []Route) {
	unused := map[netip.Addr]Route{}
	for _, r := range routes {
		if !r.MAC.IsZero() {
			unused[r.Via] = r
		}
	}
	if len(unused) == 0 {
		return
	}
	h.mu.Lock()
	for _, r := range h.set {
		delete(unused, r.Via)
	}
	h.mu.Unlock()
	var requests []*nl.NetlinkRequest
	for _, r := range unused {
		requests = append(requests, h.neighbourRequest(unix.RTM_DELNEIGH, 0, r))
	}
	h.send(requests)
}

// macsOf adds the MACs of permanent neighbours to routes, if there are any that should have one. On a Sole device, those of
// other next hops are left from a former process, too.
func (h *Host) macsOf(set byKey) error {
	h.mu.Lock()
	wanted, macsWanted := map[netip.Addr]bool{}, false
	for _, r := range h.want {
		wanted[r.Via] = true
		macsWanted = macsWanted || !r.MAC.IsZero()
	}
	h.mu.Unlock()
	if !macsWanted {
		return nil
	}
	for _, r := range set {
		wanted[r.Via] = true // until it goes
	}
	macs := map[netip.Addr]frame.MAC{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := whole(func() ([]netlink.Neigh, error) { return h.nl.NeighList(h.index, family) }) // the library cannot have the kernel filter
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
		if w := h.want[k]; w == nil || !w.MAC.IsZero() { // else it is somebody else's neighbour
			r.MAC = macs[r.Via]
		}
	}
	return nil
}
