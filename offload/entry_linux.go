package offload

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An entry is a flow in the tables of the data path.
type entry struct {
	flow vswitch.Flow
	plan plan
	slot uint32
	item *shares.Item[*entry]

	put     time.Duration // when
	used    time.Duration // when a frame was last seen to be carried, or put
	counted frame.Count   // passed on
	err     error         // of the last try to delete it
}

var (
	errFull     = errors.New("full")      // others have no larger share than the source of the pair
	errDatapath = errors.New("data-path") // the kernel has refused a program or an entry; the log says why
	errMove     = errors.New("moving")    // the next hop has another MAC each time that it is asked for
)

// clock returns the time by the clock of slots.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t)
	return time.Duration(t.Nano())
}

// decide returns the decision about a pair, how it is carried out, and for which epochs both hold: of routed frames those of the
// source and of the next hop, since a change of the gateway's MAC may concern all.
func (o *Offload) decide(p vswitch.Pair) (f vswitch.Flow, how plan, v datapath.Validity, err error) {
	to := p.Dst
	if e := o.entries[p]; e != nil {
		to = receiver(&e.flow)
	}
	for range 3 {
		how.flow.SrcEpoch, how.flow.DstEpoch = o.epoch(p.Src), o.epoch(to)
		v = o.present(&how.flow) // before the tables are read
		if f, err = o.sw.Flow(p); err != nil {
			return f, how, v, err
		}
		if receiver(&f) == to {
			err = o.planFor(&f, &how)
			return f, how, v, err
		}
		to = receiver(&f)
	}
	return f, how, v, errMove
}

// receiver returns the MAC that frames leave for.
func receiver(f *vswitch.Flow) frame.MAC {
	if f.Hop != (frame.Hop{}) {
		return f.Hop.Dst
	}
	return f.Dst
}

func (o *Offload) present(f *datapath.Flow) datapath.Validity {
	return datapath.Validity{Global: o.dp.Epoch(datapath.Global), Src: o.dp.Epoch(f.SrcEpoch), Dst: o.dp.Epoch(f.DstEpoch)}
}

// valid reports whether an entry carries frames now.
func (o *Offload) valid(e *entry) bool {
	return o.dp.Slot(e.slot).Validity() == o.present(&e.plan.flow)
}

// known returns the entry by which packets of a pair are carried while it is valid, nil if there is none: that of all packets of the hosts,
// of those with the Tuple, or of all between the addresses.
func (o *Offload) known(p vswitch.Pair) *entry {
	all, hosts := p, p
	all.Tuple, hosts.Tuple = frame.Tuple{}, p.Tuple.Hosts()
	for _, p := range [...]vswitch.Pair{all, p, hosts} {
		if e := o.entries[p]; e != nil {
			return e
		}
	}
	return nil
}

// add puts a pair, or what the decision about it holds for, and returns its entry.
func (o *Offload) add(p vswitch.Pair) (*entry, error) {
	o.deciding.Add(1)
	defer o.deciding.Add(-1)
	f, how, v, err := o.decide(p)
	if err != nil {
		return nil, err
	}
	if e := o.entries[f.Pair]; e != nil {
		return e, nil
	}
	if err := o.devices.attach(how.need); err != nil {
		o.cfg.Log.Warn("offload: attaching a program", "err", err)
		return nil, errDatapath
	}
	if !o.room(p.From) {
		return nil, errFull
	}
	slot, err := o.takeSlot()
	if err != nil {
		return nil, err
	}
	how.flow.Slot = slot
	e := &entry{flow: f, plan: how, slot: slot}
	o.hold(e, 1) // before a program can find it
	o.dp.Slot(slot).Validate(v)
	err = o.dp.Put(how.key, &how.flow)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.hold(e, -1)
		o.dp.Slot(slot).Kill()
		o.free = append(o.free, slot)
		o.cfg.Log.Warn("offload: putting a flow", "err", err)
		return nil, errDatapath
	}
	e.put = clock()
	e.used = e.put
	e.item = o.order.Add(p.From, e, 1)
	o.entries[f.Pair] = e
	if !o.valid(e) { // by a change since, which stir may have come too early for
		o.stir()
	}
	o.stats.Added++
	return e, nil
}

// evicted is how many flows of one place give way at once: the next entry then waits for a grace period, others not.
const evicted = 64

// room makes room for a flow from a place.
func (o *Offload) room(from frame.Dest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.order.Size() < o.cfg.Flows {
		return true
	}
	for n := range min(evicted, o.cfg.Flows/4+1) {
		x, ok := o.order.Oldest(from, 1)
		if !ok {
			return n > 0
		}
		o.remove(x)
	}
	return true
}

// hold counts the entries of MACs and epochs: Changed voids nothing for other MACs, and does not wake anybody for other epochs, nor does
// Settle wait.
func (o *Offload) hold(e *entry, n int) {
	o.entriesOf(e.flow.Src).Add(uint32(n))
	o.entriesOf(receiver(&e.flow)).Add(uint32(n))
	o.held[e.plan.flow.SrcEpoch].Add(uint32(n))
	o.held[e.plan.flow.DstEpoch].Add(uint32(n))
}

// remove takes an entry out. Its slot waits for a grace period. o.mu is held.
func (o *Offload) remove(e *entry) {
	if o.valid(e) { // else Changed has said so
		o.unsettled.Store(true)
	}
	o.dp.Slot(e.slot).Kill()
	if e.err = o.dp.Delete(e.plan.key); e.err != nil {
		o.cfg.Log.Warn("offload: deleting a flow", "err", e.err)
	}
	o.order.Remove(e.item)
	delete(o.entries, e.flow.Pair)
	o.hold(e, -1)
	o.dying = append(o.dying, e)
	o.stats.Removed++
}

// takeSlot returns a slot that no program knows.
func (o *Offload) takeSlot() (uint32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.free) == 0 && int(o.next) == o.dp.Slots() {
		if err := o.bury(); err != nil {
			return 0, err
		}
		if len(o.free) == 0 {
			return 0, errFull
		}
	}
	if n := len(o.free); n > 0 {
		slot := o.free[n-1]
		o.free = o.free[:n-1]
		return slot, nil
	}
	o.next++
	return o.next - 1, nil
}

// bury counts the last frames of removed entries, and frees their slots. o.mu is held.
func (o *Offload) bury() error {
	if len(o.dying) == 0 {
		return nil
	}
	if err := o.grace(); err != nil {
		return err
	}
	o.dying = slices.DeleteFunc(o.dying, func(e *entry) bool {
		o.count(e)
		if e.err != nil { // the program may find it: it keeps its slot until after the next grace period
			e.err = o.dp.Delete(e.plan.key)
			return false
		}
		o.dp.Slot(e.slot).Clear()
		o.free = append(o.free, e.slot)
		return true
	})
	return nil
}

// renew asks again about the entries that are void.
func (o *Offload) renew() {
	o.deciding.Add(1)
	defer o.deciding.Add(-1)
	o.round = newRound()
	renewed := uint64(0)
	var others []vswitch.Pair // that go another way: put together, since the first one waits for a grace period
	for _, e := range o.entries {
		if o.valid(e) {
			continue
		}
		f, how, v, err := o.decide(e.flow.Pair)
		how.flow.Slot = e.slot
		if err == nil && how.same(&e.plan) && receiver(&f) == receiver(&e.flow) && o.devices.with[how.need] != nil { // else add attaches a program
			o.mu.Lock()
			o.count(e)
			e.flow = f
			o.mu.Unlock()
			o.dp.Slot(e.slot).Validate(v)
			renewed++
			continue
		}
		o.mu.Lock()
		o.remove(e)
		o.mu.Unlock()
		if err == nil {
			others = append(others, f.Pair)
		}
	}
	for _, p := range others {
		_, _ = o.add(p) // if there is no room, a hint will come
	}
	o.mu.Lock()
	o.stats.Renewed += renewed
	o.mu.Unlock()
}

// tick counts, and removes flows that nobody uses.
func (o *Offload) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.collect()
	now := clock()
	for _, e := range o.entries {
		if now-e.used >= o.cfg.Idle {
			o.remove(e)
		}
	}
	o.routes.keep(o.entries)
	_ = o.bury() // or with the next tick
}

// collect passes on what the flows have carried since the last time. o.mu is held.
func (o *Offload) collect() {
	for _, e := range o.entries {
		o.count(e)
	}
	for _, e := range o.dying {
		o.count(e)
	}
}

// count passes on what a flow has carried. o.mu is held.
func (o *Offload) count(e *entry) {
	packets, bytes, last := o.dp.Slot(e.slot).Counters()
	n := frame.Count{Frames: packets - e.counted.Frames, Bytes: bytes - e.counted.Bytes}
	if n == (frame.Count{}) { // bytes alone are of a frame that was counted before them
		return
	}
	e.counted = frame.Count{Frames: packets, Bytes: bytes}
	e.used = max(e.used, last)
	if e.item.Size != 0 {
		o.order.Renew(e.item)
	}
	o.stats.Carried.Frames += n.Frames
	o.stats.Carried.Bytes += n.Bytes
	o.sw.Carried(&e.flow, n)
	if v := e.plan.rx; v != nil {
		v.Carried(e.flow.From.Peer(), n, frame.Count{})
	}
	if v := e.plan.tx; v != nil {
		v.Carried(e.flow.To.Peer(), frame.Count{}, n)
	}
}

// show returns an entry as users see it. o.mu is held.
func (o *Offload) show(e *entry, now time.Duration) Entry {
	f := &e.flow
	return Entry{
		VNI: f.VNI, From: f.From, Tag: f.Tag, Src: f.Src, Dst: f.Dst, Tuple: f.Tuple, Hop: f.Hop, To: f.To, Carried: e.counted,
		Age: now - e.put, Idle: max(now-e.used, 0), Valid: o.valid(e),
	}
}
