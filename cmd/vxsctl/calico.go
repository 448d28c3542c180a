package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
)

func calicoTable(text []byte) ([][]string, error) {
	var c api.Calico
	err := json.Unmarshal(text, &c)
	rows := [][]string{row("WHAT", "VALUE"), row("state", lasting(c.State, c.Since, c.Again)), row("error", c.Error), row("node", c.Node), row("VRF", c.VRF)}
	if c.AS != 0 {
		rows = append(rows, row("AS", c.AS), row("router ID", c.RouterID), row("peers", c.Peers), row("sessions", c.Established))
	}
	rows = append(rows, row("addresses", strings.Join(c.Addresses, ", ")), row("tunnels", strings.Join(c.Tunnels, ", ")))
	if len(c.MACs) > 0 {
		rows = append(rows, row("MAC for VXLAN", strings.Join(c.MACs, ", ")))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Resources)) {
		rows = append(rows, row(kind, c.Resources[kind]))
	}
	rows = append(rows, row("routes of blocks", c.Routes))
	for _, w := range c.Workloads {
		rows = append(rows, workloadRows(&w)...)
	}
	for _, p := range c.Problems {
		rows = append(rows, row("not done, "+p.Resource, p.Why))
	}
	if c.More > 0 {
		rows = append(rows, row("not done, more", c.More))
	}
	if c.RowError != "" {
		rows = append(rows, row("refused rows", c.RowError))
	}
	return rows, err
}

// workloadRows tells what a port of a workload has in force, and what of its policies is not done.
func workloadRows(w *api.CalicoWorkload) (rows [][]string) {
	what := "workload " + w.Port
	has := w.Endpoint + ": " + strings.Join(w.Policies, ", ")
	switch {
	case w.Error != "":
		has = "closed: " + w.Error
	case w.Closed != "":
		has = "closed: " + w.Closed
	case w.Endpoint == "":
		has = "as before"
	case len(w.Policies) == 0:
		has = w.Endpoint + ": no policies"
	}
	if !w.There {
		has += " (no such port)"
	}
	rows = append(rows, row(what, has))
	for _, cause := range slices.Sorted(maps.Keys(w.Dropped)) {
		rows = append(rows, row("dropped, "+what, fmt.Sprint(cause, ": ", w.Dropped[cause])))
	}
	for _, n := range w.NotDone {
		rows = append(rows, row("not done, "+what, n))
	}
	return rows
}
