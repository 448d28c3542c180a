package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	outKeyLen   = 20 // struct out_key in bpf/maps.h
	inKeyLen    = 32 // struct in_key
	tupleKeyLen = 72 // struct tuple_key
	noTunnel    = 1  // NO_TUNNEL
)

// A tupleKey is struct tuple_key.
type tupleKey [tupleKeyLen]byte

// put appends what is in b from the 33rd byte on.
func (b *tupleKey) put(t *frame.Tuple) {
	etherType := uint16(0x0800)
	if t.Src.Is6() {
		etherType = 0x86dd
	}
	copy(b[32:48], t.Src.AsSlice())
	copy(b[48:64], t.Dst.AsSlice())
	binary.BigEndian.PutUint16(b[64:], t.SrcPort)
	binary.BigEndian.PutUint16(b[66:], t.DstPort)
	binary.BigEndian.PutUint16(b[68:], etherType)
	b[70] = t.Protocol
}

func (k *OutKey) put(b []byte) {
	binary.NativeEndian.PutUint32(b, k.Ifindex)
	copy(b[4:], k.Dst[:])
	copy(b[10:], k.Src[:])
	binary.NativeEndian.PutUint32(b[16:], k.Tag)
}

func (k *OutKey) tuple() (b tupleKey) {
	binary.NativeEndian.PutUint32(b[:], k.Ifindex)
	binary.NativeEndian.PutUint32(b[4:], k.Tag)
	binary.BigEndian.PutUint32(b[16:], noTunnel)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
	b.put(&k.Tuple)
	return b
}

func (k *InKey) put(b []byte) {
	copy(b, k.Peer[:])
	binary.BigEndian.PutUint32(b[16:], uint32(k.VNI)<<8)
	copy(b[20:], k.Dst[:])
	copy(b[26:], k.Src[:])
}

func (k *InKey) tuple() (b tupleKey) {
	k.put(b[:])
	b.put(&k.Tuple)
	return b
}

// PutOut puts an entry for frames that enter at a port. The slot has been validated before.
func (d *Datapath) PutOut(k OutKey, f *Flow) error {
	if err := f.check(false, uint32(len(d.slots))); err != nil {
		return err
	}
	if k.Tuple != (frame.Tuple{}) {
		key := k.tuple()
		return d.put(d.objects.Tuples, key[:], f)
	}
	var key [outKeyLen]byte
	k.put(key[:])
	return d.put(d.objects.Out, key[:], f)
}

// PutIn puts an entry for frames that come out of a tunnel. The slot has been validated before.
func (d *Datapath) PutIn(k InKey, f *Flow) error {
	if err := f.check(true, uint32(len(d.slots))); err != nil {
		return err
	}
	if k.Tuple != (frame.Tuple{}) {
		key := k.tuple()
		return d.put(d.objects.Tuples, key[:], f)
	}
	var key [inKeyLen]byte
	k.put(key[:])
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
	pairs, tuples := make([][outKeyLen]byte, 0, len(keys)), []tupleKey(nil)
	for i := range keys {
		if k := &keys[i]; k.Tuple != (frame.Tuple{}) {
			tuples = append(tuples, k.tuple())
		} else {
			var b [outKeyLen]byte
			k.put(b[:])
			pairs = append(pairs, b)
		}
	}
	return errors.Join(remove(d, d.objects.Out, pairs), remove(d, d.objects.Tuples, tuples))
}

// DeleteIn is DeleteOut for entries of frames out of tunnels.
func (d *Datapath) DeleteIn(keys ...InKey) error {
	pairs, tuples := make([][inKeyLen]byte, 0, len(keys)), []tupleKey(nil)
	for i := range keys {
		if k := &keys[i]; k.Tuple != (frame.Tuple{}) {
			tuples = append(tuples, k.tuple())
		} else {
			var b [inKeyLen]byte
			k.put(b[:])
			pairs = append(pairs, b)
		}
	}
	return errors.Join(remove(d, d.objects.In, pairs), remove(d, d.objects.Tuples, tuples))
}

func remove[K [outKeyLen]byte | [inKeyLen]byte | tupleKey](d *Datapath, m *ebpf.Map, keys []K) error {
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
