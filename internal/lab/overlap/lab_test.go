package overlap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A lab is the fabric of a topology.
type lab struct {
	*mem.Fabric
	top   *topology
	nodes []*node
	hosts map[int]*host
	plugs []*vswitch.Attachment // as those of the topology

	mu   sync.Mutex
	ever []*host // all there have been
}

type node struct {
	*mem.Node
	under   []*memory.Underlay
	tunnels map[int]*vswitch.Attachment // of the VTEP, by network

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

// host is a Go program behind a port.
type host struct {
	*port.Pipe
	mu  sync.Mutex
	got [][]byte
}

// build makes the fabric. Ports are kept open.
func (l *lab) build() error {
	r := rand.New(rand.NewPCG(l.top.seed, 2))
	for i := range l.top.nodes {
		if err := l.node(&l.top.nodes[i]); err != nil {
			return err
		}
	}
	for k, p := range l.top.nets {
		for _, i := range p.members {
			a, err := l.attach(i, k, uint32(p.vni), l.nodes[i].VTEP, l.top.tunnelAttach(r, i, k))
			if err != nil {
				return err
			}
			l.nodes[i].tunnels[k] = a
			if err := l.setFlood(i, k, l.top.floodList(i, k)); err != nil {
				return err
			}
		}
	}
	for _, p := range l.top.plugs {
		if l.hosts[p.host] == nil {
			l.hosts[p.host] = l.newHost(p.host)
		}
		p.cfg.KeepOpen = true
		a, err := l.attach(p.node, p.net, p.tag, l.hosts[p.host].Pipe, p.cfg)
		if err != nil {
			return err
		}
		l.plugs = append(l.plugs, a)
	}
	time.Sleep(50 * time.Millisecond) // between two turns of the housekeeping
	return nil
}

func (l *lab) close() {
	for _, n := range l.nodes {
		n.Close()
		n.VTEP.Close()
	}
	for _, h := range l.ever {
		h.Close()
	}
}

func (l *lab) node(p *nodePlan) error {
	n := &node{tunnels: map[int]*vswitch.Attachment{}, turn: make(chan struct{}, 1)}
	var us []vtep.Underlay
	for _, a := range p.addrs {
		u, err := l.Net.Listen(netip.AddrPortFrom(a, l.top.udp), &memory.Config{Queues: p.queues})
		if err != nil {
			return err
		}
		us, n.under = append(us, u), append(n.under, u)
	}
	cfg := vtep.Config{}
	if p.listedOnly {
		cfg.Peers = vtep.ListedOnly
	}
	v, err := vtep.New(&cfg, us...)
	if err != nil {
		return err
	}
	sw, err := vswitch.New(nil)
	if err != nil {
		return err
	}
	go sw.Run(context.Background())
	n.Node = l.NodeOf(sw, v, n.under[0])
	l.nodes = append(l.nodes, n)
	return nil
}

// attach attaches a host's port or the VTEP of node i to a network.
func (l *lab) attach(i, net int, tag uint32, p vswitch.Port, cfg vswitch.AttachConfig) (a *vswitch.Attachment, err error) {
	l.nodes[i].alone(func() {
		var v *vswitch.VSI
		if v, err = l.segment(i, net); err == nil {
			a, err = v.AttachWith(p, tag, &cfg)
		}
	})
	return a, err
}

// segment returns node i's VSI of a network, and makes it if there is none.
func (l *lab) segment(i, net int) (*vswitch.VSI, error) {
	vni := l.top.vsiOf(i, net)
	for _, v := range l.nodes[i].VSIs() {
		if v.VNI() == vni {
			return v, nil
		}
	}
	return l.nodes[i].VSI(vni, &l.top.nets[net].cfg)
}

func (l *lab) setFlood(i, net int, to []netip.Addr) error {
	var list []netip.AddrPort
	for _, a := range to {
		list = append(list, netip.AddrPortFrom(a, l.top.udp))
	}
	return l.nodes[i].VTEP.SetFlood(l.top.nets[net].vni, list...)
}

// newHost makes a host with room for all frames that may come.
func (l *lab) newHost(id int) *host {
	h := &host{Pipe: port.NewPipe(&port.PipeConfig{Name: hostName(id), Queue: 1 << 14})}
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
			h.mu.Unlock()
		}
	}()
	return h
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
