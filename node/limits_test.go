package node

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const limited = `{
  "maxMACs": 1, "injected": 2, "events": 3, "tooBig": {"perSender": 4, "total": 5},
  "gateway": {"perSender": 6, "total": 7, "perNeighbour": 8, "waiting": 9, "queued": 10, "fragments": 11},
  "capture": {"buffer": 131072, "snapLen": 12}
}`

// What concerns the node as a whole is set under traffic, and what a file no longer says has its
// default again.
func TestLimitsOfTheNode(t *testing.T) {
	n := running(t)
	want := &Config{
		Config:  vswitch.Config{MaxMACs: 1, Injected: 2, Events: 3, TooBig: vswitch.TooBigConfig{PerSender: 4, Total: 5}},
		Gateway: l3.GatewayConfig{PerSender: 6, Total: 7, PerNeighbour: 8, Waiting: 9, Queued: 10, Fragments: 11},
		Capture: capture.Config{Buffer: 1 << 17, SnapLen: 12},
	}
	cfg, err := Parse([]byte(limited))
	must(t, err)
	if !reflect.DeepEqual(cfg, want) {
		t.Fatalf("%+v, want %+v", cfg, want)
	}
	text, err := json.Marshal(cfg)
	must(t, err)
	if again, err := Parse(text); err != nil || !reflect.DeepEqual(again, cfg) {
		t.Errorf("%v, %+v of %s", err, again, text)
	}
	runs := func(what string, c *Config) {
		t.Helper()
		if s, g, p := n.Switch().Config(), n.Gateway().Config(), n.Capture().Config(); s != c.Config || g != c.Gateway || p != c.Capture {
			t.Errorf("%s: %+v, %+v, %+v", what, s, g, p)
		}
	}
	kept := func(n *Node) int { // of ten events, by a reader who comes now
		e := n.Switch().Events()
		defer e.Close()
		for range 10 {
			n.Switch().Notify(frame.Event{Kind: frame.EventMACLearned})
		}
		ev, err := e.Next(context.Background())
		must(t, err)
		if ev.Kind == frame.EventOverflow {
			return 0
		}
		return 10
	}
	runs("new", new(Config))
	must(t, n.Apply(cfg))
	runs("set", want)
	if kept(n) != 0 {
		t.Error("three events may wait, and ten do")
	}
	wrong := setting.Clone(cfg)
	wrong.Gateway.Total, wrong.MaxMACs, wrong.Capture.Buffer = -1, 99, 0
	if n.Apply(wrong) == nil {
		t.Error("wrong, and applied")
	}
	runs("refused", want)
	must(t, n.Update(func(c *Config) error { c.Gateway.Waiting, c.Events = 0, 100; return nil }))
	want.Gateway.Waiting, want.Events = 0, 100
	runs("changed", want)
	must(t, n.Apply(new(Config)))
	runs("taken away", new(Config))
	if kept(n) != 10 {
		t.Error("ten events may wait, and do not")
	}
}

func TestLimitsWrong(t *testing.T) {
	_, err := Parse([]byte(`{
"maxMACs": -1, "injected": -2,
"events": 1,
"tooBig": {"perSender": -1, "total": 1000000001},
"gateway": {"perSender": -1, "waiting": 33554432, "queued": -3},
"capture": {"buffer": 7, "snapLen": 262145}, "log": 1}`))
	var errs setting.Errors
	if !errors.As(err, &errs) {
		t.Fatal(err)
	}
	want := []string{
		"2:12: maxMACs: -1: must be 0 or more",
		"2:28: injected: -2: must be 1 to 16777216, or 0 for 1024",
		"3:11: events: 1: must be 2 to 16777216, or 0 for 4096",
		"4:25: tooBig.perSender: -1: must be 1 to 1000000000, or 0 for 10",
		"4:38: tooBig.total: 1000000001: must be 1 to 1000000000, or 0 for 1000",
		"5:26: gateway.perSender: -1: must be 1 to 1000000000, or 0 for 10",
		"5:41: gateway.waiting: 33554432: must be 1 to 16777216, or 0 for 1024",
		"5:61: gateway.queued: -3: must be 0 or more",
		"6:23: capture.buffer: 7: must be 131072 to 1073741824, or 0 for 4194304",
		"6:37: capture.snapLen: 262145: must be 1 to 262144, or 0 for 262144",
		"6:46: log: unknown key; allowed are capture, control, datapath, events, gateway, injected, maxMACs, policies, ports, segments, tooBig, tunnels, vrfs",
	}
	if got := strings.Split(errs.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// A file with millions of elements that say nothing is refused before they take gigabytes.
func TestManyElements(t *testing.T) {
	text := []byte(`{"tunnels": [` + strings.Repeat("{},", 5<<20) + `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(text)
	runtime.ReadMemStats(&after)
	if want := "tunnels: too many elements"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%.200v, want %s", err, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<30 {
		t.Errorf("it took %d MiB", n>>20)
	}
}
