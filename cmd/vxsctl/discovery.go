package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/api"
)

var discoveryLists = map[string]sublist{
	"neighbours": {"/v1/discovery/neighbours", discoveryNeighbours, nil},
	"hosts":      {"/v1/discovery/hosts", discoveryHosts, nil},
}

var upDown = map[bool]string{true: "up", false: "down"}

func discoveryTable(text []byte) ([][]string, error) {
	var d api.Discovery
	err := json.Unmarshal(text, &d)
	rows := [][]string{row("WHAT", "VALUE"), row("state", lasting(d.State, d.Since, d.Again)), row("error", d.Error), row("address", d.Local), row("network", d.Network)}
	for _, x := range d.Servers {
		rows = append(rows, row("server "+x.Address, fmt.Sprintf("%s, lists %d", upDown[x.Up], x.Clients)))
	}
	if r := d.Registry; r != nil {
		rows = append(rows, row("etcd", fmt.Sprintf("%s, lists %d", upDown[r.Up], r.VTEPs)), row("etcd error", r.Error))
	}
	rows = append(rows, row("clients of this node", d.Clients), row("neighbours up", fmt.Sprintf("%d of %d", d.Up, d.Neighbours)),
		row("VTEPs that advertise", d.Owners), row("advertisements", d.Advertisements))
	for _, x := range d.Segments {
		rows = append(rows, row(fmt.Sprintf("vni %v", x.VNI), fmt.Sprintf("other VTEPs %d, hosts %d, remote %d", x.VTEPs, x.Hosts, x.Remote)))
	}
	rows = append(rows, row("received", fmt.Sprintf("%d, %d bytes", d.Received, d.ReceivedBytes)), row("sent", fmt.Sprintf("%d, %d bytes", d.Sent, d.SentBytes)))
	for _, reason := range slices.Sorted(maps.Keys(d.Refused)) {
		rows = append(rows, row("refused, "+reason, d.Refused[reason]))
	}
	if d.RowError != "" {
		rows = append(rows, row("refused rows", d.RowError))
	}
	return rows, err
}

func discoveryNeighbours(text []byte) ([][]string, error) {
	return rowsOf(text, "VTEP NAME STATE SINCE FROM", func(n api.DiscoveryNeighbour) [][]string {
		from := "configuration"
		if n.Listed {
			from = "list"
		}
		return [][]string{row(n.Address, n.Name, upDown[n.Up], n.Since.Local().Format("2006-01-02T15:04:05"), from)}
	})
}

func discoveryHosts(text []byte) ([][]string, error) {
	return rowsOf(text, "VNI MAC VTEP KIND MOVES", func(h api.DiscoveryHost) [][]string {
		return [][]string{row(h.VNI, h.MAC, h.VTEP, h.Kind, h.Moves)}
	})
}
