package ovsdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A leaf is a node with a Switch and a database of its own.
type leaf struct {
	t     *testing.T
	name  string
	addr  netip.Addr
	node  *node.Node
	ports map[string]*port.Pipe
	db    *board
	wire  *wire
	sw    *Switch
	quit  func() // of the Switch, nil while there is none
	end   func() // of the node
}

// keeper is a segment of the configuration that has all ports, in a VLAN that nothing is sent in.
const keeper = 1

var (
	names    = []string{"ls0", "ls1"}
	ports    = []string{"p0", "p1"}
	vlans    = []int{0, 7}
	firstKey = 100
)

// A fabric is leaves 192.0.2.1 and up, each with a database, and two controllers of all databases.
type fabric struct {
	t           *testing.T
	seed        uint64
	wire        *memory.Network
	leaves      []*leaf
	controllers []*controller

	mu     sync.Mutex
	intent intent
}

func newFabric(t *testing.T, seed uint64, leaves int, locks, files bool) *fabric {
	f := &fabric{t: t, seed: seed, wire: memory.NewNetwork(nil), intent: intent{map[string]int{}, map[binding]string{}}}
	for i := range leaves {
		l := &leaf{t: t, name: fmt.Sprint("leaf", i), addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), ports: map[string]*port.Pipe{}, db: &board{t: t}}
		if files {
			l.db.path = filepath.Join(t.TempDir(), "db")
		}
		l.db.start()
		l.wire = newWire(l.db)
		o := node.Options{Owners: []string{DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return f.wire.Listen(t.AddrPort(), nil) }}
		l.node = check.Must(node.New(&o))(t)
		check.Must(l.node.Tunnel("vx", node.Tunnel{Local: l.addr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
		s := check.Must(l.node.Segment(keeper, nil))(t)
		for _, name := range ports {
			l.ports[name] = port.NewPipe(&port.PipeConfig{Name: name})
			check.OK(t, s.Add(l.ports[name], &node.Member{VLAN: 4000}))
		}
		end := check.Run(t, l.node.Run)
		l.end = func() {
			end()
			l.node.Close()
		}
		f.leaves = append(f.leaves, l)
	}
	for _, name := range []string{"a", "b"} {
		f.controllers = append(f.controllers, newController(f, name, locks))
	}
	return f
}

// ageing is longer than what is quiet otherwise, so that what is wrong does not just age.
const ageing = 2 * time.Minute

// A quick is a node whose segments forget silent hosts sooner than by default.
type quick struct{ *node.Node }

func (n quick) Provide(owner string, parts *node.Config) error {
	if parts != nil {
		for i := range parts.Segments {
			parts.Segments[i].Ageing = ageing
		}
	}
	return n.Node.Provide(owner, parts)
}

func (l *leaf) start() {
	if l.quit != nil {
		return
	}
	c := &Config{Target: "unix:none", Name: l.name, Ports: ports, Tunnel: "vx"}
	l.sw = check.Must(New(quick{l.node}, c))(l.t)
	l.sw.reach = l.wire.dial
	end := check.Run(l.t, l.sw.Run)
	l.quit = func() {
		end()
		l.quit = nil
	}
}

func (l *leaf) stop() {
	if l.quit != nil {
		l.quit()
	}
}

// start has all run, and all connections work.
func (f *fabric) start() {
	for _, w := range f.wires() {
		w.heal()
	}
	for _, l := range f.leaves {
		l.db.start()
		l.start()
	}
	for _, c := range f.controllers {
		c.start()
	}
}

func (f *fabric) wires() (all []*wire) {
	for _, l := range f.leaves {
		all = append(all, l.wire)
	}
	for _, c := range f.controllers {
		for _, d := range c.copies {
			all = append(all, d.wire)
		}
	}
	return all
}

func (f *fabric) close() {
	for _, c := range f.controllers {
		if c.stop != nil {
			c.stop()
		}
	}
	for _, l := range f.leaves {
		l.stop()
		l.db.stop()
		l.end()
	}
	f.wire.Close()
}

// change changes what is wanted.
func (f *fabric) change(edit func(*intent)) {
	f.mu.Lock()
	edit(&f.intent)
	f.mu.Unlock()
	for _, c := range f.controllers {
		c.mu.Lock()
		c.all()
		c.mu.Unlock()
	}
}

const seeds = 1000

// After quiet the FDB of every Switch says where each host is, whatever was lost, restarted, cut off or contradicted before. Run a seed
// alone with -run TestModel/17.
func TestModel(t *testing.T) {
	n := seeds
	if testing.Short() || fake.Race {
		n = n / 10
	}
	var failed atomic.Bool
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if t.Parallel(); failed.Load() {
				t.Skip("another seed has failed")
			}
			synctest.Test(t, func(t *testing.T) { oneModel(t, seed) })
			failed.CompareAndSwap(false, t.Failed())
		})
	}
}

func oneModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	f := newFabric(t, seed, 2+r.IntN(2), r.IntN(2) == 0, seed%8 == 0)
	defer f.close()
	var hosts []*host
	for i := range 4 {
		hosts = append(hosts, &host{mac: frame.MAC{2, 0, 0, 0, 1, byte(i + 1)}})
	}
	began := time.Now()
	var log []string
	note := func(format string, args ...any) {
		log = append(log, fmt.Sprintf("%v "+format, append([]any{time.Since(began)}, args...)...))
	}
	for i := range f.leaves {
		for k, name := range names {
			f.intent.keys[name] = firstKey + k
			f.intent.binds[binding{i, ports[k], 0}] = name
		}
	}
	f.start()
	for round := range 2 {
		silent := false
		for range 12 + r.IntN(8) {
			f.step(r, hosts, note, &silent)
			wait := []int{1, 300, 3000, 20000}[r.IntN(4)]
			time.Sleep(time.Duration(r.IntN(wait)) * time.Millisecond)
		}
		note("all is well")
		f.start()
		f.settle(hosts, silent)
		if f.check(hosts, log, "seed %d, round %d", seed, round); t.Failed() {
			return
		}
	}
	l := f.leaves[r.IntN(len(f.leaves))]
	l.stop()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	f.check(hosts, log, "seed %d, %s has gone", seed, l.name)
}

// check fails if something is wrong, and tells what had been done.
func (f *fabric) check(hosts []*host, log []string, when string, args ...any) {
	for _, text := range f.wrong(hosts) {
		f.t.Errorf(when+": %s", append(args, text)...)
	}
	if f.t.Failed() {
		f.t.Log(strings.Join(log, "\n"))
	}
}

// network returns the Logical_Switch of a binding, "" while no Switch is there to carry it out.
func (f *fabric) network(b binding) string {
	if f.leaves[b.leaf].quit == nil {
		return ""
	}
	return f.intent.binds[b]
}

// wrong returns what is not as it must be.
func (f *fabric) wrong(hosts []*host) (list []string) {
	bad := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i, l := range f.leaves {
		if st := l.sw.Status(); l.quit != nil && (st.State != Connected || len(st.Refused) > 0 || st.RowErr != nil) {
			bad("%s is %+v", l.name, st)
		}
		has := map[frame.VNI]bool{keeper: true}
		locals, remotes, floods := map[line]bool{}, map[line]bool{}, map[line]bool{}
		for name, key := range f.intent.keys {
			if key == 0 {
				continue
			}
			here := false
			var others []string
			for b := range f.intent.binds {
				to := f.network(b)
				if here = here || to == name && b.leaf == i; to == name && b.leaf != i {
					others = append(others, f.leaves[b.leaf].addr.String())
				}
			}
			slices.Sort(others)
			others = slices.Compact(others)
			for _, at := range others {
				floods[line{network: name, mac: "unknown-dst", at: at}] = true
			}
			for _, h := range hosts {
				if h.at != nil && f.network(*h.at) == name {
					x := line{name, h.mac.String(), "", f.leaves[h.at.leaf].addr.String()}
					if h.at.leaf == i {
						locals[x] = true
					} else {
						remotes[x] = true
					}
				}
			}
			if !here {
				continue
			}
			has[frame.VNI(key)] = true
			f.segment(bad, l, i, name, frame.VNI(key), others, hosts)
		}
		for _, v := range l.node.Segments() {
			if !has[v.VNI()] {
				bad("%s has segment %d, which nothing is bound to", l.name, v.VNI())
			}
		}
		for _, c := range f.controllers {
			c.mu.Lock()
			for table, want := range map[string]map[line]bool{"Ucast_Macs_Local": locals, "Ucast_Macs_Remote": remotes} {
				got := map[line]bool{}
				for _, x := range c.copies[i].lines(table) {
					x.ip = ""
					got[x] = true
				}
				if !maps.Equal(got, want) {
					bad("%s of %s as controller %s knows it: %v, want %v", table, l.name, c.name, got, want)
				}
			}
			c.mu.Unlock()
		}
	}
	return list
}

// segment compares a segment of a leaf with what a network is.
func (f *fabric) segment(bad func(string, ...any), l *leaf, i int, name string, vni frame.VNI, others []string, hosts []*host) {
	all := l.node.Segments()
	at := slices.IndexFunc(all, func(v *vswitch.VSI) bool { return v.VNI() == vni })
	if at < 0 {
		bad("%s has no segment %d for %s", l.name, vni, name)
		return
	}
	for _, h := range hosts {
		got, want := "", ""
		if e, ok := all[at].FDB().Get(h.mac); ok {
			got = l.node.Switch().Name(e.Dest)
		}
		if h.at != nil && f.network(*h.at) == name {
			if want = h.at.port; h.at.leaf != i {
				want = f.leaves[h.at.leaf].addr.String() + ":4789"
			}
		}
		if got != want {
			bad("%s has %v of %s at %q, want %q", l.name, h.mac, name, got, want)
		}
	}
	var flood []string
	for _, a := range l.node.Tunnels()["vx"].Flood(vni) {
		flood = append(flood, a.Addr().String())
	}
	if slices.Sort(flood); !slices.Equal(flood, others) {
		bad("%s floods %s to %v, want %v", l.name, name, flood, others)
	}
}
