package discovery

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A network is sockets in memory, which lose datagrams and deliver them in any order.
type network struct {
	mu      sync.Mutex
	rand    *rand.Rand
	loss    float64
	jitter  time.Duration
	sockets map[netip.Addr]*pipe
	cut     map[[2]netip.Addr]bool
	heard   func(from, to netip.Addr, b []byte) // of each that is sent, if not nil
}

type pipe struct {
	net    *network
	addr   netip.Addr
	in     chan datagram
	closed chan struct{}
	once   sync.Once
}

type datagram struct {
	from netip.Addr
	b    []byte
}

func newNetwork(seed uint64) *network {
	return &network{rand: rand.New(rand.NewPCG(seed, 7)), sockets: map[netip.Addr]*pipe{}, cut: map[[2]netip.Addr]bool{}, jitter: time.Millisecond}
}

func (n *network) listen(a netip.Addr) *pipe {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &pipe{net: n, addr: a, in: make(chan datagram, 4096), closed: make(chan struct{})}
	n.sockets[a] = p
	return p
}

func link(a, b netip.Addr) [2]netip.Addr {
	if b.Less(a) {
		a, b = b, a
	}
	return [2]netip.Addr{a, b}
}

func (n *network) set(loss float64, cut map[[2]netip.Addr]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loss, n.cut = loss, cut
}

func (p *pipe) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-p.in:
		return copy(b, d.b), netip.AddrPortFrom(d.from, DefaultPort), nil
	case <-p.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (p *pipe) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heard != nil {
		n.heard(p.addr, to.Addr(), b)
	}
	if n.cut[link(p.addr, to.Addr())] || n.rand.Float64() < n.loss {
		return len(b), nil
	}
	time.AfterFunc(time.Duration(n.rand.Int64N(int64(n.jitter))), func() {
		n.mu.Lock()
		q := n.sockets[to.Addr()]
		n.mu.Unlock()
		if q == nil {
			return
		}
		select {
		case q.in <- datagram{p.addr, b}:
		default:
		}
	})
	return len(b), nil
}

func (p *pipe) Close() error {
	p.once.Do(func() {
		p.net.mu.Lock()
		if p.net.sockets[p.addr] == p {
			delete(p.net.sockets, p.addr)
		}
		p.net.mu.Unlock()
		close(p.closed)
	})
	return nil
}

// A leaf is a node with a Speaker.
type leaf struct {
	t       *testing.T
	f       *fabric
	cfg     Config
	node    *node.Node
	segment *node.VSI
	ports   [2]*port.Pipe
	speaker *Speaker
	end     func() // of the node
	quit    func() // of the Speaker
}

// A fabric is leaves 192.0.2.1 and up, with segment 100 each.
type fabric struct {
	t      *testing.T
	wire   *memory.Network
	net    *network
	leaves []*leaf
}

func addr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, byte(2 + n/250), byte(n%250 + 1)})
}

func newFabric(t *testing.T, leaves int, seed uint64, servers int) *fabric {
	f := &fabric{t: t, wire: memory.NewNetwork(nil), net: newNetwork(seed)}
	for i := range leaves {
		c := Config{Tunnel: "vx", Local: addr(i), KeyFile: "none", Name: fmt.Sprint("leaf", i)}
		for s := range servers {
			c.Servers = append(c.Servers, addr(s))
		}
		f.add(c)
	}
	return f
}

func (f *fabric) add(c Config) *leaf {
	t := f.t
	l := &leaf{t: t, f: f, cfg: c}
	o := node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return f.wire.Listen(t.AddrPort(), nil) }}
	l.node = check.Must(node.New(&o))(t)
	check.Must(l.node.Tunnel("vx", node.Tunnel{Local: c.Local, Config: vtep.Config{Peers: vtep.ListedPerVNI}}))(t)
	l.segment = check.Must(l.node.Segment(100, &node.Segment{
		Tunnels:   []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}},
		VSIConfig: vswitch.VSIConfig{Ageing: 10 * time.Minute},
	}))(t)
	for i := range l.ports {
		l.ports[i] = port.NewPipe(&port.PipeConfig{Name: fmt.Sprint("p", i)})
		check.OK(t, l.segment.Add(l.ports[i], nil))
	}
	end := check.Run(t, l.node.Run)
	l.end = func() {
		l.stop()
		end()
		l.node.Close()
	}
	f.leaves = append(f.leaves, l)
	return l
}

var testKeys = seal.Keys{1: []byte("a key for tests only")}

// start runs the Speaker.
func (l *leaf) start() {
	l.speaker = check.Must(newSpeaker(l.node, &l.cfg, testKeys, 1))(l.t)
	l.speaker.listen = func() (socket, error) { return l.f.net.listen(l.cfg.Local), nil }
	l.quit = check.Run(l.t, l.speaker.Run)
}

func (l *leaf) stop() {
	if l.speaker != nil {
		l.quit()
		check.ErrorHas(l.t, l.speaker.Run(l.t.Context()), "discovery: Speaker.Run: it was called before; make a new Speaker")
		l.speaker = nil
	}
}

func (f *fabric) start() {
	for _, l := range f.leaves {
		l.start()
	}
}

func (f *fabric) close() {
	for _, l := range f.leaves {
		l.end()
	}
	f.wire.Close()
}

// fabricOf calls test with a fabric whose Speakers have run for 20 s, in simulated time.
func fabricOf(t *testing.T, leaves, servers int, test func(t *testing.T, f *fabric)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, leaves, 1, servers)
		defer f.close()
		f.start()
		time.Sleep(20 * time.Second)
		test(t, f)
	})
}

// A host has a MAC, and is on a port of a leaf or nowhere.
type host struct {
	mac frame.MAC
	on  *leaf
	at  *port.Pipe
}

// speak has the host announce itself, as hosts do that have moved.
func (h *host) speak() {
	_ = h.at.Send(fake.GratuitousARP(h.mac, netip.AddrFrom4([4]byte{10, 0, 0, h.mac[5]})))
}

func (h *host) move(l *leaf, p *port.Pipe) {
	h.on, h.at = l, p
	h.speak()
}

// where says where a leaf's FDB has a host: the name of a port or the address of a VTEP, "" if it has none.
func (l *leaf) where(mac frame.MAC) string {
	v := check.Must(l.segment.Switch())(l.t)
	if e, ok := v.FDB().Get(mac); ok {
		if e.Origin == fdb.OriginStatic {
			return "static " + l.node.Switch().Name(e.Dest)
		}
		return l.node.Switch().Name(e.Dest)
	}
	return ""
}

// wrong returns what a leaf does not know of a host, "" if nothing.
func (l *leaf) wrong(h *host) string {
	want := ""
	switch {
	case h.on == l:
		want = h.at.Name()
	case h.on != nil && l.speaker != nil && h.on.speaker != nil:
		want = h.on.cfg.Local.String() + ":4789"
	}
	if got := l.where(h.mac); got != want {
		return fmt.Sprintf("%v has %v at %q, want %q", l.cfg.Local, h.mac, got, want)
	}
	return ""
}

func (f *fabric) check(what string, hosts []*host) {
	f.t.Helper()
	synctest.Wait()
	for _, l := range f.leaves {
		for _, h := range hosts {
			if text := l.wrong(h); text != "" {
				f.t.Errorf("%s: %s", what, text)
			}
		}
	}
}

// Three VTEPs with two servers: a host is known everywhere at once, moves, and is forgotten with its VTEP.
func TestFabric(t *testing.T) {
	fabricOf(t, 3, 2, func(t *testing.T, f *fabric) {
		h := &host{mac: frame.MAC{2, 0, 0, 0, 1, 1}}
		h.move(f.leaves[2], f.leaves[2].ports[0])
		time.Sleep(50 * time.Millisecond)
		f.check("new", []*host{h})
		for i := range 4 {
			l := f.leaves[i%3]
			h.move(l, l.ports[0])
			time.Sleep(50 * time.Millisecond)
			f.check(fmt.Sprint("moved to ", l.cfg.Local), []*host{h})
		}
		on := h.on
		on.stop()
		time.Sleep(50 * time.Millisecond)
		f.check("its VTEP leaves", []*host{h})
		on.start()
		time.Sleep(20 * time.Second)
		f.check("its VTEP is back", []*host{h})
		for _, l := range f.leaves {
			l.stop()
		}
	})
}

var games = flag.Uint64("games", 200, "number of games of TestModel; 1000 take two minutes")

// After quiet every FDB says where each host is, whatever was lost, restarted or cut off before. In one game of three a registry takes the
// place of servers.
func TestModel(t *testing.T) {
	n := *games
	if testing.Short() || fake.Race {
		n = min(n, 30)
	}
	for seed := range n {
		synctest.Test(t, func(t *testing.T) { oneModel(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func oneModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	leaves, servers, b := 3+r.IntN(3), 1+r.IntN(2), newBoard()
	if seed%3 == 0 {
		servers = 0
	}
	f := newFabric(t, leaves, seed, servers)
	defer f.close()
	for _, l := range f.leaves {
		if servers == 0 {
			l.cfg.Registry = b
		}
	}
	f.start()
	var hosts []*host
	for i := range 6 {
		hosts = append(hosts, &host{mac: frame.MAC{2, 0, 0, 0, 1, byte(i + 1)}})
	}
	for range 2 {
		cut := map[[2]netip.Addr]bool{}
		for range r.IntN(4) {
			cut[link(addr(r.IntN(len(f.leaves))), addr(r.IntN(len(f.leaves))))] = true
		}
		f.net.set(0.2, cut)
		if r.IntN(2) == 0 {
			b.change(func() { b.away = errors.New("away") })
		}
		for range 6 {
			l := f.leaves[r.IntN(len(f.leaves))]
			if r.IntN(4) == 0 {
				if l.stop(); r.IntN(2) == 0 {
					time.Sleep(time.Duration(r.IntN(100)) * time.Second)
				}
				l.start()
			} else {
				hosts[r.IntN(len(hosts))].move(l, l.ports[r.IntN(2)])
			}
			time.Sleep(time.Duration(r.IntN(20000)) * time.Millisecond)
		}
		f.net.set(0, nil)
		b.change(func() { b.away = nil })
		time.Sleep(200 * time.Second)
		for range 2 { // they say where they are, as all hosts do sooner or later; a table that is being written misses one frame
			for _, h := range hosts {
				if h.on != nil {
					h.speak()
				}
			}
			time.Sleep(50 * time.Second)
		}
		f.check(fmt.Sprint("seed ", seed), hosts)
	}
}
