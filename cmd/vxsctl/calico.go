package main

import (
	"encoding/json"
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
