package main

import (
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

func TestRates(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := api.Port{Port: 1, Name: "tap0", Type: "tap", Rx: frame.Count{Frames: 100, Bytes: 1000}, RxDrops: map[string]uint64{"short": 2}}
	old := view{at: at, ports: []api.Port{p}, drops: []api.Drop{{Where: "tap0", Direction: "rx", Reason: "short", Frames: 2}}}
	p.Rx, p.RxDrops = frame.Count{Frames: 300, Bytes: 1_001_000}, map[string]uint64{"short": 12}
	p.Tx.Frames = 7
	now := view{at: at.Add(2 * time.Second), ports: []api.Port{p, {Port: 2, Name: "new", Type: "tap", Rx: frame.Count{Frames: 50}}},
		drops: []api.Drop{{Where: "tap0", Direction: "rx", Reason: "short", Frames: 12}, {Where: "vx", Direction: "tx", Reason: "no-peer", Frames: 4}}}
	want := `03:04:07
PORT  TYPE  RX/s  RX-BIT/s  TX/s  TX-BIT/s  RX-DROPS/s  TX-DROPS/s
tap0  tap   100   4.00M     4     0         5           0
new   tap   0     0         0     0         0           0

DROPPED  DIRECTION  REASON   FRAMES/s  FRAMES
tap0     rx         short    5         12
vx       tx         no-peer  2         4
`
	if got := string(now.since(old)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Counters that begin anew are no rate.
	if got := string(old.since(now)); strings.Contains(got, "18446744073") {
		t.Errorf("%s", got)
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1.00k", 1_500_000: "1.50M", 9_876_543_210: "9.88G", 1 << 63: "9223372.04T"} {
		if got := units(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
