package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// manySegments returns a configuration as that of a pair, with more segments: those with numbers from first to last. Each has the tunnel
// and a peer; one in three is on a VLAN of a trunk, one in a hundred has a gateway, and those for which slow is true another ageing.
func manySegments(socket string, first, last int, slow func(n int) bool) []byte {
	text := new(bytes.Buffer)
	for n := first; n < last; n++ {
		fmt.Fprintf(text, `,{"vni": %d, "tunnel": "vx", "flood": ["10.0.0.2"]`, 1000+n*1500)
		if n%3 == 0 {
			fmt.Fprintf(text, `, "members": [{"port": "tap1", "vlan": %d}]`, 1+n/3)
		}
		if n%100 == 0 {
			fmt.Fprintf(text, `, "gateway": {"vrf": "red", "addresses": ["10.%d.%d.1/24"], "mac": "02:00:00:00:00:fe"}`, 1+n/100/256, n/100%256)
		}
		if slow(n) {
			text.WriteString(`, "ageing": "60s"`)
		}
		text.WriteString("}\n")
	}
	all := strings.Replace(configOf("10.0.0.1", "10.0.0.2"), `}],
  "control"`, `}`+text.String()+`],
  "control"`, 1)
	if first < last {
		all = strings.Replace(all, `"ports": [`, `"vrfs": [{"name": "red"}], "ports": [{"name": "tap1", "mtu": 1450}, `, 1)
	}
	return []byte(strings.ReplaceAll(all, "SOCKET", socket))
}

// Ten thousand segments come, change and go by the API, while hosts of another segment talk and lose nothing. What a dry run
// says is what happens.
func TestManySegments(t *testing.T) {
	p := newPair(t)
	p.ga.Ping("192.168.7.2", 1)
	c, ctx := api.NewClient(p.a.socket), t.Context()
	before := check.Must(tool.Resident(p.a.proc.PID()))(t)
	stop := p.ga.Pinging("192.168.7.2")
	never := func(int) bool { return false }
	for _, step := range []struct {
		name        string
		config      []byte
		differences int
	}{
		{"10,000 added", manySegments(p.a.socket, 0, 10000, never), 10000 + 2}, // a port and a VRF
		{"1,000 added, 1,000 deleted, 1,000 changed", manySegments(p.a.socket, 1000, 11000, func(n int) bool { return n%9 == 0 && n < 10000 }), 3000},
		{"all deleted", manySegments(p.a.socket, 0, 0, never), 10000 + 2},
	} {
		begin := time.Now()
		dry := check.Must(c.SetConfig(ctx, step.config, &api.SetOptions{DryRun: true}))(t)
		checked := time.Now()
		done, err := c.SetConfig(ctx, step.config, nil)
		must(t, err)
		t.Logf("%s: %d bytes; dry run %v, done %v", step.name, len(step.config), checked.Sub(begin), time.Since(checked))
		if len(done.Differences) != step.differences || !done.Applied || dry.Applied || !reflect.DeepEqual(dry.Differences, done.Differences) {
			t.Errorf("%s: %d differences, in a dry run %d, want %d", step.name, len(done.Differences), len(dry.Differences), step.differences)
		}
		if again, err := c.SetConfig(ctx, step.config, &api.SetOptions{DryRun: true}); err != nil || len(again.Differences) != 0 {
			t.Errorf("%s: %d differences remain, %v", step.name, len(again.Differences), err)
		}
		p.tables(t, c, bytes.Count(step.config, []byte(`"vni":`)))
	}
	if sent, answered := stop(); sent < 50 || answered != sent {
		t.Errorf("%d of %d pings answered", answered, sent)
	}
	if after := check.Must(tool.Resident(p.a.proc.PID()))(t); after > before+300 {
		t.Errorf("%.0f MiB, before %.0f", after, before)
	}
}

// tables reads what lists segments.
func (p *pair) tables(t *testing.T, c *api.Client, want int) {
	t.Helper()
	ctx := t.Context()
	begin := time.Now()
	segments := check.Must(c.Segments(ctx, nil))(t)
	floods := check.Must(c.Floods(ctx))(t)
	if len(segments) != want || len(floods) != want {
		t.Errorf("%d segments, %d flood lists, want %d", len(segments), len(floods), want)
	}
	text, _, err := c.Config(ctx)
	must(t, err)
	var cfg struct{ Segments []json.RawMessage }
	if must(t, json.Unmarshal(text, &cfg)); len(cfg.Segments) != want {
		t.Errorf("a configuration of %d segments, want %d", len(cfg.Segments), want)
	}
	t.Logf("tables of %d segments: %v", want, time.Since(begin))
	for _, line := range strings.Split(p.a.ctl("port"), "\n") {
		if len(line) > 1<<20 {
			t.Errorf("a line of %d characters", len(line))
		}
	}
}
