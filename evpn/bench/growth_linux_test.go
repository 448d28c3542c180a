package bench

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TestGrowth measures what a route costs as their number grows, and how long frames between two ports of the segment that
// the routes are for take meanwhile: those that the node's workers pass on, and those of a flow that the kernel carries.
// FRR hears the same routes.
func TestGrowth(t *testing.T) {
	netns.RequireRoot(t)
	g := &growth{tool.NewReport(nil)}
	sizes, rounds := []int{500, 1000}, 1
	if *results != "" {
		sizes, rounds = []int{125_000, 250_000, 500_000, 1_000_000}, 3
	}
	for _, n := range sizes {
		g.Contenders = append(g.Contenders, strconv.Itoa(n))
	}
	for round := range rounds {
		for i, n := range sizes {
			t.Run(fmt.Sprintf("%d-%s", round+1, g.Contenders[i]), func(t *testing.T) {
				g.run(t, g.Contenders[i], n)
				g.copied(t, g.Contenders[i], n)
				g.frr(t, g.Contenders[i], n)
			})
		}
	}
	if t.Failed() {
		return
	}
	table, err := g.End(*results, "evpn-growth", "a frame", "resident")
	t.Logf("\n%s", table)
	if err != nil {
		t.Error(err)
	}
}

// ahead starts a program that gets a processor before those that send routes: they are not on the hosts of real nodes.
var ahead = []string{"nice", "-n", "-15", "env"}

type growth struct{ *tool.Report }

func (g *growth) run(t *testing.T, who string, routes int) {
	l := offering(t, routes)
	defer l.stop()
	c := startNode(t, l.leaf, append(ahead, datapath+"=kernel")...)
	defer c.stop()
	p := startProbe(t, l.leaf, portA, portB)
	defer p.stop()

	frames := func(when string) {
		g.frames(who, "a frame, "+when, p.took(byUser))
		g.frames(who, "a flow, "+when, p.took(byKernel))
	}
	c.carried(100)
	p.took(byUser)
	p.took(byKernel)
	time.Sleep(2 * time.Second)
	frames("no routes yet")
	stop := busy(t)
	time.Sleep(2 * time.Second)
	stop()
	frames("beside two programs that compute")

	l.leaf.IP("link", "set", "eth0", "up")
	up := <-l.up
	g.each("import of a route", "less than FRR's", who, routes, up, c.hosts(vteps[0], routes))
	frames("import")
	time.Sleep(2 * time.Second)
	g.Add("resident for a route", "KiB", "ratio at most 1.25", tool.Median, who, check.Must(tool.Resident(c.pids()...))(t)*1024/float64(routes))
	p.took(byUser)
	p.took(byKernel)
	begun := time.Now()
	l.withdraw(routes)
	g.each("withdrawal of a route", "less than FRR's", who, routes, begun, c.hosts(vteps[0], 0))
	frames("withdrawal")
}

// frames adds how long frames took.
func (g *growth) frames(who, what string, took []float64) {
	for _, x := range []struct {
		name string
		at   float64
	}{{"p50", tool.Median}, {"p99.9", 0.999}, {"longest", 1}} {
		g.Add(what+", "+x.name, "µs", "", tool.Median, who, tool.Quantile(took, x.at))
	}
}

// copied measures how long frames take that another program copies, beside a node with the same routes: that is the machine's doing.
func (g *growth) copied(t *testing.T, who string, routes int) {
	l := offering(t, routes)
	defer l.stop()
	c := startNode(t, l.leaf, ahead...)
	defer c.stop()
	defer startCopy(t, l.leaf).Kill()
	p := startProbe(t, l.leaf, copyA, copyB)
	defer p.stop()

	l.leaf.IP("link", "set", "eth0", "up")
	<-l.up
	p.took(byUser)
	c.hosts(vteps[0], routes)
	g.frames(who, "a frame that a bare program copies, import", p.took(byUser))
	time.Sleep(2 * time.Second)
	p.took(byUser)
	l.withdraw(routes)
	c.hosts(vteps[0], 0)
	g.frames(who, "a frame that a bare program copies, withdrawal", p.took(byUser))
}

// frr measures what a route costs FRR.
func (g *growth) frr(t *testing.T, who string, routes int) {
	l := offering(t, routes)
	defer l.stop()
	c := startFRR(t, l.leaf)
	defer c.stop()
	l.leaf.IP("link", "set", "eth0", "up")
	up := <-l.up
	g.each("import of a route by FRR", "", who, routes, up, c.hosts(vteps[0], routes))
	begun := time.Now()
	l.withdraw(routes)
	g.each("withdrawal of a route by FRR", "", who, routes, begun, c.hosts(vteps[0], 0))
}

// offering returns a lab with routes for the leaf, which has no session yet.
func offering(t *testing.T, routes int) *lab {
	l := newLab(t)
	for i := range routes {
		l.Advertise(host(i, vteps[0], 0))
	}
	l.leaf.IP("link", "set", "eth0", "down")
	return l
}

// withdraw takes them back.
func (l *lab) withdraw(routes int) {
	for i := range routes {
		l.Withdraw(host(i, vteps[0], 0).Key)
	}
}

// each adds what one of the routes took.
func (g *growth) each(what, wanted, who string, routes int, from, to time.Time) {
	g.Add(what, "µs", wanted, tool.Median, who, float64(to.Sub(from).Microseconds())/float64(routes))
}
