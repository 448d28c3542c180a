package table

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Faults of Physical_Port.port_fault_status.
const (
	InvalidVLANMap = "invalid_vlan_map"    // a binding has no effect
	InvalidACL     = "invalid_ACL_binding" // an ACL denies more than it says
	Unspecified    = "unspecified_fault"   // the port is down
)

// NoRouter is what Physical_Switch.switch_fault_status has while a Logical_Router is not carried out as it stands.
const NoRouter = "lr_support_fault"

// An Op is an operation, as package rpc has it.
type Op = map[string]any

// A Host is a MAC that the switch has learned on a port, with an address, perhaps none.
type Host struct {
	Segment string // UUID of the Logical_Switch
	MAC     string
	IP      netip.Addr
}

// A Group is a MAC that hosts on ports listen to, or UnknownDst.
type Group struct {
	Segment string // UUID of the Logical_Switch
	MAC     string
}

// A State is what a switch has.
type State struct {
	Wrong    []string            // faults of the switch
	Faults   map[string][]string // of ports, by name
	Segments []Segment
	Hosts    map[Host]bool
	Groups   map[Group]bool                   // beside unknown-dst of each segment
	Tunnels  map[netip.Addr]map[string]string // VTEPs that it has tunnels to, and bfd_status of those for which BFD is enabled
	BFD      map[string]string                // bfd_config_local of all
	Source   string                           // MAC of questions on behalf of routers, "" = there are none
}

// Write returns the operations after which the database says what the switch is and has: its Physical_Switch with its ports and their
// faults, a row of Ucast_Macs_Local for each host, in each of its segments unknown-dst and its groups in Mcast_Macs_Local, and a Tunnel for each VTEP.
// Rows with another switch's locator are left alone. Those with an address that the switch had, by its tunnel_ips, go. With an empty
// State, or without an address, it takes all rows of the switch away but the Physical_Switch and its ports, whose bindings are the
// controller's.
func (d *Database) Write(sw *Switch, st *State) []Op {
	w := &writer{Database: d, sw: sw}
	if len(sw.Local) == 0 {
		st = &State{Wrong: st.Wrong, Faults: st.Faults} // nobody could send to the rest
	}
	w.physical(st.Wrong, st.Faults)
	w.ucast(st.Hosts)
	groups := maps.Clone(st.Groups)
	if groups == nil {
		groups = map[Group]bool{}
	}
	for _, s := range st.Segments {
		groups[Group{s.ID, UnknownDst}] = true
	}
	w.mcast(groups)
	w.source(st.Source)
	w.tunnels(st)
	return w.ops
}

// A writer collects operations.
type writer struct {
	*Database
	sw      *Switch
	ops     []Op
	locator any      // ours: a reference to a row, or to one that ops insert
	former  []string // addresses that the database says the switch has, and it has no more
}

func ref(id string) []any    { return []any{"uuid", id} }
func named(id string) []any  { return []any{"named-uuid", id} }
func byID(id string) []any   { return []any{[]any{"_uuid", "==", ref(id)}} }
func set[T any](l []T) []any { return []any{"set", l} }

// ports returns the Physical_Ports of a switch by name; of two with one name the first UUID counts, as for Read.
func (d *Database) ports(sw *Switch) map[string]string {
	refs := d.Row(PhysicalSwitch, d.Find(PhysicalSwitch, "name", sw.Name)).Refs("ports")
	slices.Sort(refs)
	ports := map[string]string{}
	for _, id := range slices.Backward(refs) {
		ports[d.Row(PhysicalPort, id).text("name")] = id
	}
	return ports
}

func (w *writer) insert(table string, row Op) { w.op(Op{"op": "insert", "table": table, "row": row}) }
func (w *writer) op(op Op)                    { w.ops = append(w.ops, op) }
func (w *writer) mutate(table, id, column, how string, value any) {
	w.op(Op{"op": "mutate", "table": table, "where": byID(id), "mutations": []any{[]any{column, how, value}}})
}
func (w *writer) delete(table, id string) {
	w.op(Op{"op": "delete", "table": table, "where": byID(id)})
}

// texts returns the strings of a column, sorted.
func (r Row) texts(column string) (out []string) {
	for _, a := range atoms(r[column]) {
		if s, ok := a.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

func (w *writer) physical(wrong []string, faults map[string][]string) {
	ips := []string{}
	for _, a := range w.sw.Local {
		ips = append(ips, a.String())
	}
	slices.Sort(ips)
	id := w.Find(PhysicalSwitch, "name", w.sw.Name)
	has := w.Row(PhysicalSwitch, id)
	ports := w.ports(w.sw)
	added := [][]any{}
	for i, name := range w.sw.Ports {
		wrong := append([]string{}, faults[name]...)
		slices.Sort(wrong)
		p, ok := ports[name]
		switch {
		case !ok:
			n := fmt.Sprint("port", i)
			w.op(Op{"op": "insert", "table": PhysicalPort, "uuid-name": n, "row": Op{"name": name, "port_fault_status": set(wrong)}})
			added = append(added, named(n))
		case !slices.Equal(w.Row(PhysicalPort, p).texts("port_fault_status"), wrong):
			w.op(Op{"op": "update", "table": PhysicalPort, "where": byID(p), "row": Op{"port_fault_status": set(wrong)}})
		}
	}
	if has == nil {
		w.op(Op{"op": "insert", "table": PhysicalSwitch, "uuid-name": "switch", "row": Op{"name": w.sw.Name, "tunnel_ips": set(ips), "ports": set(added)}})
		w.global()
		return
	}
	if len(added) > 0 {
		w.mutate(PhysicalSwitch, id, "ports", "insert", set(added))
	}
	w.former = slices.DeleteFunc(has.texts("tunnel_ips"), func(a string) bool { return slices.Contains(ips, a) })
	row := Op{}
	if !slices.Equal(has.texts("tunnel_ips"), ips) {
		row["tunnel_ips"] = set(ips)
	}
	if wrong = slices.Sorted(slices.Values(wrong)); !slices.Equal(has.texts("switch_fault_status"), wrong) {
		row["switch_fault_status"] = set(append([]string{}, wrong...))
	}
	if len(row) > 0 {
		w.op(Op{"op": "update", "table": PhysicalSwitch, "where": byID(id), "row": row})
	}
}

// global adds a new Physical_Switch to the row of Global, for what that does not refer to goes.
func (w *writer) global() {
	us := set([][]any{named("switch")})
	for _, id := range slices.Sorted(maps.Keys(w.tables[Global])) {
		w.mutate(Global, id, "switches", "insert", us)
		return
	}
	w.insert(Global, Op{"switches": us})
}

// ours reports whether a Physical_Locator is an address of the switch.
func (w *writer) ours(id string) bool {
	r := w.Row(Locator, id)
	a, err := netip.ParseAddr(r.text("dst_ip"))
	return err == nil && slices.Contains(w.sw.Local, a.Unmap())
}

// was reports whether a Physical_Locator is an address that the switch had.
func (w *writer) was(id string) bool {
	return slices.Contains(w.former, w.Row(Locator, id).text("dst_ip"))
}

// here returns our Physical_Locator. A new one is inserted with what refers to it, for rows of the table that nothing refers to go.
func (w *writer) here() any {
	if w.locator != nil {
		return w.locator
	}
	for _, id := range slices.Sorted(maps.Keys(w.tables[Locator])) {
		if r := w.Row(Locator, id); w.ours(id) && r.text("dst_ip") == w.sw.Local[0].String() && r.text("encapsulation_type") == vxlanOverIPv4 && len(atoms(r["tunnel_key"])) == 0 {
			w.locator = ref(id)
			return w.locator
		}
	}
	w.op(Op{"op": "insert", "table": Locator, "uuid-name": "here", "row": Op{"dst_ip": w.sw.Local[0].String(), "encapsulation_type": vxlanOverIPv4}})
	w.locator = named("here")
	return w.locator
}

func (w *writer) ucast(hosts map[Host]bool) {
	have := map[Host]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.tables[UcastLocal])) {
		r := w.Row(UcastLocal, id)
		at := r.ref("locator")
		if w.was(at) {
			w.delete(UcastLocal, id)
			continue
		}
		if !w.ours(at) {
			continue
		}
		h := Host{Segment: r.ref("logical_switch"), MAC: r.text("MAC")}
		h.IP, _ = netip.ParseAddr(r.text("ipaddr"))
		if !hosts[h] || have[h] {
			w.delete(UcastLocal, id)
			continue
		}
		have[h] = true
	}
	for h := range hosts {
		if have[h] {
			continue
		}
		ip := ""
		if h.IP.IsValid() {
			ip = h.IP.String()
		}
		w.insert(UcastLocal, Op{"MAC": h.MAC, "ipaddr": ip, "logical_switch": ref(h.Segment), "locator": w.here()})
	}
}

func (w *writer) mcast(groups map[Group]bool) {
	have := map[Group]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.tables[McastLocal])) {
		r := w.Row(McastLocal, id)
		set := w.Row(LocatorSet, r.ref("locator_set")).Refs("locators")
		if slices.ContainsFunc(set, w.was) {
			w.delete(McastLocal, id)
			continue
		}
		if !slices.ContainsFunc(set, w.ours) {
			continue
		}
		g := Group{r.ref("logical_switch"), r.text("MAC")}
		if !groups[g] || have[g] || len(set) != 1 {
			w.delete(McastLocal, id)
			continue
		}
		have[g] = true
	}
	for g := range groups {
		if have[g] {
			continue
		}
		n := fmt.Sprint("set", len(w.ops))
		w.op(Op{"op": "insert", "table": LocatorSet, "uuid-name": n, "row": Op{"locators": w.here()}})
		w.insert(McastLocal, Op{"MAC": g.MAC, "ipaddr": "", "logical_switch": ref(g.Segment), "locator_set": named(n)})
	}
}

// source has one row of Arp_Sources_Local, or none.
func (w *writer) source(mac string) {
	for _, id := range slices.Sorted(maps.Keys(w.tables[ArpLocal])) {
		switch r := w.Row(ArpLocal, id); {
		case w.was(r.ref("locator")):
			w.delete(ArpLocal, id)
		case !w.ours(r.ref("locator")):
		case r.text("src_mac") != mac:
			w.delete(ArpLocal, id)
		default:
			mac = ""
		}
	}
	if mac != "" {
		w.insert(ArpLocal, Op{"src_mac": mac, "locator": w.here()})
	}
}
