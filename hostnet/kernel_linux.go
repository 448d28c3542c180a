package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// kernel is the sockets to a network namespace.
type kernel struct {
	ns   netns.NsHandle
	nl   *netlink.Handle
	dump *netlink.Handle // the kernel filters what it lists (NETLINK_GET_STRICT_CHK, 4.20)
	sender
}

func openKernel(namespace string) (k kernel, err error) {
	switch {
	case namespace == "":
		k.ns, err = netns.Get()
	case strings.Contains(namespace, "/"):
		k.ns, err = netns.GetFromPath(namespace)
	default:
		k.ns, err = netns.GetFromName(namespace)
	}
	if err != nil {
		return k, fmt.Errorf("Config.Namespace: %q: %w", namespace, err)
	}
	if k.nl, err = netlink.NewHandleAt(k.ns, unix.NETLINK_ROUTE); err == nil {
		k.dump, err = netlink.NewHandleAt(k.ns, unix.NETLINK_ROUTE)
	}
	if err == nil {
		err = k.dump.SetStrictCheck(true)
	}
	if err == nil {
		k.sender, err = openSender(k.ns)
	}
	if err != nil {
		k.close()
		return k, fmt.Errorf("netlink socket: %w", err)
	}
	return k, nil
}

func (k *kernel) close() {
	for _, h := range []*netlink.Handle{k.nl, k.dump} {
		if h != nil {
			h.Close()
		}
	}
	if k.socket != nil {
		k.socket.Close()
	}
	k.ns.Close()
}

// inside runs f on a thread that is in the namespace: files of /proc/sys/net are those of the thread that opens them.
func (k *kernel) inside(f func()) error {
	return sys.InNamespace(fmt.Sprintf("/proc/self/fd/%d", k.ns), func() error { f(); return nil })
}

// sysctl returns a value of /proc/sys, "" if there is none. Only inside.
func sysctl(path string) string {
	b, _ := os.ReadFile("/proc/sys/" + path)
	return strings.TrimSpace(string(b))
}

// whole asks for a list again if a change has interrupted it, up to ten times.
func whole[T any](ask func() ([]T, error)) (list []T, err error) {
	for range 10 {
		if list, err = ask(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return list, err
}

// list returns routes of a family that match; the kernel filters.
func (k *kernel) list(family int, filter netlink.Route, mask uint64) ([]netlink.Route, error) {
	routes, err := whole(func() ([]netlink.Route, error) { return k.dump.RouteListFiltered(family, &filter, mask) })
	if errors.Is(err, unix.ENOENT) { // no such table
		return nil, nil
	}
	return routes, err
}

// ours returns the routes of our protocol on the device, of all tables. Those that are strange are none that we make.
func (h *Host) ours() (set byKey, strange []netlink.Route, err error) {
	set = byKey{}
	filter := netlink.Route{LinkIndex: h.index, Protocol: netlink.RouteProtocol(h.cfg.Protocol)}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := h.list(family, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF|netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			return nil, nil, fmt.Errorf("hostnet: list of the routes of %s: %w", h.cfg.Device, err)
		}
		for _, n := range list {
			r, ok := h.route(&n)
			if !ok || set[r.key()] != nil {
				strange = append(strange, n)
				continue
			}
			set[r.key()] = &r
		}
	}
	return set, strange, h.macsOf(set)
}

// route reads a route of the kernel.
func (h *Host) route(n *netlink.Route) (Route, bool) {
	r := Route{Prefix: prefixOf(n), OnLink: n.Flags&int(netlink.FLAG_ONLINK) != 0, Metric: n.Priority, Table: n.Table}
	if n.Gw != nil {
		r.Via, _ = netip.AddrFromSlice(n.Gw)
	}
	if n.Src != nil {
		r.Source, _ = netip.AddrFromSlice(n.Src)
	}
	scope := n.Scope == netlink.SCOPE_UNIVERSE
	if r.Prefix.Addr().Is4() && !r.Via.IsValid() {
		scope = n.Scope == netlink.SCOPE_LINK
	}
	plain := n.Type == unix.RTN_UNICAST && len(n.MultiPath) == 0 && n.Tos == 0 && n.Encap == nil && n.Via == nil &&
		n.MTU == 0 && n.AdvMSS == 0 && n.Window == 0
	return r, scope && plain && h.mine(n)
}

// mine reports whether a route has our protocol and device.
func (h *Host) mine(n *netlink.Route) bool {
	return n.LinkIndex == h.index && int(n.Protocol) == h.cfg.Protocol
}

// among reports whether a route of ours is a next hop of an IPv6 route to which somebody has added others.
func (h *Host) among(n *netlink.Route, r Route) bool {
	return int(n.Protocol) == h.cfg.Protocol && slices.ContainsFunc(n.MultiPath, func(hop *netlink.NexthopInfo) bool {
		via, _ := netip.AddrFromSlice(hop.Gw)
		return hop.LinkIndex == h.index && via == r.Via
	})
}

func prefixOf(n *netlink.Route) netip.Prefix {
	if n.Dst == nil {
		if n.Family == unix.AF_INET6 {
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return prefix(n.Dst)
}

func prefix(n *net.IPNet) netip.Prefix {
	ip, _ := netip.AddrFromSlice(n.IP)
	bits, size := n.Mask.Size()
	if size == 32 {
		ip = ip.Unmap()
	}
	return netip.PrefixFrom(ip, bits)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// message is a route for the kernel.
func (h *Host) message(r Route) *netlink.Route {
	n := &netlink.Route{LinkIndex: h.index, Dst: ipNet(r.Prefix), Priority: r.Metric, Table: r.Table, Protocol: netlink.RouteProtocol(h.cfg.Protocol)}
	if r.Via.IsValid() {
		n.Gw = r.Via.AsSlice()
	} else if r.Prefix.Addr().Is4() {
		n.Scope = netlink.SCOPE_LINK
	}
	if r.Source.IsValid() {
		n.Src = r.Source.AsSlice()
	}
	if r.OnLink {
		n.SetFlag(netlink.FLAG_ONLINK)
	}
	return n
}

// added returns what has become of a route that was to be added: it may be there already.
func (h *Host) added(r Route, err error, found conflicts) error {
	if !errors.Is(err, unix.EEXIST) {
		return h.explain(r, err)
	}
	others, err := found.of(h, r)
	if err != nil {
		return err
	}
	for _, n := range others {
		switch has, ok := h.route(&n); {
		case ok && has == r.bare(), h.among(&n, r):
			return nil
		case h.mine(&n):
			return h.change(&n, r, found)
		}
	}
	return h.taken(others)
}

// change replaces a route of ours by another with the same key, without a moment between.
//
// In IPv4 the new one comes behind the old one, which is then deleted: both by their protocol and next hop, so that no
// other route is touched. IPv6 has no second route with the same metric but as another next hop of the first, and NLM_F_REPLACE
// takes the first there is, whoever made it. So the table is read before; the kernel cannot do both in one step.
func (h *Host) change(old *netlink.Route, r Route, found conflicts) error {
	if r.Prefix.Addr().Is4() {
		if err := h.nl.RouteAppend(h.message(r)); err != nil && !errors.Is(err, unix.EEXIST) {
			return h.explain(r, err)
		}
		return gone(h.nl.RouteDel(old))
	}
	others, err := found.of(h, r)
	if err != nil {
		return err
	}
	for i := range others {
		if !h.mine(&others[i]) {
			return h.taken(others[i : i+1])
		}
	}
	return h.explain(r, h.nl.RouteReplace(h.message(r)))
}

// del deletes routes of ours, the last one first, and returns what has become of each. The kernel compares all of a route, with
// protocol and device.
func (h *Host) del(routes []Route) []error {
	var requests []*nl.NetlinkRequest
	for _, r := range slices.Backward(routes) {
		requests = append(requests, h.routeRequest(unix.RTM_DELROUTE, 0, r))
	}
	errs := h.send(requests)
	for i := range errs {
		errs[i] = gone(errs[i])
	}
	slices.Reverse(errs)
	return errs
}

// gone forgives that what is to be deleted is not there.
func gone(err error) error {
	for _, e := range []error{unix.ESRCH, unix.ENODEV, unix.ENXIO, unix.ENOENT, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// conflicts are all routes of tables by their keys. Each table is read once for many routes that are refused.
type conflicts map[table]map[key][]netlink.Route

// table is one of a family.
type table struct{ family, number int }

func tableOf(p netip.Prefix, number int) table {
	if p.Addr().Is4() {
		return table{unix.AF_INET, number}
	}
	return table{unix.AF_INET6, number}
}

// of returns the routes with the key of r.
func (c conflicts) of(h *Host, r Route) ([]netlink.Route, error) {
	t := tableOf(r.Prefix, r.Table)
	all, ok := c[t]
	if !ok {
		list, err := h.list(t.family, netlink.Route{Table: t.number}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, fmt.Errorf("list of the routes in table %d: %w", t.number, err)
		}
		all = map[key][]netlink.Route{}
		for _, n := range list {
			if n.Tos == 0 {
				k := keyOf(&n)
				all[k] = append(all[k], n)
			}
		}
		c[t] = all
	}
	return all[r.key()], nil
}

func keyOf(n *netlink.Route) key { return key{prefixOf(n), n.Priority, n.Table} }

// addAddress adds an address. There is no other host that might have it, so IPv6 does not ask: until it had, routes
// could not have it as their source.
func (h *Host) addAddress(a netip.Prefix) error {
	n := &netlink.Addr{IPNet: ipNet(a), LinkIndex: h.index}
	if a.Addr().Is6() {
		n.Flags = unix.IFA_F_NODAD
	}
	return h.nl.AddrAdd(nil, n)
}

func (h *Host) delAddress(a netip.Prefix) error {
	return gone(h.nl.AddrDel(nil, &netlink.Addr{IPNet: ipNet(a), LinkIndex: h.index}))
}
