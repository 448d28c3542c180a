package table

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// words returns the pairs of a map of strings.
func (r Row) words(column string) map[string]string {
	m := map[string]string{}
	r.pairs(column, func(k, v any) {
		key, _ := k.(string)
		m[key], _ = v.(string)
	})
	return m
}

// words returns a map in the notation of RFC 7047, section 5.1.
func words(m map[string]string) []any {
	pairs := [][]string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, []string{k, m[k]})
	}
	return []any{"map", pairs}
}

// tunnels writes a row of Tunnel for each VTEP that the switch has a tunnel to. A new Physical_Switch gets them with the next transaction.
func (w *writer) tunnels(st *State) {
	us := w.Find(PhysicalSwitch, "name", w.sw.Name)
	if us == "" {
		return
	}
	have, gone, added := map[netip.Addr]bool{}, [][]any{}, [][]any{}
	for _, id := range slices.Sorted(slices.Values(w.Row(PhysicalSwitch, us).Refs("tunnels"))) {
		r := w.Row(Tunnels, id)
		to := w.Row(Locator, r.ref("remote")).place().addr
		status, wanted := st.Tunnels[to]
		if !wanted || have[to] || !w.ours(r.ref("local")) {
			gone = append(gone, ref(id))
			continue
		}
		have[to] = true
		w.bfd(id, r, st.BFD, status)
	}
	var at map[netip.Addr]string
	for _, to := range slices.SortedFunc(maps.Keys(st.Tunnels), netip.Addr.Compare) {
		if have[to] {
			continue
		}
		if at == nil {
			at = w.locators()
		}
		if at[to] != "" { // else it has gone meanwhile
			n := fmt.Sprint("tunnel", len(w.ops))
			w.op(Op{"op": "insert", "table": Tunnels, "uuid-name": n, "row": Op{"local": w.here(), "remote": ref(at[to]), "bfd_config_local": words(st.BFD)}})
			added = append(added, named(n))
		}
	}
	if len(gone) > 0 {
		w.mutate(PhysicalSwitch, us, "tunnels", "delete", set(gone))
	}
	if len(added) > 0 {
		w.mutate(PhysicalSwitch, us, "tunnels", "insert", set(added))
	}
}

// locators returns a Physical_Locator of each address: one without a tunnel_key, if there is one.
func (w *writer) locators() map[netip.Addr]string {
	at, keyed := map[netip.Addr]string{}, map[netip.Addr]bool{}
	for _, id := range slices.Sorted(maps.Keys(w.tables[Locator])) {
		if p := w.Row(Locator, id).place(); p.ok && (at[p.addr] == "" || keyed[p.addr] && p.far == 0) {
			at[p.addr], keyed[p.addr] = id, p.far != 0
		}
	}
	return at
}

// bfd writes what the switch says of BFD in a tunnel.
func (w *writer) bfd(id string, r Row, local, status map[string]string) {
	row := Op{}
	if !maps.Equal(r.words("bfd_config_local"), local) {
		row["bfd_config_local"] = words(local)
	}
	if status = r.asked(local, status); !maps.Equal(r.words("bfd_status"), status) {
		row["bfd_status"] = words(status)
	}
	if len(row) > 0 {
		w.op(Op{"op": "update", "table": Tunnels, "where": byID(id), "row": row})
	}
}

// asked returns the bfd_status of a tunnel: none unless the controller has enabled BFD, and with the names of those of its parameters
// that have no effect. Packets go to the same addresses as those that we expect, so others in bfd_config_remote are among these.
func (r Row) asked(local, status map[string]string) map[string]string {
	params := r.words("bfd_params")
	if params["enable"] != "true" {
		return nil
	}
	var none []string
	for k, v := range params {
		if k != "enable" && v != "false" && v != "0" {
			none = append(none, k)
		}
	}
	for k, v := range r.words("bfd_config_remote") {
		if v != local[k] {
			none = append(none, k)
		}
	}
	if len(none) == 0 || len(status) == 0 || status["info"] != "" {
		return status
	}
	slices.Sort(none)
	status = maps.Clone(status)
	status["info"] = "without effect: " + strings.Join(none, ", ")
	return status
}
