package discovery

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

var results = flag.String("discovery.results", "", "folder to write discovery.txt and discovery.svg to; without it there are few VTEPs")

// A cost is what a change costs, or a start: datagrams without headers of UDP, and the time until all know.
type cost struct {
	messages, bytes int
	time            time.Duration
}

func (c cost) String() string {
	return fmt.Sprintf("%d\t%d\t%.1f", c.messages, c.bytes, float64(c.time)/float64(time.Millisecond))
}

// TestConverge has VTEPs find each other and one of them get a host, and counts what is sent. A datagram takes up to a millisecond, and at
// least half of one in the simulation of link states. All time is simulated, so that the machine does not matter.
func TestConverge(t *testing.T) {
	sizes, many := []int{3, 10}, 300
	if *results != "" {
		sizes, many = []int{3, 30, 300}, 10_000
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "whole Speakers with their nodes, in memory\n\nVTEPs\tstart: messages\tbytes\tms\tchange: messages\tbytes\tms\tat rest: messages/s of each\tbytes/s\n")
	var starts, changes [][2]float64
	for _, n := range sizes {
		synctest.Test(t, func(t *testing.T) {
			start, change, rest := whole(t, n)
			fmt.Fprintf(w, "%d\t%v\t%v\t%.1f\t%.0f\n", n, start, change, rest[0], rest[1])
			starts, changes = append(starts, [2]float64{float64(n), float64(start.messages)}), append(changes, [2]float64{float64(n), float64(change.messages)})
			if change.messages != 2*(n-1) {
				t.Errorf("%d VTEPs: a change costs %d messages, want %d", n, change.messages, 2*(n-1))
			}
		})
	}
	w.Flush()
	fmt.Fprint(w, "\none change in link states alone, by simulation\n\nVTEPs\tlinks\tlost\tmessages\tbytes\tms until all know\n")
	var links [][2]float64
	for _, x := range []struct {
		n    int
		mesh bool
		loss float64
	}{{3, true, 0}, {30, true, 0}, {300, true, 0}, {many, true, 0}, {many, true, 0.01}, {3, false, 0}, {30, false, 0}, {300, false, 0}} {
		c := alone(x.n, x.mesh, x.loss)
		kind := "single"
		if x.mesh {
			kind = "mesh"
		} else {
			links = append(links, [2]float64{float64(x.n), float64(c.messages)})
		}
		if x.mesh && x.n == many && x.loss == 0 {
			changes = append(changes, [2]float64{float64(x.n), float64(c.messages)})
		}
		fmt.Fprintf(w, "%d\t%s\t%.0f%%\t%v\n", x.n, kind, 100*x.loss, c)
	}
	w.Flush()
	t.Log("\n" + table.String())
	if *results != "" {
		check.OK(t, os.WriteFile(filepath.Join(*results, "discovery.txt"), []byte(table.String()), 0o644))
		check.OK(t, os.WriteFile(filepath.Join(*results, "discovery.svg"), []byte(plot(starts, changes, links)), 0o644))
	}
}

// whole measures Speakers.
func whole(t *testing.T, n int) (start, change cost, rest [2]float64) {
	f := newFabric(t, n, 1, 2)
	defer f.close()
	var sum cost
	var of cost // of the advertisement that changes
	count := false
	f.net.heard = func(from, _ netip.Addr, b []byte) {
		sum.messages, sum.bytes = sum.messages+1, sum.bytes+len(b)
		if !count {
			return
		}
		_, m, err := wire.Parse(b[seal.Overhead-32 : len(b)-32])
		check.OK(t, err)
		switch m := m.(type) {
		case state.Update:
			if m.Owner == addr(n-1) && len(m.Hosts) == 2 {
				of.messages, of.bytes = of.messages+1, of.bytes+len(b)
			}
		case state.Ack:
			if m.Owner == addr(n-1) {
				of.messages, of.bytes = of.messages+1, of.bytes+len(b)
			}
		}
	}
	counted := func() (c cost) { // since it was asked last
		f.net.mu.Lock()
		defer f.net.mu.Unlock()
		c, sum = sum, cost{}
		return c
	}
	began := time.Now()
	f.start()
	f.until(func(l *leaf) bool { _, owners := l.speaker.state.Adverts(); return owners == n })
	took := time.Since(began)
	start = counted()
	start.time = took
	time.Sleep(45 * time.Second) // the servers are young no more
	counted()
	time.Sleep(25 * time.Second)
	all := counted()
	rest = [2]float64{float64(all.messages) / 25 / float64(n), float64(all.bytes) / 25 / float64(n)}
	time.Sleep(3 * time.Second)
	mac := frame.MAC{2, 0, 0, 0, 1, 1}
	began = time.Now()
	f.net.mu.Lock()
	count = true
	f.net.mu.Unlock()
	(&host{mac: mac}).move(f.leaves[n-1], f.leaves[n-1].ports[0])
	f.until(func(l *leaf) bool { _, ok := l.speaker.state.Best(100, mac); return ok })
	took = time.Since(began)
	time.Sleep(20 * time.Millisecond)
	f.net.mu.Lock()
	defer f.net.mu.Unlock()
	of.time = took
	return start, of, rest
}

// until waits until all leaves are as they are wanted.
func (f *fabric) until(ok func(l *leaf) bool) {
	for _, l := range f.leaves {
		for {
			l.speaker.mu.Lock()
			is := ok(l)
			l.speaker.mu.Unlock()
			if is {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// alone has one of n link states change: all have links to all, in a mesh or singly.
func alone(n int, mesh bool, loss float64) (c cost) {
	r := rand.New(rand.NewPCG(uint64(n), 9))
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	nodes := make([]*state.State, n)
	for i := range nodes {
		nodes[i] = state.New(at(i), 1)
	}
	for i := range nodes {
		for j := range nodes {
			if i != j && (!mesh || i == 0 || j == 0) { // others of a mesh tell each other nothing of this change
				nodes[i].Adjacent(0, at(j), mesh)
			}
		}
	}
	for _, s := range nodes { // all is known of nothing
		for _, m := range s.Poll(0) {
			if sum, ok := m.Message.(state.Summary); ok {
				s.Receive(0, m.To, state.Want{Epoch: sum.Epoch})
			}
		}
	}
	nodes[0].Add(state.Host{VNI: 100})
	nodes[0].Add(state.Host{VNI: 100, MAC: frame.MAC{2, 0, 0, 0, 1, 1}})
	var fly flights
	now, known := time.Duration(0), 1
	poll := func(i int) {
		for _, m := range nodes[i].Poll(now) {
			switch m.Message.(type) {
			case state.Update, state.Ack:
				c.messages++
				c.bytes += len(wire.Append(nil, 0, m.Message)) + seal.Overhead
			}
			if a := m.To.As4(); r.Float64() >= loss {
				heap.Push(&fly, flight{now + time.Millisecond/2 + time.Duration(r.Int64N(int64(time.Millisecond/2))), i, int(a[1])<<16 | int(a[2])<<8 | int(a[3]), m.Message})
			}
		}
	}
	poll(0)
	for tick := state.Retransmit; known < n || len(fly) > 0; {
		if len(fly) == 0 || fly[0].at > tick {
			now = tick
			for i := range nodes {
				poll(i)
			}
			tick += state.Retransmit
			continue
		}
		f := heap.Pop(&fly).(flight)
		now = f.at
		before, _ := nodes[f.to].Adverts()
		nodes[f.to].Receive(now, at(f.from), f.m)
		if after, _ := nodes[f.to].Adverts(); after > before {
			known++
			c.time = now
		}
		poll(f.to)
	}
	return c
}

// A flight is a message under way, and flights have the next one first.
type flight struct {
	at       time.Duration
	from, to int
	m        state.Message
}

type flights []flight

func (f flights) Len() int           { return len(f) }
func (f flights) Less(i, j int) bool { return f[i].at < f[j].at }
func (f flights) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)        { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	x := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return x
}

// plot draws messages by VTEPs.
func plot(starts, changes, links [][2]float64) string {
	x, y := tool.Axis{Low: 3, High: 10_000, From: 70, To: 560}, tool.Axis{Low: 1, High: 1_000_000, From: 360, To: 60}
	var b strings.Builder
	for _, v := range []float64{3, 30, 300, 10_000} {
		fmt.Fprintf(&b, `<text x="%.0f" y="380" text-anchor="middle">%.0f</text>`+"\n", x.At(v), v)
	}
	for v := 1.0; v <= 1_000_000; v *= 10 {
		fmt.Fprintf(&b, `<text x="60" y="%.0f" text-anchor="end">%.0f</text>`+"\n", y.At(v)+4, v)
	}
	for _, l := range []struct {
		name, colour string
		points       [][2]float64
	}{{"start", "#888888", starts}, {"change, mesh", "#1f77b4", changes}, {"change, single links", "#d62728", links}} {
		var at [][2]float64
		for _, p := range l.points {
			at = append(at, [2]float64{x.At(p[0]), y.At(p[1])})
		}
		last := at[len(at)-1]
		fmt.Fprintf(&b, `%s<text x="%.0f" y="%.0f" fill="%s">%s</text>`+"\n", tool.Line(at, l.colour, ""), min(last[0]+5, 480), last[1]-6, l.colour, l.name)
	}
	return tool.SVG(640, 400, 12, []string{"discovery: messages by the number of VTEPs; simulated, see discovery.txt"}, b.String())
}
