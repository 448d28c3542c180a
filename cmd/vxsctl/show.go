package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// A table formats an answer as columns with a header.
type table func(answer []byte) ([][]string, error)

// list prints a list of the API as a table. If it is of a section, which has nothing in it because of an error, standard error says so.
func (s *session) list(ctx context.Context, w *words, l sublist) error {
	q, err := w.keys(l.keys...)
	if err != nil {
		return err
	}
	text, err := s.Do(ctx, http.MethodGet, l.path, q, nil)
	if err != nil {
		return err
	}
	if err := s.show(text, l.table); err != nil || l.path == "/v1/"+w.name || len(bytes.Trim(text, "[] \n")) > 0 {
		return err
	}
	var x struct {
		State, Error string
		Since        time.Time
		Again        *time.Time
	}
	text, err = s.Do(ctx, http.MethodGet, "/v1/"+w.name, nil, nil)
	if err == nil && json.Unmarshal(text, &x) == nil && x.Error != "" {
		fmt.Fprintf(s.notice, "vxsctl: %s: %s: %s\n", w.name, lasting(x.State, x.Since, x.Again), x.Error)
	}
	return nil
}

// show prints an answer, as it is or as a table.
func (s *session) show(text []byte, of table) error {
	if s.json {
		_, err := s.out.Write(text)
		return err
	}
	rows, err := of(text)
	if err != nil {
		return fmt.Errorf("%s: invalid answer: %w", s.Socket(), err)
	}
	return align(s.out, rows)
}

// align prints rows in columns.
func align(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	return t.Flush()
}

// rowsOf returns a table of a list with any number of rows per element.
func rowsOf[T any](answer []byte, header string, rows func(T) [][]string) ([][]string, error) {
	var list []T
	err := json.Unmarshal(answer, &list)
	all := [][]string{strings.Fields(header)}
	for _, x := range list {
		all = append(all, rows(x)...)
	}
	return all, err
}

func row(cells ...any) []string {
	list := make([]string, len(cells))
	for i, c := range cells {
		if list[i] = fmt.Sprint(c); list[i] == "" {
			list[i] = "-"
		}
	}
	return list
}

// vlanOf returns a VLAN ID, "" for untagged.
func vlanOf(id uint32, service bool) string {
	if service {
		return fmt.Sprint("service ", id)
	}
	return strings.TrimPrefix(fmt.Sprint(id), "0")
}

func age(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) + "s" }

func fdbTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI MAC DEST DEV VLAN ORIGIN PROTO AGE FLAGS", func(e api.FDBEntry) [][]string {
		old := age(e.Age)
		if e.Origin != "learned" {
			old = "-"
		}
		return [][]string{row(e.VNI, e.MAC, e.Dest, e.Dev, vlanOf(e.VLAN, e.Service), e.Origin, e.Proto, old, strings.Join(e.Flags, ","))}
	})
}

func neighTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI ADDRESS MAC ORIGIN PROTO STATE AGE", func(e api.Neighbour) [][]string {
		old := age(e.Age)
		if e.State == "permanent" {
			old = "-"
		}
		return [][]string{row(e.VNI, e.IP, e.MAC, e.Origin, e.Proto, e.State, old)}
	})
}

func mdbTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI GROUP DEST DEV LEFT WHY", func(e api.Listener) [][]string {
		group := e.Group
		if group == "" {
			group = "all"
		}
		left := age(e.Left)
		if e.Permanent {
			left = "-"
		}
		return [][]string{row(e.VNI, group, e.Dest, e.Dev, left, strings.Join(e.Why, ","))}
	})
}

func routeTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VRF PREFIX KIND PROTO VIA", func(r api.Route) (rows [][]string) {
		for i, via := range r.Via {
			if i == 0 {
				rows = append(rows, row(r.VRF, r.Prefix, r.Kind, r.Proto, via))
			} else {
				rows = append(rows, []string{"", "", "", "", via})
			}
		}
		if len(r.Via) == 0 {
			rows = append(rows, row(r.VRF, r.Prefix, r.Kind, r.Proto, ""))
		}
		return rows
	})
}

func vtepTable(text []byte) ([][]string, error) {
	return rowsOf(text, "TUNNEL TYPE LOCAL PEER KIND MTU RX RX-BYTES TX TX-BYTES HEARD", func(v api.VTEP) (rows [][]string) {
		local := v.Local
		if v.Local6 != "" {
			local += "," + v.Local6
		}
		for _, p := range v.Peers {
			kind := "learned"
			if p.Listed {
				kind = "listed"
			}
			if p.Dead {
				kind += ",dead"
			}
			rows = append(rows, row(v.Name, v.Type, local, p.Addr, kind, p.MTU, p.Rx, p.RxBytes, p.Tx, p.TxBytes, since(p.LastHeard)))
		}
		if len(rows) == 0 {
			rows = append(rows, row(v.Name, v.Type, local, "", "", v.MTU, "", "", "", "", ""))
		}
		return rows
	})
}

func portTable(text []byte) ([][]string, error) {
	return rowsOf(text, "PORT TYPE MTU VNIS RX RX-BYTES TX TX-BYTES RX-DROPS TX-DROPS STATE ERROR", func(p api.Port) [][]string {
		if p.Port < 0 {
			return [][]string{row(p.Name, p.Type, "", segments(p.Type, p.Members), "", "", "", "", "", "", p.State, p.Error)}
		}
		mtu := any(p.MTU)
		if p.Type == "switch" {
			mtu = ""
		}
		return [][]string{row(p.Name, p.Type, mtu, segments(p.Type, p.Members), p.Rx.Frames, p.Rx.Bytes, p.Tx.Frames, p.Tx.Bytes,
			sum(p.RxDrops), sum(p.TxDrops), p.State, "")}
	})
}

// since returns the time that has passed since t.
func since(t *time.Time) string {
	if t == nil {
		return ""
	}
	return max(time.Since(*t), 0).Truncate(time.Second).String()
}

// vniTable has a row of each segment, and one of each member.
func vniTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI PORT VLAN RX RX-BYTES TX TX-BYTES FLOODED DROPS", func(s api.Segment) [][]string {
		rows := [][]string{row(s.VNI, "", "", s.Rx.Frames, s.Rx.Bytes, s.Tx.Frames, s.Tx.Bytes, s.Flood.Broadcast+s.Flood.Multicast+s.Flood.Unknown, sum(s.Drops))}
		for _, m := range s.Members {
			rows = append(rows, row(s.VNI, m.Port, vlanOf(m.VLAN, m.Service), m.Rx.Frames, m.Rx.Bytes, m.Tx.Frames, m.Tx.Bytes, "", ""))
		}
		return rows
	})
}

// segments lists the VNIs of members as ranges such as 100-110,200(vlan 5), with service for the VLAN of a service tag. VLANs that
// count up with the VNIs are a range, too. Tunnels have no VLANs: their tags are VNIs.
func segments(kind string, members []api.Member) string {
	tunnel := slices.Contains([]string{"vxlan", "gpe", "ipip", "fou"}, kind)
	tagged := func(m api.Member) bool { return m.Tag != 0 && !tunnel }
	follows := func(a, b api.Member) bool {
		return b.VNI == a.VNI+1 && tagged(a) == tagged(b) && a.Service == b.Service && (!tagged(a) || b.Tag == a.Tag+1)
	}
	members = slices.SortedFunc(slices.Values(members), func(a, b api.Member) int { return cmp.Compare(a.VNI, b.VNI) })
	var list []string
	for len(members) > 0 {
		n := 1
		for n < len(members) && follows(members[n-1], members[n]) {
			n++
		}
		first, last := members[0], members[n-1]
		text := span(uint32(first.VNI), uint32(last.VNI))
		if tagged(first) {
			word := "vlan"
			if first.Service {
				word = "service"
			}
			text += fmt.Sprintf("(%s %s)", word, span(first.Tag, last.Tag))
		}
		list, members = append(list, text), members[n:]
	}
	return strings.Join(list, ",")
}

func span(first, last uint32) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

func sum(m map[string]uint64) (n uint64) {
	for _, x := range m {
		n += x
	}
	return n
}

func dropsTable(text []byte) ([][]string, error) {
	return rowsOf(text, "WHERE DIRECTION REASON FRAMES", func(d api.Drop) [][]string {
		return [][]string{row(d.Where, d.Direction, d.Reason, d.Frames)}
	})
}

func floodTable(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI MAC TUNNEL PEER PROTO FLAGS", func(f api.Flood) (rows [][]string) {
		for _, m := range f.Members {
			rows = append(rows, row(f.VNI, m.MAC, f.Tunnel, m.Peer, strings.Join(m.Proto, ","), strings.Join(m.Flags, ",")))
		}
		if len(rows) == 0 {
			rows = append(rows, row(f.VNI, "", f.Tunnel, "", "", ""))
		}
		return rows
	})
}

func bfdTable(text []byte) ([][]string, error) {
	return rowsOf(text, "FOR LOCAL PEER STATUS STATE DIAGNOSTIC INTERVAL DETECTION SENT RECEIVED ERROR", func(b api.BFD) [][]string {
		seconds := func(s float64) string { return time.Duration(s * float64(time.Second)).String() }
		is := fmt.Sprintf("vrf %s vni %d", b.VRF, b.VNI)
		switch {
		case b.Proto != "":
			is = b.Proto
		case b.Tunnel != "":
			is = "tunnel " + b.Tunnel
		}
		return [][]string{row(is, b.Local, b.Peer, b.Status, b.State, b.Diagnostic, seconds(b.Interval), seconds(b.Detection),
			b.Stats.Sent, b.Stats.Received, cmp.Or(b.SendError, "-"))}
	})
}

func flowsTable(text []byte) ([][]string, error) {
	var f api.Flows
	err := json.Unmarshal(text, &f)
	rows := [][]string{row("VNI", "SRC", "DST", "FROM", "TO", "FRAMES", "BYTES", "AGE", "IDLE", "PACKETS", "ROUTED")}
	for _, x := range f.Flows {
		rows = append(rows, row(x.VNI, x.Src, x.Dst, x.From, x.To, x.Carried.Frames, x.Carried.Bytes, age(x.Age), age(x.Idle), cmp.Or(x.Tuple, "all"), x.Hop))
	}
	rows = append(rows, []string{}, row("WHAT", "CAUSE", "COUNT"), row("datapath "+f.Datapath, f.Why, ""), row("frames carried", "", f.Carried.Frames))
	for _, k := range slices.Sorted(maps.Keys(f.Refused)) {
		rows = append(rows, row("pairs refused", k, f.Refused[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(f.Misses)) {
		rows = append(rows, row("frames missed", k, f.Misses[k]))
	}
	return rows, err
}

func waitingTable(text []byte) ([][]string, error) {
	return rowsOf(text, "PROTO STATE SINCE ROW WHY", func(r api.Row) [][]string {
		at := ""
		if r.Time != nil {
			at = r.Time.Local().Format(time.DateTime)
		}
		return [][]string{{r.Proto, r.State, cmp.Or(at, "-"), r.Row, r.Why}}
	})
}

func policyTable(text []byte) ([][]string, error) {
	type count struct{ Packets, Bytes uint64 }
	return rowsOf(text, "POLICY WHAT PACKETS BYTES", func(p api.Policy) (rows [][]string) {
		if p.Port != "" {
			return guardRows(p)
		}
		var s struct {
			Rules                                  map[string]count
			Default, Neighbours                    count
			Replies, Related, Fragments, Malformed uint64
			Flows                                  struct{ Tracked int }
		}
		if err := json.Unmarshal(p.Stats, &s); err != nil {
			return [][]string{row(p.Name, err, "", "")}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Rules)) {
			rows = append(rows, row(p.Name, "rule "+name, s.Rules[name].Packets, s.Rules[name].Bytes))
		}
		return append(rows,
			row(p.Name, "default", s.Default.Packets, s.Default.Bytes), row(p.Name, "neighbours", s.Neighbours.Packets, s.Neighbours.Bytes),
			row(p.Name, "replies", s.Replies, ""), row(p.Name, "related", s.Related, ""), row(p.Name, "fragments", s.Fragments, ""),
			row(p.Name, "malformed", s.Malformed, ""), row(p.Name, "flows", s.Flows.Tracked, ""))
	})
}

// guardRows returns the drops of a guard by reason.
func guardRows(p api.Policy) (rows [][]string) {
	var drops map[string]uint64
	name := fmt.Sprintf("%s of %s vni %d", p.Name, p.Port, p.VNI)
	if err := json.Unmarshal(p.Stats, &drops); err != nil {
		return [][]string{row(name, err, "", "")}
	}
	for _, cause := range slices.Sorted(maps.Keys(drops)) {
		rows = append(rows, row(name, "dropped "+cause, drops[cause], ""))
	}
	return rows
}

func statsTable(text []byte) ([][]string, error) {
	var s api.Stats
	err := json.Unmarshal(text, &s)
	rows := [][]string{
		row("WHAT", "FRAMES", "BYTES"), row("from tunnels", s.Rx.Frames, s.Rx.Bytes), row("into tunnels", s.Tx.Frames, s.Tx.Bytes),
		row("flooded broadcast", s.Flood.Broadcast, ""), row("flooded multicast", s.Flood.Multicast, ""), row("flooded unknown", s.Flood.Unknown, ""),
	}
	for _, r := range slices.Sorted(maps.Keys(s.Drops)) {
		rows = append(rows, row("dropped "+r, s.Drops[r], ""))
	}
	var tooBig map[string]uint64
	if b, e := json.Marshal(s.TooBig); e == nil {
		json.Unmarshal(b, &tooBig)
	}
	for _, k := range slices.Sorted(maps.Keys(tooBig)) {
		if n := tooBig[k]; n > 0 {
			rows = append(rows, row("too big, "+k, n, ""))
		}
	}
	rows = append(rows, []string{}, []string{"TABLE", "ENTRIES"})
	for _, t := range []struct {
		name string
		n    int
	}{{"fdb", len(s.FDB)}, {"neigh", len(s.Neigh)}, {"peers", len(s.Peers)}} {
		rows = append(rows, []string{t.name, strconv.Itoa(t.n)})
	}
	return rows, err
}
