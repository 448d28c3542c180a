package offload

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/shares"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	maxHints   = 1024                 // that wait
	maxRefused = 256                  // pairs of one place that are not asked for again within a second
	maxOffered = 1024                 // pairs of one place that are asked for in a second
	calm       = 5 * time.Millisecond // between two rounds of asking again
)

// An Offload carries flows of one switch. Its methods are safe for concurrent use.
type Offload struct {
	sw  *vswitch.Switch
	cfg Config
	dp  *datapath.Datapath
	key mix.Key // of epochs

	hints chan vswitch.Pair
	lost  atomic.Uint64                  // hints
	wake  chan struct{}                  // something is void
	held  [datapath.Epochs]atomic.Uint32 // entries that depend on an epoch
	macs  [1 << 16]atomic.Uint32         // entries that depend on a MAC, by its hash

	deciding  atomic.Int32 // decisions that are being made: what they depend on is not in macs yet
	unsettled atomic.Bool  // entries were void, or removed, since the last Settle: programs may be at work with them
	ending    sync.Once
	done      chan struct{}
	ended     sync.WaitGroup

	// Of the goroutine.
	home    *home
	routes  *routes
	devices devices
	refused map[vswitch.Pair]struct{} // in this second
	asked   map[frame.Dest]asked      // likewise, by place
	round   round
	vteps   map[*vtep.VTEP]func() // that say when they change, until this is called

	gate sync.RWMutex // held to write while the data path is closed
	shut bool         // it is

	mu      sync.Mutex // guards what follows; only the goroutine changes entries
	closed  bool       // nothing is carried, nor counted
	entries map[vswitch.Pair]*entry
	order   shares.List[*entry]
	dying   []*entry // removed, with frames perhaps still on their way
	free    []uint32 // slots
	next    uint32   // slot never used
	stats   Stats
}

// New has flows of the switch carried from now on, in the network namespace of the calling thread. The error says in one line why
// that does not work here. A nil cfg means defaults. Close the Offload before or after the switch.
func New(sw *vswitch.Switch, cfg *Config) (*Offload, error) {
	o, err := newOffload(sw, cfg)
	if err == nil {
		o.ended.Go(o.run)
	}
	return o, err
}

// newOffload is New without the goroutine.
func newOffload(sw *vswitch.Switch, cfg *Config) (*Offload, error) {
	o := &Offload{
		sw: sw, key: mix.New(), hints: make(chan vswitch.Pair, maxHints), wake: make(chan struct{}, 1), done: make(chan struct{}),
		refused: map[vswitch.Pair]struct{}{}, entries: map[vswitch.Pair]*entry{}, asked: map[frame.Dest]asked{}, vteps: map[*vtep.VTEP]func(){},
		stats: Stats{Refused: map[string]uint64{}},
	}
	if cfg != nil {
		o.cfg = *cfg
	}
	err := o.cfg.complete()
	if err != nil {
		return nil, err
	}
	if err := o.open(); err != nil {
		o.release()
		return nil, fmt.Errorf("offload: %w", err)
	}
	return o, nil
}

func (o *Offload) open() (err error) {
	if o.dp, err = datapath.Load(o.cfg.Flows); err != nil {
		return err
	}
	if o.home, err = openHome(); err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	if o.routes, err = newRoutes(o.home); err != nil {
		return fmt.Errorf("following routes: %w", err)
	}
	o.devices = devices{dp: o.dp, home: o.home}
	return o.sw.SetOffload(o)
}

// release closes what open has opened.
func (o *Offload) release() (err error) {
	if o.routes != nil {
		o.routes.close()
	}
	if o.home != nil {
		o.home.close()
	}
	if o.dp != nil {
		err = o.dp.Close()
	}
	return err
}

// Close ends the carrying of flows: from its return on, all frames go through the switch. It is idempotent.
func (o *Offload) Close() (err error) {
	o.ending.Do(func() { err = o.end() })
	return err
}

func (o *Offload) end() error {
	close(o.done)
	o.ended.Wait()
	o.dp.Bump(datapath.Global) // nobody validates any more
	err := errors.Join(datapath.Grace(), o.devices.close())
	o.mu.Lock()
	o.collect()
	o.closed = true
	clear(o.entries)
	o.dying = nil
	o.mu.Unlock()
	o.unwatch()
	_ = o.sw.SetOffload(nil) // an error says that the switch is closed
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gate.Lock()
	defer o.gate.Unlock()
	o.shut = true
	return errors.Join(err, o.release())
}

// Hint implements vswitch.Offload.
func (o *Offload) Hint(p vswitch.Pair) {
	select {
	case o.hints <- p:
	default:
		o.lost.Add(1)
	}
}

// Changed implements vswitch.Offload.
func (o *Offload) Changed(_ frame.VNI, mac frame.MAC) {
	o.gate.RLock()
	defer o.gate.RUnlock()
	if o.shut {
		return
	}
	i := uint32(datapath.Global)
	if !mac.IsZero() {
		// Most MACs of a control plane have no flow, and share an epoch with some that have. The order is what matters: deciding is set
		// before the tables are read, and cleared after macs are.
		if o.deciding.Load() == 0 && o.entriesOf(mac).Load() == 0 {
			return
		}
		i = o.epoch(mac)
	}
	o.dp.Bump(i)
	if i == datapath.Global || o.held[i].Load() != 0 {
		o.unsettled.Store(true)
		o.stir()
	}
}

// epoch returns the epoch that counts the changes of a MAC, in any segment.
func (o *Offload) epoch(mac frame.MAC) uint32 {
	return uint32(o.key.Hash64(mac.Uint64())%(datapath.Epochs-1)) + 1
}

// entriesOf counts the entries that depend on a MAC, and on others with part of its hash, another part than that of the epoch.
func (o *Offload) entriesOf(mac frame.MAC) *atomic.Uint32 {
	return &o.macs[o.key.Hash64(mac.Uint64())>>48]
}

func (o *Offload) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Settle implements vswitch.Offload. There is nothing to wait for if no entry has become void since the last time: what a control
// plane adds is in force at once.
func (o *Offload) Settle() {
	if !o.unsettled.Swap(false) {
		return
	}
	if o.grace() != nil {
		o.unsettled.Store(true)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.collect()
	}
}

// grace waits for the programs that are at work. Why it cannot, the log says.
func (o *Offload) grace() error {
	if err := datapath.Grace(); err != nil {
		o.cfg.Log.Error("offload: waiting for the programs", "err", err)
		return errDatapath
	}
	return nil
}

// run takes hints, asks again and counts until Close.
func (o *Offload) run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	wake, changed := o.wake, o.routes.changed
	var again <-chan time.Time
	rest := func(begun time.Time) { again = time.After(max(calm, time.Since(begun))) } // half of the time at most
	for {
		select {
		case <-o.done:
			return
		case p := <-o.hints:
			o.offer(p)
		case <-wake:
			begun := time.Now()
			o.renew()
			wake = nil
			rest(begun)
		case <-again:
			wake, changed, again = o.wake, o.routes.changed, nil
		case <-changed:
			begun := time.Now()
			o.rerouted()
			changed = nil
			rest(begun)
		case <-tick.C:
			clear(o.refused)
			clear(o.asked)
			o.tick()
			o.unwatch()
		}
	}
}

// rerouted voids all decisions after a change of routes, addresses or devices, if one may depend on it.
func (o *Offload) rerouted() {
	x := o.routes.take()
	if o.routes.differ() || x.changed {
		o.dp.Bump(datapath.Global)
		o.stir()
	}
	o.devices.tidy(x)
}

// offer puts a pair that was hinted, and its other direction.
func (o *Offload) offer(p vswitch.Pair) {
	if e := o.known(p); e != nil {
		if !o.valid(e) {
			o.stir()
		}
		return
	}
	n := o.asked[p.From]
	if _, no := o.refused[p]; no || n.refused == maxRefused || n.offered == maxOffered {
		return
	}
	n.offered++
	o.round = newRound()
	from := p.From
	e, why := o.add(p)
	if why == nil && e.flow.Hop == (frame.Hop{}) { // what is routed comes back by another gateway, perhaps
		back := vswitch.Pair{From: e.flow.To, Tag: e.flow.OutTag, Src: p.Dst, Dst: p.Src}
		if p.Tuple != (frame.Tuple{}) {
			back.Tuple = p.Tuple.Back()
		}
		if o.entries[back] == nil {
			_, why = o.add(back)
			p = back
		}
	}
	if why != nil {
		n.refused++
		o.refused[p] = struct{}{}
		o.mu.Lock()
		o.stats.Refused[why.Error()]++
		o.mu.Unlock()
	}
	o.asked[from] = n
}

// asked is what has been asked for pairs from one place in this second.
type asked struct{ offered, refused int }

// Flows iterates over the flows that are carried, in no order.
func (o *Offload) Flows() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		o.mu.Lock()
		list := make([]Entry, 0, len(o.entries))
		now := clock()
		if !o.closed {
			o.collect()
			for _, e := range o.entries {
				list = append(list, o.show(e, now))
			}
		}
		o.mu.Unlock()
		for _, e := range list {
			if !yield(e) {
				return
			}
		}
	}
}

// Stats returns a snapshot of the counters.
func (o *Offload) Stats() (Stats, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.collect()
	}
	st := o.stats
	st.Flows, st.HintsLost = len(o.entries), o.lost.Load()
	st.Refused, st.Misses = maps.Clone(o.stats.Refused), map[string]uint64{}
	if o.closed {
		return st, nil
	}
	m, err := o.dp.Misses()
	for c, n := range m.All() {
		st.Misses[c.String()] = n
	}
	return st, err
}
