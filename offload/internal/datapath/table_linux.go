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

// ErrExist is returned by Put for a key that has an entry: entries never change.
var ErrExist = errors.New("datapath: the key has an entry; delete it first")

// ErrFull is returned by Put if the table is full.
var ErrFull = errors.New("datapath: the table is full")

// A pairKey is struct pair_key there, a tupleKey struct tuple_key.
type (
	pairKey  [32]byte
	tupleKey [72]byte
)

// A Key identifies the frames of an entry: an OutKey or an InKey.
type Key interface {
	parts() (pairKey, frame.Tuple)
}

func (k OutKey) parts() (b pairKey, t frame.Tuple) {
	binary.NativeEndian.PutUint32(b[:], k.Ifindex)
	binary.NativeEndian.PutUint32(b[4:], k.Tag)
	binary.BigEndian.PutUint32(b[16:], noTunnel)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
	return b, k.Tuple
}

func (k InKey) parts() (b pairKey, t frame.Tuple) {
	copy(b[:], k.Peer[:])
	binary.BigEndian.PutUint32(b[16:], uint32(k.VNI)<<8)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
	return b, k.Tuple
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

// place returns the table of a key, and the key as it is there.
func (d *Datapath) place(k Key) (*ebpf.Map, []byte) {
	pair, t := k.parts()
	if t != (frame.Tuple{}) {
		whole := pair.tuple(&t)
		return d.objects.Tuples, whole[:]
	}
	if _, in := k.(InKey); in {
		return d.objects.In, pair[:]
	}
	return d.objects.Out, pair[:]
}

// Put puts an entry. The slot has been validated before.
func (d *Datapath) Put(k Key, f *Flow) error {
	_, in := k.(InKey)
	if err := f.check(in, uint32(len(d.slots))); err != nil {
		return err
	}
	m, key := d.place(k)
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

// Delete deletes an entry; that there is none is no error. Whoever owns its slot kills that before, and may use it again after
// [Grace].
func (d *Datapath) Delete(k Key) error {
	m, key := d.place(k)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deleted = true
	if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("datapath: table %v: %w", m, err)
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
