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

var flannelLists = map[string]sublist{"leases": {"/v1/flannel/leases", flannelLeases, nil}}

// lasting returns the state of a section, since when, and when it is tried again.
func lasting(state string, since time.Time, again *time.Time) string {
	state += " since " + since.Local().Format(time.DateTime)
	if again != nil {
		state += ", again at " + again.Local().Format(time.DateTime)
	}
	return state
}

func flannelTable(text []byte) ([][]string, error) {
	var f api.Flannel
	err := json.Unmarshal(text, &f)
	at := func(t *time.Time) string {
		if t == nil {
			return "-"
		}
		return t.Local().Format(time.DateTime)
	}
	expires := "never"
	if f.Expires != nil {
		expires = at(f.Expires)
	}
	rows := [][]string{row("WHAT", "VALUE"), row("state", lasting(f.State, f.Since, f.Again)), row("error", f.Error), row("mode", f.Mode), row("network", f.Network), row("backend", f.Backend)}
	if l := f.Lease; l != nil {
		rows = append(rows, row("subnet", l.Subnet), row("public address", strings.Join(l.PublicIPs, ", ")), row("MAC", strings.Join(l.MACs, ", ")),
			row("renewed", at(f.Renewed)), row("expires", expires))
	}
	rows = append(rows, row("leases of others", f.Leases))
	for _, reason := range slices.Sorted(maps.Keys(f.Refused)) {
		rows = append(rows, row("refused, "+reason, f.Refused[reason]))
	}
	return append(rows, row("misses", f.Misses), row("misses without a lease", f.Unanswered)), err
}

func flannelLeases(text []byte) ([][]string, error) {
	return rowsOf(text, "SUBNET PUBLIC MAC WAY REFUSED", func(l api.FlannelLease) [][]string {
		var why []string
		for _, r := range l.Refused {
			why = append(why, fmt.Sprintf("%s: %s", r.Reason, r.Detail))
		}
		return [][]string{row(l.Subnet, strings.Join(l.PublicIPs, ","), strings.Join(l.MACs, ","), l.Way, strings.Join(why, "; "))}
	})
}
