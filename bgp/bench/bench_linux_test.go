package bench

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var results = flag.String("bgp.results", "", "folder to write bgp.txt, bgp.json and bgp.svg to; without it the numbers are small")

// soon is how long anything is waited for.
const soon = 3 * time.Minute

// The hosts, and the AS of both.
var (
	feederAddr = netip.MustParseAddr("192.0.2.2")
	ourAddr    = netip.MustParseAddr("192.0.2.1") // of the node
	leafAddr   = netip.MustParseAddr("192.0.2.101")
)

const as = 64512

// block returns block i of the feeder, a /26 of 10.0.0.0/8.
func block(i int) netip.Prefix {
	n := 10<<24 + i<<6
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), 26)
}

// TestMain is a node, or gobgp alone, if the environment says so.
func TestMain(m *testing.M) {
	if name := os.Getenv(program); name != "" {
		if err := serve(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A contender is a leaf that hears the feeder.
type contender interface {
	wait(first, n int, there bool) time.Time // when n blocks from the first on are there, or none of them
	pid() int
}

var contenders = []struct {
	name  string
	start func(*testing.T, *netns.Host) contender
}{{"BIRD", startBIRD}, {"vxswitch", startOurs}, {"gobgp alone", startGoBGP}}

// A size says how much is measured.
type size struct {
	routes       []int
	rounds, ones int
}

var (
	full  = size{routes: []int{1_000, 5_000, 20_000, 200_000}, rounds: 3, ones: 50}
	small = size{routes: []int{200, 1_000}, rounds: 1, ones: 3}
)

// TestBench measures everything. It does not compare the figures with what is wanted, but each contender must have all of them.
func TestBench(t *testing.T) {
	netns.RequireRoot(t)
	s := small
	if *results != "" {
		s = full
	}
	var names []string
	for _, c := range contenders {
		names = append(names, c.name)
	}
	b := &bench{tool.NewReport(names, "BIRD"), s, map[string]float64{}}
	for round := range s.rounds {
		for _, c := range tool.Rotate(contenders, round) {
			for _, n := range s.routes {
				t.Run(fmt.Sprintf("%d-%s-%d", round+1, c.name, n), func(t *testing.T) { b.run(t, c.name, n, c.start) })
			}
		}
	}
	if t.Failed() {
		return
	}
	table, err := b.End(*results, "bgp", "CPU", "memory")
	t.Logf("\n%s", table)
	if err != nil {
		t.Error(err)
	}
}

type bench struct {
	*tool.Report
	size
	base map[string]float64 // memory with the fewest routes, by contender
}

// run measures a number of routes.
func (b *bench) run(t *testing.T, who string, routes int, start func(*testing.T, *netns.Host) contender) {
	n := netns.New(t)
	far, leaf := n.Host("feeder"), n.Router("leaf")
	n.Link(far, feederAddr.String()+"/24", leaf, leafAddr.String()+"/24")
	far.TxOff("eth0")
	leaf.TxOff("eth0")
	leaf.Ready()
	f := startFeeder(t, far, routes)
	c := start(t, leaf)
	name := strconv.Itoa(routes) + " routes: "
	f.wake()
	done := c.wait(0, routes, true)
	b.Add(name+"import", "s", "ratio at most 1.00", tool.Median, who, done.Sub(f.established()).Seconds())
	b.Add(name+"CPU time of it", "s", "", tool.Median, who, check.Must(tool.CPU(c.pid()))(t))
	time.Sleep(time.Second)
	rss := check.Must(tool.Resident(c.pid()))(t)
	b.Add(name+"resident", "MiB", "", tool.Median, who, rss)
	first, most := b.routes[0], b.routes[len(b.routes)-1]
	switch routes {
	case first:
		b.base[who] = rss
	case most:
		b.Add("memory for a route", "B", "ratio at most 2.00", tool.Median, who, (rss-b.base[who])*(1<<20)/float64(most-first))
		b.single(who, f, c)
	}
	begun := time.Now()
	f.set("blocks", false)
	b.Add(name+"withdrawal", "s", "ratio at most 1.00", tool.Median, who, c.wait(0, routes, false).Sub(begun).Seconds())
}

// single withdraws the block behind all others, and announces it again.
func (b *bench) single(who string, f *feeder, c contender) {
	last := b.routes[len(b.routes)-1]
	var gone, back []float64
	for range b.ones {
		for _, is := range []bool{true, false} {
			begun := time.Now()
			f.set("one", is)
			took := c.wait(last, 1, is).Sub(begun).Seconds() * 1000
			if is {
				back = append(back, took)
			} else {
				gone = append(gone, took)
			}
		}
	}
	b.Add("one route comes beside all others, p50", "ms", "ratio at most 1.00", tool.Median, who, back...)
	b.Add("one route goes beside all others, p50", "ms", "ratio at most 1.00", tool.Median, who, gone...)
	b.Add("one route goes beside all others, p99", "ms", "ratio at most 1.00", 0.99, who, gone...)
}
