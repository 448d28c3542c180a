package vswitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/pending"
	"github.com/vxswitch/vxswitch/internal/ring"
)

// A Switch forwards frames between ports. Make one with New, attach ports, Run it.
type Switch struct {
	log     *slog.Logger
	gens    *fdb.Gens
	arenas  frame.Arenas
	started time.Time
	inject  *ring.Ring[injection]
	share   shares // of inject
	tooBig  icmperr.PathMTU
	events  broker
	tallies tallies               // of attachments
	alarmed *pending.Set[macIn]   // of EventMACRefused, for a second
	trace   atomic.Pointer[Trace] // nil while nobody looks
	tap     atomic.Pointer[Tap]   // likewise
	offload atomic.Pointer[Offload]
	watched atomic.Int64 // times that SetWatched has begun and not ended

	ports   atomic.Pointer[[]*port] // by number; 0 is own; nil if there is none
	leaving atomic.Pointer[port]    // the one that is being removed, for its name
	version atomic.Uint64           // increases when a port or a VSI is removed
	tick    atomic.Uint32
	clock   atomic.Int64          // Unix seconds
	last    atomic.Pointer[Stats] // after Close
	sweeper epoch
	flap    atomic.Pointer[frame.Event] // to be logged
	flapAt  atomic.Uint32               // its tick plus one
	kick    chan struct{}               // wakes the housekeeping

	failMu sync.Mutex
	failed []failure

	mu      sync.Mutex // guards everything below, and every change
	cfg     Config     // as set
	own     *port      // port 0: the switch itself
	vsis    map[frame.VNI]*VSI
	list    atomic.Pointer[[]*VSI] // vsis by VNI
	byPort  map[Port]*port
	workers map[*worker]struct{}
	judges  map[Judge]func() // in slots; they say when they change, until this is called
	fibs    map[FIB]func()   // likewise
	ids     numbers          // of workers
	nums    numbers          // of ports
	bumps   int              // flushes and kills so far
	running bool
	closed  bool
	closing chan struct{}
	done    chan struct{}
}

// numbers allocates small numbers from 1, lowest first.
type numbers struct {
	free []int
	next int
}

func (n *numbers) take() int {
	if len(n.free) > 0 {
		x := n.free[0]
		n.free = n.free[1:]
		return x
	}
	n.next++
	return n.next
}

func (n *numbers) give(x int) {
	i, _ := slices.BinarySearch(n.free, x)
	n.free = slices.Insert(n.free, i, x)
}

// New returns a switch without ports. A nil cfg means defaults. Run it or close it: both close the attached ports.
func New(cfg *Config) (*Switch, error) {
	s := &Switch{
		alarmed: pending.New[macIn](1), gens: fdb.NewGens(), started: time.Now(), sweeper: newEpoch(),
		kick: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		vsis: map[frame.VNI]*VSI{}, byPort: map[Port]*port{}, workers: map[*worker]struct{}{}, judges: map[Judge]func(){}, fibs: map[FIB]func(){},
	}
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if s.log = c.Log; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.tooBig.Init(0, 0)
	s.inject = ring.New[injection](0)
	s.configure(c)
	s.events.name = s.Name
	s.own = &port{name: "switch", byVNI: true, readers: []frame.Reader{&injected{Ring: s.inject, share: &s.share}}, tallies: []*tally{{}}}
	s.own.of = s.own
	s.ports.Store(&[]*port{s.own})
	s.list.Store(new([]*VSI))
	return s, nil
}

// Run forwards frames until ctx is done or Close is called. Then it closes the switch, with every
// attached port that is not KeepOpen, and returns nil. A port that fails does not end Run; see
// EventPortDown. Run returns an error if the switch is running, and net.ErrClosed after Close.
func (s *Switch) Run(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return fmt.Errorf("vswitch: Run: %w", net.ErrClosed)
	case s.running:
		s.mu.Unlock()
		return errors.New("vswitch: Run: already running")
	}
	s.running = true
	s.clock.Store(time.Now().Unix())
	for _, p := range *s.ports.Load() {
		if p != nil && p.of == p {
			s.start(p)
		}
	}
	s.mu.Unlock()
	s.housekeep(ctx)
	s.shut()
	close(s.done)
	return nil
}

// Close ends Run and all workers, and closes every attached port that is not KeepOpen. It returns when
// all of that has happened. It is idempotent.
func (s *Switch) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	running := s.running
	if first {
		close(s.closing)
	}
	s.mu.Unlock()
	if running {
		<-s.done
		return nil
	}
	s.shut()
	return nil
}

// shut detaches everything.
func (s *Switch) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	ports := *s.ports.Load()
	for _, p := range ports {
		if p != nil && p != s.own && p.of == p {
			s.remove(p, nil)
		}
	}
	for _, v := range s.vsis {
		v.gone.Store(true)
	}
	if t := s.trace.Swap(nil); t != nil {
		t.ring.Close()
	}
	s.watchOnly(nil, nil)
	s.inject.Close()
	s.stop(s.own)
	if s.last.Load() == nil {
		st := s.stats(ports)
		s.last.Store(&st)
	}
	s.events.close()
}

// Inject queues a copy of f to be sent into vsi by the switch itself, such as an answer of a stage. The
// frame teaches no MAC, and split horizon does not apply. A superframe stays one. The frame counts
// towards the share of f.From in the queue. Inject returns false if that share or the queue is full, or
// the switch is closed. It may be called from a Stage.
func (s *Switch) Inject(vsi *VSI, f *frame.Frame) bool { return vsi.Send(0, f) }

// Send is Inject for a frame to one member of the VSI, regardless of the FDB. Frames other than Ethernet
// need a destination; 0 leaves it to the FDB.
func (v *VSI) Send(to frame.Dest, f *frame.Frame) bool {
	m := injection{vni: v.vni, from: f.From, to: to, kind: f.Kind, horizon: f.Horizon, kills: v.sw.gens.Kills(to), gso: f.GSO.Moved(-f.Headroom()), gbp: f.GBP, priority: f.Priority}
	r := frame.PortFull
	if v.sw.share.take(m.from) {
		if r = v.sw.inject.Put(m, f.Bytes()); r != frame.NotDropped {
			v.sw.share.give(m.from)
		}
	}
	if r != frame.NotDropped {
		v.sw.own.tx.add(cDrops+int(r), 1)
	}
	return r == frame.NotDropped
}

// An injection is what the queue keeps beside the bytes of an injected frame.
type injection struct {
	vni  frame.VNI
	from frame.Dest
	to   frame.Dest
	kind frame.Kind
	gso  frame.GSO
	gbp  frame.GBP

	horizon  uint8
	priority uint8
	kills    uint32 // of to, when it was queued
}

// injected reads the queue. Until the worker has seen a frame, its From is the destination, and its Hash
// says whether that destination still exists.
type injected struct {
	*ring.Ring[injection]
	share *shares
	taken []frame.Dest
}

func (r *injected) Read(b *frame.Batch) error {
	r.taken = r.taken[:0]
	err := r.Fill(b, func(b *frame.Batch, i int, m injection) {
		r.taken = append(r.taken, m.from)
		f := &b.Frames[i]
		f.VNI, f.From, f.Kind, f.GSO, f.GBP, f.Horizon, f.Priority, f.Hash = m.vni, m.to, m.kind, m.gso.Moved(f.Headroom()), m.gbp, m.horizon, m.priority, m.kills
	})
	r.share.give(r.taken...)
	return err
}

// Name returns the name of a Dest: that of the port, or the address of the peer.
func (s *Switch) Name(d frame.Dest) string {
	var p *port
	if ports := *s.ports.Load(); d != frame.Filter && int(d.Port()) < len(ports) {
		if p = ports[d.Port()]; p == nil {
			p = s.leaving.Load()
		}
	}
	if p == nil || p.num != d.Port() {
		return d.String()
	}
	if p.tunnel != nil && d.Peer() != 0 {
		if n := p.tunnel.PeerName(d.Peer()); n != "" {
			return n
		}
	}
	return p.title()
}

// Tick returns the switch's clock, to which the ages of FDB entries relate.
func (s *Switch) Tick() frame.Tick { return frame.Tick(s.tick.Load()) }

// VSIs returns the VSIs in the order of their VNIs.
func (s *Switch) VSIs() []*VSI { return slices.Clone(*s.list.Load()) }

// setList publishes the VSIs with v added or removed. s.mu is held.
func (s *Switch) setList(v *VSI, there bool) {
	l := *s.list.Load()
	i, _ := slices.BinarySearchFunc(l, v.vni, func(x *VSI, vni frame.VNI) int { return cmp.Compare(x.vni, vni) })
	if there {
		l = slices.Insert(slices.Clip(l), i, v)
	} else {
		l = slices.Delete(slices.Clone(l), i, i+1)
	}
	s.list.Store(&l)
}
