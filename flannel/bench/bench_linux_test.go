package bench

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

var results = flag.String("flannel.results", "", "folder to write flannel.txt, flannel.json and flannel.svg to; without it the numbers are small")

// sizes say how much is measured.
type sizes struct {
	leases  []int // at a start
	rounds  int
	puts    int    // of a round
	seconds string // of a flow
	large   int    // leases in memory
}

var (
	full  = sizes{leases: []int{1000, 5000}, rounds: 4, puts: 40, seconds: "4", large: 10000}
	small = sizes{leases: []int{50}, rounds: 1, puts: 3, seconds: "1", large: 500}
)

// TestBench measures everything. It does not compare the figures with what is wanted, but each contender must have all of them.
func TestBench(t *testing.T) {
	netns.RequireRoot(t)
	netns.Tool(t, "iperf3")
	t.Setenv("TMPDIR", "/dev/shm") // etcd writes to memory: how fast the disk is says nothing about nodes
	if out, err := exec.Command("go", "build", "-C", "../../cmd", "-buildvcs=false", "-tags=grpcnotrace", "-o", vxflanneld, "./vxflanneld").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := small
	if *results != "" {
		s = full
	}
	var names []string
	for _, c := range contenders() {
		names = append(names, c.name)
	}
	b := &bench{tool.NewReport(names, "flannel "+flanneldlab.Version), s}
	for _, n := range s.leases {
		t.Run("start", func(t *testing.T) { b.start(t, n) })
	}
	t.Run("packet", b.packet)
	t.Run("watch", b.watch)
	t.Run("flow", b.flow)
	t.Run("large", b.large)
	if t.Failed() {
		return
	}
	table, err := b.End(*results, "flannel", "large", "etcd alone")
	t.Logf("\n%s", table)
	if err != nil {
		t.Error(err)
	}
}

// bench is a run.
type bench struct {
	*tool.Report
	sizes
}

// turns calls f for each contender in each round, another one first each time.
func (b *bench) turns(f func(round int, c contender)) {
	for round := range b.rounds {
		for _, c := range tool.Rotate(contenders(), round) {
			f(round, c)
		}
	}
}

// rest is how long a process has before its memory is looked at.
const rest = 2 * time.Second

// start measures the start with n leases, and the memory of the most.
func (b *bench) start(t *testing.T, n int) {
	l := newLab(t)
	l.fill(n)
	name := "start, " + thousands(n) + " leases in the tables"
	b.turns(func(round int, c contender) {
		slab := check.Must(tool.Slab())(t)
		m := l.start(c)
		m.started(n)
		took := time.Since(m.begun)
		b.Add(name, "s", "ratio at most 0.10", tool.Median, c.name, took.Seconds())
		t.Logf("round %d, %s: %v", round+1, c.name, took.Round(time.Millisecond))
		if n == b.leases[len(b.leases)-1] {
			time.Sleep(rest)
			rss := check.Must(tool.Resident(m.PID()))(t)
			rows := max(0, check.Must(tool.Slab())(t)-slab)
			of := ", " + thousands(n) + " leases"
			b.Add("resident"+of, "MiB", "", tool.Median, c.name, rss)
			b.Add("resident and the kernel's rows"+of, "MiB", "ratio at most 1.00", tool.Median, c.name, rss+rows)
		}
		m.stop()
	})
}

// packet measures from the put of a lease to the first packet that leaves for its node.
func (b *bench) packet(t *testing.T) {
	b.turns(func(round int, c contender) {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			far := l.Host(50)
			in := netns.Open(t, far, func() (*net.UDPConn, error) {
				return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(192, 0, 2, 50), Port: 8472})
			})
			m := l.start(c)
			m.address()
			key, value := lease(firstNews, 0, netip.MustParseAddr("192.0.2.50"))
			out := netns.Open(t, m.host, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{}) })
			ctx, cancel := context.WithCancel(t.Context())
			var sending sync.WaitGroup
			sending.Go(func() {
				steadily(ctx, 100*time.Microsecond, func() {
					out.WriteToUDP([]byte("is it there"), &net.UDPAddr{IP: net.IPv4(10, firstNews, 0, 7), Port: 9})
				})
			})
			defer sending.Wait()
			defer cancel()
			took := make([]float64, b.puts)
			for i := range took {
				first := make(chan time.Time, 1)
				go func() {
					in.SetReadDeadline(time.Now().Add(soon))
					in.Read(make([]byte, 2000))
					first <- time.Now()
				}()
				begun := time.Now()
				check.Must(l.etcd.Do(t.Context(), l.put(key, value)))(t)
				took[i] = (<-first).Sub(begun).Seconds() * 1000
				l.remove(firstNews)
				quiet(in)
			}
			for _, at := range []float64{tool.Median, 0.9} {
				b.Add(fmt.Sprintf("put of a lease to the first packet, p%.0f", at*100), "ms", "ratio at most 0.70", at, c.name, took...)
			}
			t.Logf("round %d: median %.2f ms", round+1, tool.Quantile(took, tool.Median))
		})
	})
}

// watch measures from the put of a lease to its event at a client that watches: the part of etcd in packet.
func (b *bench) watch(t *testing.T) {
	l := newLab(t)
	key, value := lease(firstNews, 0, netip.MustParseAddr("192.0.2.50"))
	seen := l.etcd.Watch(t.Context(), flanneldlab.Prefix, clientv3.WithPrefix())
	for range b.rounds {
		took := make([]float64, b.puts)
		for i := range took {
			begun := time.Now()
			check.Must(l.etcd.Do(t.Context(), l.put(key, value)))(t)
			<-seen
			took[i] = time.Since(begun).Seconds() * 1000
			l.remove(firstNews)
			<-seen
			time.Sleep(100 * time.Millisecond)
		}
		for _, at := range []float64{tool.Median, 0.9} {
			b.Add(fmt.Sprintf("etcd alone: put of a lease to its event, p%.0f", at*100), "ms", "", at, "l3", took...)
		}
	}
}

// quiet waits until nothing has come for a while.
func quiet(in *net.UDPConn) {
	for {
		in.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := in.Read(make([]byte, 2000)); err != nil {
			return
		}
	}
}

// flow measures what a TCP flow between two nodes keeps while 100 leases come in a second.
func (b *bench) flow(t *testing.T) {
	b.turns(func(round int, c contender) {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			from, to := l.start(c), l.start(c)
			from.address()
			addr := to.address().String()
			from.host.Until("the nodes reach each other", func() bool {
				_, err := from.host.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", addr)
				return err == nil
			})
			measure := func() float64 { return from.host.IPerf(to.host, addr, "-t", b.seconds).BitsPerSecond / 1e9 }
			beside := func(put func(i int) clientv3.Op) (rate float64, puts int) { // a hundred a second
				ctx, cancel := context.WithCancel(t.Context())
				var putting sync.WaitGroup
				var failed error
				putting.Go(func() {
					every(ctx, 10*time.Millisecond, func(i int) {
						if _, err := l.etcd.Do(ctx, put(i)); err == nil {
							puts++
						} else if ctx.Err() == nil {
							failed = err
						}
					})
				})
				rate = measure()
				cancel()
				putting.Wait()
				if failed != nil || puts < 50 {
					t.Errorf("%d puts, %v", puts, failed)
				}
				return rate, puts
			}
			var alone, leases, others float64
			for _, step := range tool.Rotate([]func(){
				func() { alone = measure() },
				func() {
					n := 0
					leases, n = beside(func(i int) clientv3.Op { return l.put(lease(firstMany, i, somebody(i))) })
					from.programmed(n + 1) // and that of to
					l.remove(firstMany)
					time.Sleep(time.Second)
				},
				func() {
					others, _ = beside(func(i int) clientv3.Op {
						key, value := lease(firstMany, i, somebody(i))
						return clientv3.OpPut("/elsewhere/"+key, string(value))
					})
				},
			}, round) {
				step()
			}
			b.Add("TCP flow alone", "Gbit/s", "", tool.Median, c.name, alone)
			b.Add("share of it beside 100 leases a second", "of 1", "at least 0.95", tool.Median, c.name, leases/alone)
			b.Add("share of it beside 100 other puts a second", "of 1", "", tool.Median, c.name, others/alone)
			t.Logf("round %d: %.2f and %.2f of %.2f Gbit/s", round+1, leases, others, alone)
		})
	})
}

// large measures a node of package routed with many leases in memory.
func (b *bench) large(t *testing.T) {
	name := "large: " + thousands(b.sizes.large) + " leases in memory, "
	for range b.rounds {
		store := flannel.NewMemory(networkJSON)
		defer store.Close()
		for i := range b.sizes.large {
			key, value := lease(firstMany, i, somebody(i))
			store.Put(key, value, time.Hour)
		}
		wire := memory.NewNetwork(nil)
		before := heap()
		m, err := newRouted(&flannel.Registry{KV: store.KV()}, netip.MustParseAddr("192.0.2.1"), func(x *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(x.AddrPort(), nil) })
		check.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		ended := m.run(ctx)
		select {
		case <-m.Ready():
		case err := <-ended:
			t.Fatal(err)
		}
		took, rows := time.Since(begun), m.node.Plane().Stats().Rows
		b.Add(name+"in the tables", "s", "", tool.Median, "l3", took.Seconds())
		b.Add(name+"heap of the node", "MiB", "", tool.Median, "l3", (heap()-before)/(1<<20))
		b.Add(name+"rows", "in all", "", tool.Median, "l3", float64(rows))
		t.Logf("%d rows in %v", rows, took.Round(time.Millisecond))
		if rows < b.sizes.large {
			t.Errorf("%d rows of %d leases", rows, b.sizes.large)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wire.Close()
	}
}

// thousands is a number with a comma.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// heap returns the bytes of what is in use.
func heap() float64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}
