package overlap

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// lab is the fabric itself.
type lab struct {
	net   *memory.Network
	udp   uint16
	nodes []*node
	hosts map[int]*host
	mu    sync.Mutex
	ever  []*host // all there have been
}

type node struct {
	lab *lab
	*vswitch.Switch
	cfg    vtep.Config
	addrs  []netip.Addr
	queues int
	vtep   *vtep.VTEP
	under  []*memory.Underlay
	atts   map[attKey]*vswitch.Attachment

	// turn lets one control call in at a time. A switch may sleep with its lock held
	// while it waits for a worker, and fake time stands still as long as anybody
	// waits for a sync.Mutex; a channel does not stop it.
	turn chan struct{}
}

func (n *node) alone(do func()) {
	n.turn <- struct{}{}
	do()
	<-n.turn
}

type attKey struct {
	vni  frame.VNI
	port int
}

// host is a Go program behind a port.
type host struct {
	*port.Pipe
	mu    sync.Mutex
	got   [][]byte
	total int
}

func newLab(udp uint16, seed uint64) *lab {
	return &lab{
		net: memory.NewNetwork(&memory.NetworkConfig{Seed: seed}), udp: udp,
		hosts: map[int]*host{},
	}
}

func (l *lab) close() {
	for _, n := range l.nodes {
		n.Close()
		if n.vtep != nil {
			n.vtep.Close()
		}
	}
	for _, h := range l.ever {
		h.Close()
	}
	l.net.Close()
}

func (l *lab) node(addrs []netip.Addr, queues int, cfg vtep.Config) (*node, error) {
	sw, err := vswitch.New(nil)
	if err != nil {
		return nil, err
	}
	n := &node{
		lab: l, Switch: sw, cfg: cfg, addrs: addrs, queues: queues,
		atts: map[attKey]*vswitch.Attachment{}, turn: make(chan struct{}, 1),
	}
	l.nodes = append(l.nodes, n)
	go sw.Run(context.Background())
	return n, n.listen()
}

// listen makes the node's VTEP.
func (n *node) listen() error {
	var us []vtep.Underlay
	n.under = nil
	for _, a := range n.addrs {
		u, err := n.lab.net.Listen(netip.AddrPortFrom(a, n.lab.udp), &memory.Config{Queues: n.queues})
		if err != nil {
			return err
		}
		us = append(us, u)
		n.under = append(n.under, u)
	}
	var err error
	n.vtep, err = vtep.New(&n.cfg, us...)
	return err
}

func (l *lab) endpoints(as []netip.Addr) (es []netip.AddrPort) {
	for _, a := range as {
		es = append(es, netip.AddrPortFrom(a, l.udp))
	}
	return es
}

// attach attaches a host's port or the VTEP.
func (n *node) attach(vni frame.VNI, vc vswitch.VSIConfig, id int, tag uint32, cfg vswitch.AttachConfig) error {
	v, err := n.segment(vni, vc)
	if err != nil {
		return err
	}
	var p vswitch.Port = n.vtep
	if id != vtepPort {
		p = n.lab.hosts[id].Pipe
	}
	a, err := v.AttachWith(p, tag, cfg)
	if err != nil {
		return err
	}
	n.atts[attKey{vni, id}] = a
	return nil
}

// segment returns a VSI, and makes it with a config if there is none.
func (n *node) segment(vni frame.VNI, vc vswitch.VSIConfig) (*vswitch.VSI, error) {
	for _, v := range n.VSIs() {
		if v.VNI() == vni {
			return v, nil
		}
	}
	return n.VSI(vni, &vc)
}

func (l *lab) newHost(id, queue int) *host {
	h := &host{Pipe: port.NewPipe(&port.PipeConfig{Name: hostName(id), Queue: queue})}
	l.mu.Lock()
	l.ever = append(l.ever, h)
	l.mu.Unlock()
	go func() {
		for {
			b, err := h.Recv(context.Background())
			if err != nil {
				return
			}
			h.mu.Lock()
			h.got = append(h.got, b)
			h.total++
			h.mu.Unlock()
		}
	}()
	return h
}

func (h *host) take() [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

// settle waits until nothing moves any more.
func (l *lab) settle() {
	synctest.Wait()
	for l.net.Stats().InFlight > 0 {
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
}

// A diff is what does not hold.
type diff []string

func (d *diff) addf(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *diff) same(what string, got, want any) {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		d.addf("%s: got %s, want %s", what, g, w)
	}
}

func (d *diff) drops(who string, got, want frame.Drops) {
	for r := range got {
		if got[r] != want[r] {
			d.addf("%s: %d drops %v, want %d", who, got[r], frame.Reason(r), want[r])
		}
	}
}

// accounted: every frame in is in exactly one counter.
func (d *diff) accounted(who string, p vswitch.PortStats) {
	out := p.Forwarded + p.Replied + p.Consumed + p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown + p.RxDrops.Total()
	if p.Rx.Frames != out {
		d.addf("%s: %d frames in, %d accounted for", who, p.Rx.Frames, out)
	}
	for _, x := range []frame.Drops{p.RxDrops, p.TxDrops} {
		if x[frame.NotDropped] != 0 {
			d.addf("%s: %d drops without a name", who, x[frame.NotDropped])
		}
	}
}
