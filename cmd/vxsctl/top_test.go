package main

import (
	"flag"
	"fmt"
	"os"
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
	want := `03:04:07  1 idle
PORT  TYPE  RX/s  RX-BIT/s  TX/s  TX-BIT/s  RX-DROPS/s  TX-DROPS/s
tap0  tap   100   4.00M     4     0         5           0

DROPPED  DIRECTION  REASON   FRAMES/s  FRAMES
tap0     rx         short    5         12
vx       tx         no-peer  2         4
`
	if got := string(now.page(old, 0, 0)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Counters that begin anew are no rate.
	if got := string(old.page(now, 0, 0)); got != "03:04:05  1 idle\nPORT  TYPE  RX/s  RX-BIT/s  TX/s  TX-BIT/s  RX-DROPS/s  TX-DROPS/s\n" {
		t.Errorf("%s", got)
	}
}

// busy returns two views of a node with many busy ports, idle ones and drops.
func busy() (old, now view) {
	old.at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now.at = old.at.Add(time.Second)
	for i := range 30 {
		p := api.Port{Port: i + 1, Name: fmt.Sprintf("tap-of-guest-%02d", i), Type: "tap", RxDrops: map[string]uint64{}}
		old.ports = append(old.ports, p)
		if i%3 > 0 {
			p.Rx = frame.Count{Frames: uint64(i * 100), Bytes: uint64(i * 100_000)}
			p.Tx = frame.Count{Frames: uint64(i * 50), Bytes: uint64(i * 10_000)}
			p.RxDrops = map[string]uint64{"storm": uint64(i)}
		}
		now.ports = append(now.ports, p)
		old.drops = append(old.drops, api.Drop{Where: p.Name, Direction: "rx", Reason: "storm"})
		now.drops = append(now.drops, api.Drop{Where: p.Name, Direction: "rx", Reason: "storm", Frames: p.RxDrops["storm"]})
	}
	return old, now
}

// A page is as its golden file, and fits its terminal.
func TestScreens(t *testing.T) {
	old, now := busy()
	for _, size := range [][2]int{{60, 12}, {200, 50}, {80, 24}, {20, 4}, {5, 1}} {
		cols, lines := size[0], size[1]
		got := string(now.page(old, cols, lines))
		file := fmt.Sprintf("testdata/top%dx%d.txt", cols, lines)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got != string(want) {
			t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
		}
		rows := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if len(rows) > lines {
			t.Errorf("%d lines on %d", len(rows), lines)
		}
		for _, r := range rows {
			if len(r) > cols {
				t.Errorf("%d columns on %d: %s", len(r), cols, r)
			}
		}
	}
}

var update = flag.Bool("update", false, "write the golden files")

func TestUnits(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1.00k", 1_500_000: "1.50M", 9_876_543_210: "9.88G", 1 << 63: "9223372.04T"} {
		if got := units(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
