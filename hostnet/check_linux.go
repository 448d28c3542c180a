package hostnet

import (
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Check returns what keeps packets from passing, one line each, with the setting to change. It changes nothing: the
// settings of the kernel are those of the whole host.
func (h *Host) Check() (wrong []error) {
	h.op.Lock()
	defer h.op.Unlock()
	dev := h.cfg.Device
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("hostnet: "+format, args...))
	}
	if h.closed() {
		say("%s: %w", dev, net.ErrClosed)
		return wrong
	}
	link, err := h.nl.LinkByName(dev)
	if err != nil {
		say("%s: %w", dev, err)
		return wrong
	}
	switch a := link.Attrs(); {
	case a.Flags&net.FlagUp == 0:
		say("%s is down: ip link set %s up", dev, dev)
	case a.RawFlags&unix.IFF_LOWER_UP == 0:
		say("%s has no carrier: no switch has it open", dev)
	}
	v4, v6, tables := h.uses()
	if err := h.inside(func() { h.checkSysctls(v4, v6, say) }); err != nil {
		say("network namespace: %w", err)
	}
	h.checkRules(tables, say)
	h.checkShadows(tables, say)
	for r, err := range h.Waiting() {
		wrong = append(wrong, RouteError{r, err})
	}
	return wrong
}

// uses returns which families the addresses and routes are of, and which tables the routes are in.
func (h *Host) uses() (v4, v6 bool, tables map[table]bool) {
	tables = map[table]bool{}
	note := func(is4 bool) { v4, v6 = v4 || is4, v6 || !is4 }
	for _, a := range h.cfg.Addresses {
		note(a.Addr().Is4())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.want {
		note(k.prefix.Addr().Is4())
		tables[tableOf(k.prefix, k.table)] = true
	}
	return v4, v6, tables
}

// checkSysctls looks at the settings of the namespace. A value that is not there is not wrong.
func (h *Host) checkSysctls(v4, v6 bool, say func(string, ...any)) {
	dev := h.cfg.Device
	if v4 {
		// ip_forward=0 does not stop a device whose own setting is 1.
		if h.cfg.Forward && sysctl("net/ipv4/conf/"+dev+"/forwarding") == "0" {
			say("packets of other hosts are not forwarded: sysctl -w net.ipv4.ip_forward=1, or net.ipv4.conf.%s.forwarding=1 and that of the other devices", dev)
		}
		if all, own := sysctl("net/ipv4/conf/all/rp_filter"), sysctl("net/ipv4/conf/"+dev+"/rp_filter"); max(all, own) == "1" {
			say("strict rp_filter drops packets from addresses without a route into %s: sysctl -w net.ipv4.conf.%s.rp_filter=2", dev, dev)
		}
	}
	if v6 {
		if sysctl("net/ipv6/conf/"+dev+"/disable_ipv6") == "1" {
			say("IPv6 is off: sysctl -w net.ipv6.conf.%s.disable_ipv6=0", dev)
		}
		if h.cfg.Forward && sysctl("net/ipv6/conf/all/forwarding") == "0" {
			say("packets of other hosts are not forwarded: sysctl -w net.ipv6.conf.all.forwarding=1 (accept_ra=2 on devices that need router advertisements)")
		}
	}
}

// checkRules looks for tables that are never read.
func (h *Host) checkRules(tables map[table]bool, say func(string, ...any)) {
	for t := range tables {
		rules, err := whole(func() ([]netlink.Rule, error) { return h.nl.RuleList(t.family) })
		if err != nil {
			say("list of the rules: %w", err)
		} else if !slices.ContainsFunc(rules, func(r netlink.Rule) bool { return r.Table == t.number }) {
			six := ""
			if t.family == unix.AF_INET6 {
				six = "-6 "
			}
			say("no rule leads to table %d: ip %srule add lookup %[1]d", t.number, six)
		}
	}
}

// checkShadows looks for foreign routes that come before ours.
func (h *Host) checkShadows(tables map[table]bool, say func(string, ...any)) {
	for t := range tables {
		list, err := h.list(t.family, netlink.Route{Table: t.number}, netlink.RT_FILTER_TABLE)
		if err != nil {
			say("list of the routes in table %d: %w", t.number, err)
			continue
		}
		first := map[key]*netlink.Route{} // by prefix, with the lowest metric
		for i := range list {
			k := keyOf(&list[i])
			k.metric = 0
			if f := first[k]; list[i].Tos == 0 && (f == nil || list[i].Priority < f.Priority) {
				first[k] = &list[i]
			}
		}
		for r := range h.Routes() {
			k := r.key()
			k.metric = 0
			f := first[k]
			if f == nil || tableOf(r.Prefix, r.Table) != t {
				continue
			}
			if _, ours := h.route(f); !ours && f.Priority < r.Metric {
				say("route %v: %s comes first, its metric is lower", r, h.foreign(f))
			}
		}
	}
}
