package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

var bgpLists = map[string]sublist{
	"peers":  {"/v1/bgp/peers", bgpPeers, nil},
	"routes": {"/v1/bgp/routes", bgpRoutes, []string{"peer"}},
}

func bgpTable(text []byte) ([][]string, error) {
	var b api.BGP
	err := json.Unmarshal(text, &b)
	rows := [][]string{row("WHAT", "VALUE"), row("state", lasting(b.State, b.Since, b.Again)), row("error", b.Error), row("AS", b.AS), row("router ID", b.RouterID), row("VRF", b.VRF),
		row("peers", b.Peers), row("sessions", b.Established), row("announced", strings.Join(b.Announced, ",")), row("routes of peers", b.Received), row("accepted", b.Accepted)}
	for _, reason := range slices.Sorted(maps.Keys(b.Refused)) {
		rows = append(rows, row("refused, "+reason, b.Refused[reason]))
	}
	if b.RowError != "" {
		rows = append(rows, row("refused rows", b.RowError))
	}
	return rows, err
}

func bgpPeers(text []byte) ([][]string, error) {
	return rowsOf(text, "PEER AS STATE SINCE HOLD BFD ROUTES ACCEPTED REFUSED RECEIVED SENT ERROR", func(p api.BGPPeer) [][]string {
		since, hold := "-", "-"
		if p.Since != nil {
			since = p.Since.Local().Format("2006-01-02T15:04:05")
		}
		if p.HoldTime > 0 {
			hold = fmt.Sprint(time.Duration(p.HoldTime * float64(time.Second)))
		}
		var refused []string
		for _, reason := range slices.Sorted(maps.Keys(p.Refused)) {
			refused = append(refused, fmt.Sprintf("%s:%d", reason, p.Refused[reason]))
		}
		return [][]string{row(p.Address, p.AS, p.State, since, hold, p.BFD, p.Routes, p.Accepted, strings.Join(refused, ","), p.Received, p.Sent, p.Error)}
	})
}

func bgpRoutes(text []byte) ([][]string, error) {
	return rowsOf(text, "PREFIX NEXT-HOP PEER VIA NOTES", func(r api.BGPRoute) [][]string {
		var notes []string
		if r.Refused != "" {
			notes = append(notes, "refused: "+r.Refused)
		}
		if r.PathID != 0 {
			notes = append(notes, fmt.Sprint("path ", r.PathID))
		}
		return [][]string{row(r.Prefix, r.NextHop, r.Peer, r.Via, strings.Join(notes, ", "))}
	})
}
