package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// pass compares the device, its addresses and our routes with what they should be, and puts right what is not. Routes
// that it cannot set are in waiting. The caller has op.
func (h *Host) pass() (rep Repair) {
	var errs []error
	fail := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("hostnet: %s of %s: %w", what, h.cfg.Device, err))
		}
	}
	defer func() { rep.Err = errors.Join(errs...) }()

	link, err := h.nl.LinkByName(h.cfg.Device)
	if err != nil {
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			h.moved(0)
			err = fmt.Errorf("hostnet: %s: there is no such device: %w", h.cfg.Device, unix.ENODEV)
			h.missing = true
		}
		errs = append(errs, err)
		return rep
	}
	rep.Found, h.missing = h.missing, false
	a := link.Attrs()
	if h.index != a.Index {
		rep.Found = rep.Found || h.index != 0
		h.moved(a.Index)
	}
	if h.cfg.MTU != 0 && a.MTU != h.cfg.MTU {
		err := h.nl.LinkSetMTU(link, h.cfg.MTU)
		if fail(fmt.Sprintf("MTU %d", h.cfg.MTU), err); err == nil {
			rep.MTU = a.MTU
		}
	}
	if a.Flags&net.FlagUp == 0 && !h.cfg.Uplink {
		err := h.nl.LinkSetUp(link)
		if fail("state up", h.allowed(err)); err == nil {
			rep.Up = true
		}
	}
	there, err := h.addresses(link)
	fail("list of the addresses", err)
	for _, want := range h.cfg.Addresses {
		if err != nil || there[want] {
			continue
		}
		if err := h.addAddress(want); errors.Is(err, unix.EEXIST) {
			continue // it came just now
		} else if err != nil {
			fail("address "+want.String(), h.explainAddress(want.Addr(), err))
			continue
		}
		h.made[want] = true
		rep.Addresses = append(rep.Addresses, want)
	}
	set, strange, err := h.ours()
	if err != nil {
		errs = append(errs, err)
		return rep
	}
	h.mu.Lock()
	h.set = set
	h.set.share(h.want)
	h.mu.Unlock()
	if h.managed {
		rep.Routes, rep.Removed = h.apply(nil, strange)
	}
	return rep
}

// moved notes the index of the device: with another one it has none of our routes.
func (h *Host) moved(index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index = index
	clear(h.set)
	clear(h.made)
	if index == 0 && h.managed {
		for k := range h.want {
			h.waiting[k] = fmt.Errorf("there is no device %s: %w", h.cfg.Device, unix.ENODEV)
		}
	}
}

// soleAddresses removes the addresses that are not in the settings. Without them the others have their routes already.
func (h *Host) soleAddresses() {
	link, err := h.nl.LinkByName(h.cfg.Device)
	if err != nil {
		return
	}
	there, _ := h.addresses(link)
	for a := range there {
		if !slices.Contains(h.cfg.Addresses, a) && !a.Addr().IsLinkLocalUnicast() {
			h.delAddress(a)
		}
	}
}

// addresses returns those of the device.
func (h *Host) addresses(link netlink.Link) (map[netip.Prefix]bool, error) {
	list, err := whole(func() ([]netlink.Addr, error) { return h.nl.AddrList(link, netlink.FAMILY_ALL) })
	there := map[netip.Prefix]bool{}
	for _, a := range list {
		if a.IPNet != nil {
			there[prefix(a.IPNet)] = true
		}
	}
	return there, err
}
