package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	net     *memory.Network
	udp     uint16
	nodes   []*node
	hosts   map[int]*host
	mu      sync.Mutex
	ever    []*host // all there have been
	outside []*outsider
	started time.Time
}

type node struct {
	lab *lab
	*vswitch.Switch
	cfg    vtep.Config
	addrs  []netip.Addr
	queues int
	vtep   *vtep.VTEP // nil while closed
	under  []*memory.Underlay
	atts   map[attKey]*vswitch.Attachment
	names  map[uint16]string // of ports, by the number they have or had last

	// turn lets one control call in at a time. A switch may sleep with its lock held
	// while it waits for a worker, and fake time stands still as long as anybody
	// waits for a sync.Mutex; a channel does not stop it.
	turn chan struct{}

	mu     sync.Mutex
	events []event
}

func (n *node) alone(do func()) {
	n.turn <- struct{}{}
	do()
	<-n.turn
}

// event is an event and what its peers were called when it came.
type event struct {
	frame.Event
	at, from string
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

// outsider is a member of the network that is no VTEP of ours.
type outsider struct {
	*memory.Underlay
	mu  sync.Mutex
	got []string
}

func newLab(udp uint16, seed uint64) *lab {
	return &lab{
		net: memory.NewNetwork(&memory.NetworkConfig{Seed: seed}), udp: udp,
		hosts: map[int]*host{}, started: time.Now(),
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
		atts: map[attKey]*vswitch.Attachment{}, names: map[uint16]string{0: "switch"}, turn: make(chan struct{}, 1),
	}
	l.nodes = append(l.nodes, n)
	go n.watch(sw.Events())
	go sw.Run(context.Background())
	return n, n.listen()
}

func (n *node) watch(events *vswitch.Events) {
	for {
		e, err := events.Next(context.Background())
		if err != nil {
			return
		}
		n.mu.Lock()
		n.events = append(n.events, event{e, n.peerName(e.Dest), n.peerName(e.Old)})
		n.mu.Unlock()
	}
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
	v, err := vtep.New(&n.cfg, us...)
	n.setVTEP(v)
	return err
}

func (n *node) setVTEP(v *vtep.VTEP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.vtep = v
}

// peerName returns what a peer is called, "" for a Dest without one. n.mu is held.
func (n *node) peerName(d frame.Dest) string {
	if n.vtep == nil || d.Peer() == 0 || d == frame.Filter {
		return ""
	}
	return n.vtep.PeerName(d.Peer())
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
	n.names[a.Dest(0).Port()] = "vtep"
	if id != vtepPort {
		n.names[a.Dest(0).Port()] = hostName(id)
	}
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

// plug gives a host a new port.
func (l *lab) plug(id, mtu, queue int) { l.hosts[id] = l.newHost(id, mtu, queue) }

func (l *lab) newHost(id, mtu, queue int) *host {
	h := &host{Pipe: port.NewPipe(&port.PipeConfig{Name: hostName(id), MTU: mtu, Queue: queue})}
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

// stranger joins the network beside the VTEPs.
func (l *lab) stranger(at netip.AddrPort) (*outsider, error) {
	m, err := l.net.Listen(at, nil)
	if err != nil {
		return nil, err
	}
	o := &outsider{Underlay: m}
	l.outside = append(l.outside, o)
	r := m.Readers()[0]
	go func() {
		b := frame.NewBatch(nil)
		for r.Read(b) == nil {
			o.mu.Lock()
			for i := range b.Frames {
				o.got = append(o.got, onWire(b.Outer[i].Src.AddrPort().Addr(), b.Frames[i].Bytes()))
			}
			o.mu.Unlock()
		}
	}()
	return o, nil
}

func (o *outsider) send(to netip.AddrPort, payload []byte) error {
	e, err := frame.EndpointFrom(to)
	if err != nil {
		return err
	}
	d := []frame.Datagram{{Parts: [][]byte{payload}, To: []frame.Endpoint{e}}}
	if err := o.Sender(0).Send(d); err != nil {
		return err
	}
	if d[0].Lost > 0 {
		return errors.New(d[0].Drop.String())
	}
	return nil
}

func (o *outsider) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.got
	o.got = nil
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

// called returns the name of a Dest, of ports that are gone too.
func (n *node) called(d frame.Dest) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch peer := n.peerName(d); {
	case d == frame.Filter:
		return "filter"
	case peer != "":
		return peer
	}
	return n.names[d.Port()]
}

// takeEvents returns the events since the last call in words, sorted.
func (n *node) takeEvents() (words []string) {
	n.mu.Lock()
	events := n.events
	n.events = nil
	n.mu.Unlock()
	for _, e := range events {
		at, from := e.at, e.from
		if at == "" {
			at = n.called(e.Dest)
		}
		if from == "" {
			from = n.called(e.Old)
		}
		switch e.Kind {
		case frame.EventPortUp:
			words = append(words, fmt.Sprintf("%v %s", e.Kind, at))
		case frame.EventPortDown:
			cause := ""
			if errors.Is(e.Err, net.ErrClosed) {
				cause = "closed"
			} else if e.Err != nil {
				cause = e.Err.Error()
			}
			words = append(words, fmt.Sprintf("%v %s %s", e.Kind, at, cause))
		case frame.EventMACMoved:
			words = append(words, fmt.Sprintf("%v %d %v %s from %s pinned=%v", e.Kind, e.VNI, e.MAC, at, from, e.Pinned))
		default:
			words = append(words, fmt.Sprintf("%v %d %v %s", e.Kind, e.VNI, e.MAC, at))
		}
	}
	slices.Sort(words)
	return words
}
