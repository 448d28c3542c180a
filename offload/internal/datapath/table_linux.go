package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const (
	outKeyLen = 20 // struct out_key in bpf/maps.h
	inKeyLen  = 32 // struct in_key
)

func (k *OutKey) put(b *[outKeyLen]byte) {
	binary.NativeEndian.PutUint32(b[:], k.Ifindex)
	copy(b[4:], k.Dst[:])
	copy(b[10:], k.Src[:])
	binary.NativeEndian.PutUint32(b[16:], k.Tag)
}

func (k *InKey) put(b *[inKeyLen]byte) {
	copy(b[:], k.Peer[:])
	binary.BigEndian.PutUint32(b[16:], uint32(k.VNI)<<8)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
}

// PutOut puts an entry for frames that enter at a port. The slot has been validated before.
func (d *Datapath) PutOut(k OutKey, f *Flow) error {
	if err := f.check(false, uint32(len(d.slots))); err != nil {
		return err
	}
	var key [outKeyLen]byte
	k.put(&key)
	return d.put(d.objects.Out, key[:], f)
}

// PutIn puts an entry for frames that come out of a tunnel. The slot has been validated before.
func (d *Datapath) PutIn(k InKey, f *Flow) error {
	if err := f.check(true, uint32(len(d.slots))); err != nil {
		return err
	}
	var key [inKeyLen]byte
	k.put(&key)
	return d.put(d.objects.In, key[:], f)
}

func (d *Datapath) put(m *ebpf.Map, key []byte, f *Flow) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(); err != nil {
		return err
	}
	var value [flowLen]byte
	f.put(&value)
	err := m.Update(key, value[:], ebpf.UpdateNoExist)
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
	b := make([][outKeyLen]byte, len(keys))
	for i := range keys {
		keys[i].put(&b[i])
	}
	return remove(d, d.objects.Out, b)
}

// DeleteIn is DeleteOut for entries of table in.
func (d *Datapath) DeleteIn(keys ...InKey) error {
	b := make([][inKeyLen]byte, len(keys))
	for i := range keys {
		keys[i].put(&b[i])
	}
	return remove(d, d.objects.In, b)
}

func remove[K [outKeyLen]byte | [inKeyLen]byte](d *Datapath, m *ebpf.Map, keys []K) error {
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
