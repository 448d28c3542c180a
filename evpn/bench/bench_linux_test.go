package bench

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var results = flag.String("evpn.results", "", "folder to write evpn.txt, evpn.json and evpn.svg to; without it the numbers are small")

// soon is how long anything is waited for.
const soon = 3 * time.Minute

// TestMain is a node, a probe or a program that copies frames if the environment says so.
func TestMain(m *testing.M) {
	for name, run := range map[string]func(socket string) error{program: serve, probeProgram: serveProbe, copyProgram: serveCopy} {
		if socket := os.Getenv(name); socket != "" {
			if err := run(socket); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// startSelf starts this program, by a command such as env, as the one of a variable of its environment, and waits until that is ready.
func startSelf(t *testing.T, h *netns.Host, by []string, variable, value string, args ...string) *netns.Proc {
	exe := check.Must(os.Executable())(t)
	p := h.Start(by[0], slices.Concat(by[1:], []string{variable + "=" + value, exe}, args)...)
	p.Want("ready")
	return p
}

// connect returns a connection with a program at a socket.
func connect(t *testing.T, socket string) (net.Conn, *bufio.Reader) {
	c := check.Must(net.Dial("unix", socket))(t)
	return c, bufio.NewReader(c)
}

// A contender is a leaf that hears the feeder.
type contender interface {
	hosts(at netip.Addr, n int) time.Time        // when n MACs are at a VTEP, and have their neighbours, and there are no others
	prefixes(n int) time.Time                    // when there are n prefixes
	host(mac frame.MAC, at netip.Addr) time.Time // when a MAC is at a VTEP
	pids() []int
	stop()
}

var contenders = []struct {
	name  string
	start func(*testing.T, *netns.Host) contender
}{{"FRR", startFRR}, {"vxswitch", startOurs}}

// sizes say how much is measured.
type sizes struct{ routes, rounds, moves int }

var (
	full  = sizes{routes: 100_000, rounds: 3, moves: 200}
	small = sizes{routes: 500, rounds: 1, moves: 5}
)

// TestBench measures everything. It does not compare the figures with what is wanted, but each contender must have all of them.
func TestBench(t *testing.T) {
	netns.RequireRoot(t)
	s := small
	if *results != "" {
		s = full
	}
	b := &bench{tool.NewReport([]string{contenders[0].name, contenders[1].name}, "FRR"), s}
	for round := range s.rounds {
		for _, c := range tool.Rotate(contenders, round) {
			t.Run(fmt.Sprintf("%d-%s", round+1, c.name), func(t *testing.T) {
				b.run(t, c.name, c.start)
				b.types5(t, c.name, c.start)
			})
		}
	}
	if t.Failed() {
		return
	}
	table, err := b.End(*results, "evpn", "CPU")
	t.Logf("\n%s", table)
	if err != nil {
		t.Error(err)
	}
}

type bench struct {
	*tool.Report
	sizes
}

// A lab has the leaf's host, and two speakers: one for all MACs but the first, or all prefixes, and one for the first MAC.
type lab struct {
	*feeder
	mover *feeder
	leaf  *netns.Host
}

func newLab(t *testing.T) *lab {
	n := netns.New(t)
	far, leaf := n.Host("feeder"), n.Router("leaf")
	n.Link(far, feederAddr.String()+"/24", leaf, leafAddr.String()+"/24")
	far.IP("addr", "add", moverAddr.String()+"/24", "dev", "eth0")
	leaf.Ready()
	l := &lab{newFeeder(t, far, feederAddr), newFeeder(t, far, moverAddr), leaf}
	return l
}

func (l *lab) stop() {
	l.feeder.stop()
	l.mover.stop()
}

func (b *bench) seconds(who, what string, from, to time.Time) {
	b.Add(what, "s", "ratio at most 1.00", tool.Median, who, to.Sub(from).Seconds())
}

// run measures MACs with addresses.
func (b *bench) run(t *testing.T, who string, start func(*testing.T, *netns.Host) contender) {
	l := newLab(t)
	defer l.stop()
	all := func(vtep netip.Addr, sequence uint32) {
		for i := 1; i < b.routes; i++ {
			l.Advertise(host(i, vtep, sequence))
		}
	}
	l.mover.Advertise(host(0, vteps[0], 0))
	all(vteps[0], 0)
	c := start(t, l.leaf)
	defer c.stop()
	<-l.mover.up
	up := <-l.up
	name := strconv.Itoa(b.routes) + " MACs with addresses: "
	b.seconds(who, name+"import", up, c.hosts(vteps[0], b.routes))
	b.Add(name+"CPU time of it", "s", "", tool.Median, who, check.Must(tool.CPU(c.pids()...))(t))
	time.Sleep(2 * time.Second)
	b.Add(name+"resident", "MiB", "ratio at most 1.00", tool.Median, who, check.Must(tool.Resident(c.pids()...))(t))

	sequence := uint32(0)
	var took []float64
	move := func(to netip.Addr) {
		sequence++
		begun := time.Now()
		l.mover.Advertise(host(0, to, sequence))
		took = append(took, c.host(mac(0), to).Sub(begun).Seconds()*1000)
	}
	moved := func(what string) {
		b.Add("a move, "+what+", p50", "ms", "ratio at most 1.00", tool.Median, who, took...)
		b.Add("a move, "+what+", p99", "ms", "ratio at most 1.00", 0.99, who, took...)
		took = nil
	}
	for i := range b.moves {
		move(vteps[(i+1)%2])
		time.Sleep(5 * time.Millisecond)
	}
	moved("alone")

	sequence = 1000
	begun := time.Now()
	all(vteps[1], 1)
	l.mover.Advertise(host(0, vteps[1], sequence))
	b.seconds(who, name+"all move", begun, c.hosts(vteps[1], b.routes))

	all(vteps[0], 2) // and meanwhile the first moves to and fro
	for i, end := 0, time.Now().Add(storm); i < b.moves && time.Now().Before(end); i++ {
		move(vteps[i%2])
	}
	moved("while all others move")
	move(vteps[1])
	move(vteps[0])
	c.hosts(vteps[0], b.routes)

	begun = time.Now()
	for i := range b.routes {
		r := host(i, vteps[0], 0)
		l.mover.Withdraw(r.Key)
		l.Withdraw(r.Key)
	}
	b.seconds(who, name+"withdrawal", begun, c.hosts(vteps[0], 0))
}

// storm is how long one MAC moves at most while all others move, which takes about as long.
const storm = 3 * time.Second

// types5 measures prefixes.
func (b *bench) types5(t *testing.T, who string, start func(*testing.T, *netns.Host) contender) {
	l := newLab(t)
	defer l.stop()
	for i := range b.routes {
		l.Advertise(prefix(i))
	}
	c := start(t, l.leaf)
	defer c.stop()
	up := <-l.up
	name := strconv.Itoa(b.routes) + " prefixes: "
	b.seconds(who, name+"import", up, c.prefixes(b.routes))
	b.Add(name+"CPU time of it", "s", "", tool.Median, who, check.Must(tool.CPU(c.pids()...))(t))
	time.Sleep(2 * time.Second)
	b.Add(name+"resident", "MiB", "ratio at most 1.00", tool.Median, who, check.Must(tool.Resident(c.pids()...))(t))
	begun := time.Now()
	for i := range b.routes {
		r := prefix(i)
		l.Withdraw(r.Key)
	}
	b.seconds(who, name+"withdrawal", begun, c.prefixes(0))
}
