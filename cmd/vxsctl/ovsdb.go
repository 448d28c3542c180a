package main

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/api"
)

var ovsdbLists = map[string]sublist{"left-out": {"/v1/ovsdb/leftout", ovsdbLeftOut, nil}}

func ovsdbTable(text []byte) ([][]string, error) {
	var o api.OVSDB
	err := json.Unmarshal(text, &o)
	state := lasting(o.State, o.Since, o.Again)
	if o.Stale {
		state += ", stale"
	}
	rows := [][]string{row("WHAT", "VALUE"), row("state", state), row("error", o.Error), row("target", o.Target), row("switch", o.Switch),
		row("logical switches", o.Segments), row("rows of the controller", o.Rows), row("hosts of this node", o.Hosts)}
	for _, reason := range slices.Sorted(maps.Keys(o.LeftOut)) {
		rows = append(rows, row("left out, "+reason, o.LeftOut[reason]))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Refused)) {
		rows = append(rows, row("refused, "+name, o.Refused[name]))
	}
	if o.RowError != "" {
		rows = append(rows, row("refused rows", o.RowError))
	}
	rows = append(rows, row("transactions", o.Transactions), row("failed transactions", o.Failed))
	if o.WriteError != "" {
		rows = append(rows, row("last transaction", o.WriteError))
	}
	return rows, err
}

func ovsdbLeftOut(text []byte) ([][]string, error) {
	return rowsOf(text, "TABLE UUID REASON", func(r api.OVSDBRow) [][]string { return [][]string{row(r.Table, r.UUID, r.Reason)} })
}
