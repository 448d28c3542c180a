package table

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/vtep"
)

// A place is what a Physical_Locator says.
type place struct {
	addr netip.Addr
	far  frame.VNI // there; 0 = that of the Logical_Switch
	ok   bool
}

// locator returns the place of a Physical_Locator.
func (r *reader) locator(id string) place {
	p, known := r.places[id]
	if !known {
		p = r.Row(Locator, id).place()
		r.places[id] = p
	}
	return p
}

func (r Row) place() (p place) {
	addr, err := netip.ParseAddr(r.text("dst_ip"))
	if err != nil || r.text("encapsulation_type") != vxlanOverIPv4 || hostaddr.Check(addr) != nil || addr.Zone() != "" {
		return p
	}
	p.addr, p.ok = addr.Unmap(), true
	if len(atoms(r["tunnel_key"])) > 0 {
		key, ok := r.number("tunnel_key")
		p.far, p.ok = frame.VNI(key), ok && key >= 1 && key <= int(frame.MaxVNI)
	}
	return p
}

// A host is a MAC behind a VTEP. It is smaller than a row, for there may be many, and they are sorted.
type host struct {
	vni  frame.VNI
	far  frame.VNI
	mac  frame.MAC
	addr netip.Addr // of the VTEP
	ip   netip.Addr // its own, perhaps none
	id   string     // of the row that says so
	arp  bool       // which is one of Arp_Sources_Remote
}

// newHost returns a host that a row of a table says is in a place.
func newHost(table, id string, vni frame.VNI, mac frame.MAC, p place) host {
	h := host{vni: vni, mac: mac, addr: p.addr, id: id, arp: table == ArpRemote}
	if p.far != vni {
		h.far = p.far
	}
	return h
}

func (h *host) table() string {
	if h.arp {
		return ArpRemote
	}
	return UcastRemote
}

func compareHosts(a, b host) int {
	if c := cmp.Compare(a.vni, b.vni); c != 0 {
		return c
	}
	if c := cmp.Compare(a.mac.Uint64(), b.mac.Uint64()); c != 0 {
		return c
	}
	if a.arp != b.arp {
		if b.arp {
			return -1
		}
		return 1
	}
	return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.far, b.far), a.ip.Compare(b.ip), cmp.Compare(a.id, b.id))
}

// hosts returns those in networks of the switch, in order, each MAC in one place, each address with one MAC. Where Ucast_Macs_Remote and
// Arp_Sources_Remote contradict each other, the former counts.
func (r *reader) hosts(at map[string]frame.VNI, routed []frame.VNI) []host {
	all := make([]host, 0, len(r.tables[UcastRemote]))
	for id, row := range r.tables[UcastRemote] {
		if vni, ok := at[row.ref("logical_switch")]; ok {
			if h, ok := r.host(id, row, vni); ok {
				all = append(all, h)
			}
		}
	}
	all = r.sources(all, routed)
	slices.SortFunc(all, compareHosts)
	return r.agreed(all)
}

// host returns what a row of Ucast_Macs_Remote says.
func (r *reader) host(id string, row Row, vni frame.VNI) (h host, ok bool) {
	mac, p, ok := r.behind(UcastRemote, id, row.text("MAC"), row.ref("locator"))
	if !ok {
		return h, false
	}
	h = newHost(UcastRemote, id, vni, mac, p)
	if s := row.text("ipaddr"); s != "" {
		ip, err := netip.ParseAddr(s)
		if err != nil || hostaddr.Neighbour(ip.Unmap()) != nil {
			r.leave(UcastRemote, id, BadIP)
			return h, true
		}
		h.ip = ip.Unmap()
	}
	return h, true
}

// behind returns the MAC that a row of a table has, and its place, which is elsewhere.
func (r *reader) behind(table, id, text, locator string) (mac frame.MAC, p place, ok bool) {
	mac, err := frame.ParseMAC(text)
	p = r.locator(locator)
	switch {
	case err != nil || !mac.IsHost():
		r.leave(table, id, BadMAC)
	case !p.ok:
		r.leave(table, id, BadLocator)
	case slices.Contains(r.sw.Local, p.addr):
		r.leave(table, id, OwnLocator)
	default:
		return mac, p, true
	}
	return mac, p, false
}

// agreed leaves out of sorted hosts what contradicts others, and what is there already.
func (r *reader) agreed(all []host) []host {
	type ipKey struct {
		vni frame.VNI
		ip  netip.Addr
	}
	whose := make(map[ipKey]frame.MAC, len(all))
	out, bare := all[:0], false // bare: the last MAC is there without an address
	var last host
	for _, h := range all {
		if h.vni != last.vni || h.mac != last.mac {
			bare = false
		} else if h.addr != last.addr || h.far != last.far {
			r.leave(h.table(), h.id, TwoLocators)
			continue
		}
		last = h
		if h.ip.IsValid() {
			k := ipKey{h.vni, h.ip}
			switch first, taken := whose[k]; {
			case taken && first == h.mac:
				continue
			case taken:
				r.leave(UcastRemote, h.id, SameIP)
				h.ip = netip.Addr{}
			default:
				whose[k] = h.mac
			}
		}
		if !h.ip.IsValid() {
			if bare {
				continue
			}
			bare = true
		}
		out = append(out, h)
	}
	return out
}

// rows returns the rows of VTEPs and hosts, in order.
func (r *reader) rows(at map[string]frame.VNI, routed []frame.VNI) []control.Row {
	hosts := r.hosts(at, routed)
	copies := r.copies(at)
	for _, h := range hosts {
		if to := copies[h.vni][frame.MAC{}]; !to[h.addr] {
			to[h.addr] = false // it may send
		}
	}
	rows := make([]control.Row, 0, len(hosts)+len(r.places))
	for _, vni := range slices.Sorted(maps.Keys(copies)) {
		for _, mac := range slices.SortedFunc(maps.Keys(copies[vni]), compareMACs) {
			to := copies[vni][mac]
			for _, a := range slices.SortedFunc(maps.Keys(to), netip.Addr.Compare) {
				rows = append(rows, control.Flood{VNI: vni, VTEP: netip.AddrPortFrom(a, 0), MAC: mac, NoBroadcast: !to[a], NoUnknown: !to[a] && mac.IsZero()})
			}
		}
	}
	for _, h := range hosts {
		rows = append(rows, control.MAC{VNI: h.vni, MAC: h.mac, IP: h.ip, VTEP: netip.AddrPortFrom(h.addr, 0), FarVNI: h.far})
	}
	return rows
}

func compareMACs(a, b frame.MAC) int { return cmp.Compare(a.Uint64(), b.Uint64()) }

// copies returns the VTEPs of each network that rows of Mcast_Macs_Remote have for a MAC, zero for unknown-dst, and whether they get
// copies.
func (r *reader) copies(at map[string]frame.VNI) map[frame.VNI]map[frame.MAC]map[netip.Addr]bool {
	lists := r.lists(at)
	all := map[frame.VNI]map[frame.MAC]map[netip.Addr]bool{}
	for id, vni := range at {
		every := r.every(id)
		all[vni] = map[frame.MAC]map[netip.Addr]bool{{}: {}}
		macs := slices.SortedFunc(maps.Keys(lists[id]), compareMACs) // unknown-dst is the first
		for i, mac := range macs {
			list := lists[id][mac]
			if i > vtep.MaxGroups || i == vtep.MaxGroups && !macs[0].IsZero() {
				for _, row := range list.ids {
					r.leave(McastRemote, row, TooManyGroups)
				}
				continue
			}
			to := map[netip.Addr]bool{}
			slices.SortFunc(list.addrs, netip.Addr.Compare)
			for _, a := range slices.Compact(list.addrs) {
				if !slices.Contains(r.sw.Local, a) {
					to[a] = every || len(to) == 0
				}
			}
			if len(to) == 0 && len(list.addrs) > 0 {
				to[list.addrs[0]] = false // this VTEP alone: nobody else gets the frames
			}
			all[vni][mac] = to
		}
	}
	return all
}

// every reports whether all VTEPs of a Logical_Switch get copies, not one alone.
func (r *reader) every(id string) bool {
	switch mode := r.Row(LogicalSwitch, id).text("replication_mode"); mode {
	case SourceNode:
		return true
	case ServiceNode, "":
	default:
		r.leave(LogicalSwitch, id, BadReplication)
	}
	return false
}

// A list is what rows of Mcast_Macs_Remote say of a MAC.
type list struct {
	ids   []string // of the rows
	addrs []netip.Addr
}

// lists returns what there is for each MAC by Logical_Switch, in no order.
func (r *reader) lists(at map[string]frame.VNI) map[string]map[frame.MAC]*list {
	lists := map[string]map[frame.MAC]*list{}
	for id, row := range r.tables[McastRemote] {
		network := row.ref("logical_switch")
		vni, ok := at[network]
		if !ok { // not a network of this switch
			continue
		}
		var mac frame.MAC
		if text := row.text("MAC"); text != UnknownDst {
			var err error
			if mac, err = frame.ParseMAC(text); err != nil || !mac.IsGroup() {
				r.leave(McastRemote, id, BadMAC)
				continue
			}
		}
		if lists[network] == nil {
			lists[network] = map[frame.MAC]*list{}
		}
		l := lists[network][mac]
		if l == nil {
			l = new(list)
			lists[network][mac] = l
		}
		l.ids = append(l.ids, id)
		for _, x := range r.Row(LocatorSet, row.ref("locator_set")).Refs("locators") {
			switch p := r.locator(x); {
			case !p.ok:
				r.leave(McastRemote, id, BadLocator)
			case p.far != 0 && p.far != vni:
				r.leave(McastRemote, id, LocatorKey)
			case !mac.IsZero() || !slices.Contains(r.sw.Local, p.addr):
				l.addrs = append(l.addrs, p.addr)
			}
		}
	}
	return lists
}
