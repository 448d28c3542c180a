package rules

import (
	"encoding/json"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What an endpoint may be, by itself and as FelixConfigurations of all nodes, this one and another one say.
func TestGuards(t *testing.T) {
	mac := workload(``, `"10.0.0.1/32","fd00::1"`, `"mac":"02:00:00:00:00:01"`)
	for _, c := range []struct {
		endpoint string
		d        data
		want     string
	}{
		{workload(``, `"10.0.0.1"`, ``), nil, `{"addrs":["10.0.0.1/32"]}`},
		{mac, nil, `{"macs":["02:00:00:00:00:01"],"addrs":["10.0.0.1/32","fd00::1/128"]}`},
		{mac, data{"felixconfigurations/default": spec(`"allowIPIPPacketsFromWorkloads":true`)}, `{"macs":["02:00:00:00:00:01"],"addrs":["10.0.0.1/32","fd00::1/128"],"ipip":true}`},
		{mac, data{"felixconfigurations/default": spec(`"allowIPIPPacketsFromWorkloads":true`), "felixconfigurations/node.n": spec(`"allowIPIPPacketsFromWorkloads":false,"allowVXLANPacketsFromWorkloads":true`)},
			`{"macs":["02:00:00:00:00:01"],"addrs":["10.0.0.1/32","fd00::1/128"],"vxlan":true}`},
		{mac, data{"felixconfigurations/default": spec(`"allowIPIPPacketsFromWorkloads":true`), "felixconfigurations/node.n": spec(`"allowVXLANPacketsFromWorkloads":true`)},
			`{"macs":["02:00:00:00:00:01"],"addrs":["10.0.0.1/32","fd00::1/128"],"tunnels":true,"ipip":true,"vxlan":true}`},
		{mac, data{"felixconfigurations/node.m": spec(`"allowIPIPPacketsFromWorkloads":true`), "felixconfigurations/default": spec(`"vxlanPort":4444`)},
			`{"macs":["02:00:00:00:00:01"],"addrs":["10.0.0.1/32","fd00::1/128"],"vxlanPorts":[4444]}`},
		{workload(``, `"10.0.0.1"`, ``), data{"felixconfigurations/default": spec(`"allowIPIPPacketsFromWorkloads":true`),
			"felixconfigurations/a": `{"metadata":{"creationTimestamp":"2026-02-01T00:00:00Z"},"spec":{"nodeSelector":"rack == 'r1'","allowIPIPPacketsFromWorkloads":true,"vxlanPort":1}}`,
			"felixconfigurations/b": `{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeSelector":"has(rack)","allowIPIPPacketsFromWorkloads":false}}`,
			"felixconfigurations/c": `{"metadata":{"creationTimestamp":"2025-01-01T00:00:00Z"},"spec":{"nodeSelector":"rack == 'r2'","vxlanPort":2}}`,
			"felixconfigurations/d": `{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"vxlanPort":3}}`,
			"nodes/n":               `{"metadata":{"labels":{"rack":"r1"}}}`}, `{"addrs":["10.0.0.1/32"]}`},
		{workload(``, `"10.0.0.1"`, ``), data{"felixconfigurations/a": spec(`"nodeSelector":"has(rack)","allowIPIPPacketsFromWorkloads":false,"vxlanPort":1`), "felixconfigurations/node.n": spec(`"allowIPIPPacketsFromWorkloads":true`),
			"felixconfigurations/b": spec(`"nodeSelector":"all()","vxlanPort":2`), "nodes/n": `{"metadata":{"labels":{"rack":"r1"}}}`}, `{"addrs":["10.0.0.1/32"],"ipip":true,"vxlanPorts":[1]}`},
		{workload(``, `"10.0.0.1"`, ``), data{"felixconfigurations/a": spec(`"nodeSelector":"all()","allowIPIPPacketsFromWorkloads":true`)}, `{"addrs":["10.0.0.1/32"]}`},
		{workload(``, `"10.0.0.1"`, `"allowSpoofedSourcePrefixes":["192.0.2.9/24"]`), data{"felixconfigurations/default": spec(`"workloadSourceSpoofing":"Any"`)}, `{"addrs":["10.0.0.1/32","192.0.2.0/24"]}`},
	} {
		e := of(t, Compile("n", base.and(data{"workloadendpoints/" + server: c.endpoint}).and(c.d).store()), server)
		check.Equal(t, c.endpoint, string(check.Must(json.Marshal(e.Guard))(t)), c.want)
		check.OK(t, e.Guard.Check())
		check.Equal(t, "closed", e.Closed, "")
	}
}
