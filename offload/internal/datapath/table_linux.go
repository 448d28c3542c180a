package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

const noTunnel = 1 // NO_TUNNEL in bpf/maps.h

// A pairKey is struct pair_key there, a tupleKey struct tuple_key.
type (
	pairKey  [32]byte
	tupleKey [72]byte
)

func (k *OutKey) pair() (b pairKey) {
	binary.NativeEndian.PutUint32(b[:], k.Ifindex)
	binary.NativeEndian.PutUint32(b[4:], k.Tag)
	binary.BigEndian.PutUint32(b[16:], noTunnel)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
	return b
}

func (k *InKey) pair() (b pairKey) {
	copy(b[:], k.Peer[:])
	binary.BigEndian.PutUint32(b[16:], uint32(k.VNI)<<8)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
	return b
}

// tuple returns the key of frames with a tuple.
func (k *pairKey) tuple(t *frame.Tuple) (b tupleKey) {
	etherType := uint16(0x0800)
	if t.Src.Is6() {
		etherType = 0x86dd
	}
	copy(b[:], k[:])
	copy(b[32:48], t.Src.AsSlice())
	copy(b[48:64], t.Dst.AsSlice())
	binary.BigEndian.PutUint16(b[64:], t.SrcPort)
	binary.BigEndian.PutUint16(b[66:], t.DstPort)
	binary.BigEndian.PutUint16(b[68:], etherType)
	b[70] = t.Protocol
	return b
}

// PutOut puts an entry for frames that enter at a port. The slot has been validated before.
func (d *Datapath) PutOut(k OutKey, f *Flow) error {
	if err := f.check(false, uint32(len(d.slots))); err != nil {
		return err
	}
	return d.put(d.objects.Out, k.pair(), &k.Tuple, f)
}

// PutIn puts an entry for frames that come out of a tunnel. The slot has been validated before.
func (d *Datapath) PutIn(k InKey, f *Flow) error {
	if err := f.check(true, uint32(len(d.slots))); err != nil {
		return err
	}
	return d.put(d.objects.In, k.pair(), &k.Tuple, f)
}

func (d *Datapath) put(m *ebpf.Map, pair pairKey, t *frame.Tuple, f *Flow) error {
	key := pair[:]
	if *t != (frame.Tuple{}) {
		whole := pair.tuple(t)
		m, key = d.objects.Tuples, whole[:]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(); err != nil {
		return err
	}
	n, err := d.paths.take(f.Slot, f.Outer.path(), d.objects.Paths)
	if err != nil {
		return err
	}
	value := f.put(n)
	err = m.Update(key, value[:], ebpf.UpdateNoExist)
	switch {
	case errors.Is(err, ebpf.ErrKeyExist):
		return ErrExist
	case isFull(err):
		return ErrFull
	case err != nil:
		return fmt.Errorf("datapath: table %v: %w", m, err)
	}
	return nil
}

// settle waits until no program can have the value of a deleted entry, whose memory the next one gets.
func (d *Datapath) settle() error {
	if !d.deleted {
		return nil
	}
	if err := Grace(); err != nil {
		return err
	}
	d.deleted = false
	return nil
}

// DeleteOut deletes entries; keys without one are no error. Their slots are killed before by whoever owns them, and may
// be used again after [Grace].
func (d *Datapath) DeleteOut(keys ...OutKey) error {
	return d.remove(d.objects.Out, len(keys), func(i int) (pairKey, *frame.Tuple) { return keys[i].pair(), &keys[i].Tuple })
}

// DeleteIn is DeleteOut for entries of frames out of tunnels.
func (d *Datapath) DeleteIn(keys ...InKey) error {
	return d.remove(d.objects.In, len(keys), func(i int) (pairKey, *frame.Tuple) { return keys[i].pair(), &keys[i].Tuple })
}

// remove deletes n entries, from m or, with a tuple, from the table of those.
func (d *Datapath) remove(m *ebpf.Map, n int, key func(int) (pairKey, *frame.Tuple)) error {
	pairs, tuples := make([]pairKey, 0, n), []tupleKey(nil)
	for i := range n {
		if k, t := key(i); *t != (frame.Tuple{}) {
			tuples = append(tuples, k.tuple(t))
		} else {
			pairs = append(pairs, k)
		}
	}
	return errors.Join(remove(d, m, pairs), remove(d, d.objects.Tuples, tuples))
}

func remove[K pairKey | tupleKey](d *Datapath, m *ebpf.Map, keys []K) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(keys) > 0 {
		d.deleted = true
		n, err := m.BatchDelete(keys, nil) // stops at a key that is not there
		if err == nil {
			return nil
		}
		if !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("datapath: table %v: %w", m, err)
		}
		keys = keys[min(n+1, len(keys)):]
	}
	return nil
}

// Misses returns how many frames were misses, since Load.
func (d *Datapath) Misses() (m Misses, err error) {
	for c := range NumCauses {
		var each []uint64 // by processor
		if err := d.objects.Misses.Lookup(uint32(c), &each); err != nil {
			return m, fmt.Errorf("datapath: counter %v: %w", c, err)
		}
		for _, n := range each {
			m[c] += n
		}
	}
	return m, nil
}

func isFull(err error) bool { return errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOMEM) }
