package evpn

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/evpn/internal/engine/memory"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	wire "github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A leaf is a node with a Speaker, in a fabric in memory.
type leaf struct {
	t       *testing.T
	addr    netip.Addr
	node    *node.Node
	segment *node.VSI
	ports   []*port.Pipe
	named   int
	engine  *memory.Engine
	speaker *Speaker
	stop    func()
}

// A fabric is leaves 192.0.2.1 and up, with segment 100 each.
type fabric struct {
	t        *testing.T
	wire     *wire.Network
	sessions memory.Fabric
	leaves   []*leaf
}

func newFabric(t *testing.T, leaves int, c Config) *fabric {
	f := &fabric{t: t, wire: wire.NewNetwork(nil)}
	for range leaves {
		f.add(c)
	}
	return f
}

func (f *fabric) add(c Config) *leaf {
	t := f.t
	l := &leaf{t: t, addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(len(f.leaves) + 1)})}
	o := node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return f.wire.Listen(t.AddrPort(), nil) }}
	l.node = check.Must(node.New(&o))(t)
	check.Must(l.node.Tunnel("vx", node.Tunnel{Local: l.addr, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
	l.segment = check.Must(l.node.Segment(100, &node.Segment{
		Tunnels:    []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}},
		Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}, TableConfig: arp.TableConfig{Ageing: 40 * time.Second}},
		VSIConfig:  vswitch.VSIConfig{Ageing: 30 * time.Second},
	}))(t)
	c.AS, c.RouterID = 65000, l.addr
	l.engine = f.sessions.Engine(l.addr)
	l.speaker = check.Must(newSpeaker(l.node, &c, l.engine))(t)
	end := check.Run(t, l.node.Run, l.speaker.Run)
	l.stop = sync.OnceFunc(func() {
		end()
		l.node.Close()
	})
	f.leaves = append(f.leaves, l)
	return l
}

func (f *fabric) close() {
	for _, l := range f.leaves {
		l.stop()
	}
	f.wire.Close()
}

// plug adds a port.
func (l *leaf) plug() *port.Pipe {
	l.named++
	p := port.NewPipe(&port.PipeConfig{Name: fmt.Sprintf("p%d", l.named)})
	check.OK(l.t, l.segment.Add(p, nil))
	l.ports = append(l.ports, p)
	return p
}

// A host has a MAC and an address, and is on a port of a leaf or nowhere.
type host struct {
	mac frame.MAC
	ip  netip.Addr
	on  *leaf
	at  *port.Pipe
}

func newHost(i int) *host {
	return &host{mac: frame.MAC{2, 0, 0, 0, 1, byte(i)}, ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}
}

// speak has the host announce itself, as hosts do that have moved.
func (h *host) speak() {
	_ = h.at.Send(fake.GratuitousARP(h.mac, h.ip))
}

func (h *host) move(l *leaf, p *port.Pipe) {
	h.on, h.at = l, p
	h.speak()
}

func speakAll(hosts []*host) {
	for _, h := range hosts {
		if h.on != nil {
			h.speak()
		}
	}
}

// where says where a leaf's FDB has a host: the name of a port or the address of a VTEP, "" if it has none.
func (l *leaf) where(h *host) string {
	v := check.Must(l.segment.Switch())(l.t)
	if e, ok := v.FDB().Get(h.mac); ok {
		if e.Origin == fdb.OriginStatic {
			return "static " + l.node.Switch().Name(e.Dest)
		}
		return l.node.Switch().Name(e.Dest)
	}
	return ""
}

func (l *leaf) neighbour(h *host) frame.MAC {
	e, _ := l.node.Neighbours(100).Table().Lookup(h.ip)
	return e.MAC
}

// busy counts the messages of hosts that were not learned because a table was locked just then. All happens at the same instant here,
// so that is not as rare as it is on a network; there too the host's next message is learned.
func (f *fabric) busy() (n uint64) {
	for _, l := range f.leaves {
		v := check.Must(l.segment.Switch())(f.t)
		n += v.FDB().Stats().Busy + l.node.Neighbours(100).Table().Stats().Busy
	}
	return n
}

// wrong returns what a leaf does not know of a host, "" if nothing.
func (l *leaf) wrong(h *host) string {
	want, mac := "", frame.MAC{}
	switch {
	case h.on == l:
		want, mac = h.at.Name(), h.mac
	case h.on != nil:
		want, mac = h.on.addr.String()+":4789", h.mac
	}
	if got := l.where(h); got != want {
		return fmt.Sprintf("%v has %v at %q, want %q", l.addr, h.mac, got, want)
	}
	if got := l.neighbour(h); got != mac {
		return fmt.Sprintf("%v has %v for %v, want %v", l.addr, got, h.ip, mac)
	}
	return ""
}

// Whatever happens to hosts, ports and sessions, once it is quiet every leaf knows where each host is.
func TestFabric(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() || fake.Race {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { oneFabric(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func oneFabric(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	f := newFabric(t, 3, Config{Mobility: Mobility{Moves: 16, Window: time.Millisecond}})
	defer f.close()
	for _, l := range f.leaves {
		l.plug()
		l.plug()
	}
	var hosts []*host
	for i := range 6 {
		hosts = append(hosts, newHost(i+1))
	}
	var log []string
	note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	busy := uint64(0)
	settle := func() {
		for {
			time.Sleep(time.Second)
			synctest.Wait()
			was := busy
			if busy = f.busy(); busy == was {
				return
			}
			time.Sleep(2 * time.Minute) // an address that was not learned elsewhere stays where it was until it ages
			speakAll(hosts)
		}
	}
	check := func() {
		t.Helper()
		settle()
		for _, l := range f.leaves {
			for _, h := range hosts {
				if text := l.wrong(h); text != "" {
					t.Errorf("seed %d: %s", seed, text)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("after %q", log)
		}
	}
	time.Sleep(time.Second)
	for range 15 {
		fast := r.IntN(2) == 0 // faster than news travels
		for range 1 + r.IntN(3) {
			l, h := f.leaves[r.IntN(3)], hosts[r.IntN(len(hosts))]
			switch r.IntN(10) {
			default:
				p := l.ports[r.IntN(len(l.ports))]
				note("%v to %v %s", h.mac, l.addr, p.Name())
				h.move(l, p)
			case 7: // all are silent
				note("ageing")
				time.Sleep(2 * time.Minute)
				for _, h := range hosts {
					h.on = nil
				}
			case 8:
				p := l.ports[0]
				note("%v loses %s", l.addr, p.Name())
				time.Sleep(20 * time.Millisecond) // nobody knows of a host that is gone before its news has travelled
				_ = l.segment.Remove(p)
				l.ports = l.ports[1:]
				l.plug()
				for _, h := range hosts {
					if h.at == p {
						h.on, h.at = nil, nil
					}
				}
			case 9:
				o := f.leaves[r.IntN(3)]
				if o == l {
					break
				}
				note("no session of %v and %v", l.addr, o.addr)
				f.sessions.Cut(l.engine, o.engine)
				for range r.IntN(3) {
					h := hosts[r.IntN(len(hosts))]
					to := []*leaf{l, o}[r.IntN(2)]
					note("%v to %v %s", h.mac, to.addr, to.ports[0].Name())
					h.move(to, to.ports[0])
					time.Sleep(time.Millisecond)
				}
				f.sessions.Join(l.engine, o.engine)
				time.Sleep(time.Second)
				speakAll(hosts) // claims with equal sequences end where the address is lower, until the host speaks
				time.Sleep(20 * time.Millisecond)
			}
			if fast {
				time.Sleep(time.Duration(1+r.IntN(2000)) * time.Microsecond)
			} else {
				time.Sleep(20 * time.Millisecond)
			}
		}
		if fast {
			time.Sleep(time.Second)
			speakAll(hosts)
		}
		check()
	}
}
