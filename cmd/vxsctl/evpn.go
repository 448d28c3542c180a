package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

var evpnLists = map[string]sublist{
	"peers":      {"/v1/evpn/peers", evpnPeers, nil},
	"vni":        {"/v1/evpn/vni", evpnSegments, nil},
	"es":         {"/v1/evpn/es", evpnEthernets, nil},
	"routes":     {"/v1/evpn/routes", evpnRoutes, []string{"type", "vni", "peer"}},
	"duplicates": {"/v1/evpn/duplicates", evpnDuplicates, nil},
}

// evpnClear lets a MAC move again.
func (s *session) evpnClear(ctx context.Context, w *words) error {
	word := w.next()
	mac, err := frame.ParseMAC(word)
	if err != nil && w.to == nil {
		return w.required(w.op, word, values["mac"].text)
	}
	keys, err := w.keys("vni")
	if err != nil {
		return err
	}
	vni := vniOf(keys)
	if vni == nil {
		return w.wrong("%s: requires vni, %s", w.op, values["vni"].text)
	}
	return s.post(ctx, "/v1/evpn", api.EVPNChange{Op: api.Clear, VNI: *vni, MAC: mac.String()})
}

func evpnTable(text []byte) ([][]string, error) {
	var e api.EVPN
	err := json.Unmarshal(text, &e)
	rows := [][]string{row("WHAT", "VALUE"), row("state", lasting(e.State, e.Since, e.Again)), row("error", e.Error), row("AS", e.AS), row("router ID", e.RouterID),
		row("peers", e.Peers), row("sessions", e.Established), row("routes of this node", e.Advertised), row("routes of peers", e.Routes)}
	for _, reason := range slices.Sorted(maps.Keys(e.LeftOut)) {
		rows = append(rows, row("left out, "+reason, e.LeftOut[reason]))
	}
	for _, reason := range slices.Sorted(maps.Keys(e.Malformed)) {
		rows = append(rows, row("not taken, "+reason, e.Malformed[reason]))
	}
	return append(rows, row("duplicate MACs", e.Duplicates)), err
}

func evpnPeers(text []byte) ([][]string, error) {
	return rowsOf(text, "PEER AS STATE SINCE HOLD BFD ROUTES RECEIVED SENT ERROR", func(p api.EVPNPeer) [][]string {
		since, hold, routes := "-", "-", fmt.Sprint(p.Routes)
		if p.Since != nil {
			since = p.Since.Local().Format("2006-01-02T15:04:05")
		}
		if p.HoldTime > 0 {
			hold = fmt.Sprint(time.Duration(p.HoldTime * float64(time.Second)))
		}
		if p.Stale {
			routes += " stale"
		}
		if p.Missing > 0 {
			routes += fmt.Sprintf(" (%d left out)", p.Missing)
		}
		as, problem := "external", p.Error
		if p.AS != 0 {
			as = fmt.Sprint(p.AS)
		}
		if p.Link != "" && p.Link != p.Error {
			problem = strings.TrimSuffix(p.Link+"; "+p.Error, "; ")
		}
		return [][]string{row(cmp.Or(p.Address, p.Interface), as, p.State, since, hold, p.BFD, routes, p.Received, p.Sent, problem)}
	})
}

func evpnSegments(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI VTEP RD VRF HOSTS REMOTE VTEPS", func(s api.EVPNSegment) [][]string {
		return [][]string{row(s.VNI, s.VTEP, s.RD, s.VRF, s.Hosts, s.Remote, s.VTEPs)}
	})
}

func evpnEthernets(text []byte) ([][]string, error) {
	return rowsOf(text, "ESI MODE VTEPS HOSTS PORT STATE ELECTION CANDIDATES FORWARDS", func(e api.EVPNEthernetSegment) [][]string {
		var forwards []string
		for _, s := range e.Segments {
			if s.Forward {
				forwards = append(forwards, s.VNI.String())
			}
		}
		return [][]string{row(e.ESI, e.Mode, strings.Join(e.VTEPs, ","), e.Hosts, e.Port, e.State, e.Election, strings.Join(e.Candidates, ","), strings.Join(forwards, ","))}
	})
}

func evpnRoutes(text []byte) ([][]string, error) {
	return rowsOf(text, "TYPE VNI ROUTE VTEP PEER TARGETS NOTES", func(r api.EVPNRoute) [][]string {
		what := strings.Join(strings.Fields(r.MAC+" "+cmp.Or(r.Prefix, r.IP)+" "+r.ESI), " ")
		var notes []string
		note := func(is bool, format string, args ...any) {
			if is {
				notes = append(notes, fmt.Sprintf(format, args...))
			}
		}
		note(r.LeftOut != "", "left out: %s", r.LeftOut)
		note(r.Stale, "stale")
		note(r.Gateway != "", "via %s", r.Gateway)
		note(r.Sequence != 0, "sequence %d", r.Sequence)
		note(r.Sticky, "sticky")
		note(r.L3VNI != 0, "L3VNI %d", r.L3VNI)
		note(r.RouterMAC != "", "router %s", r.RouterMAC)
		vni := ""
		if r.VNI != 0 {
			vni = r.VNI.String()
		}
		return [][]string{row(r.Type, vni, what, r.VTEP, r.Peer, strings.Join(r.Targets, ","), strings.Join(notes, ", "))}
	})
}

func evpnDuplicates(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI MAC STAYS-AT", func(d api.EVPNDuplicate) [][]string {
		return [][]string{row(d.VNI, d.MAC, cmp.Or(d.VTEP, "this node"))}
	})
}
