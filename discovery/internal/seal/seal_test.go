package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"
)

var (
	a    = netip.MustParseAddr("192.0.2.1")
	b    = netip.MustParseAddr("2001:db8::2")
	keys = Keys{1: []byte("old"), 2: []byte("new")}
	noon = time.Unix(1e9, 0)
)

func TestOpen(t *testing.T) {
	var s Sealer
	one, two := s.Seal(keys, 1, a, b, noon, []byte("one")), s.Seal(keys, 2, a, b, noon, []byte("two"))
	flipped := bytes.Clone(one)
	flipped[header] ^= 1
	var o Opener
	for _, c := range []struct {
		what     string
		keys     Keys
		from, to netip.Addr
		now      time.Time
		datagram []byte
		payload  string
		err      error
	}{
		{"changed", keys, a, b, noon, flipped, "", ErrKey},
		{"wrong key", Keys{1: []byte("other")}, a, b, noon, one, "", ErrKey},
		{"no key", nil, a, b, noon, one, "", ErrKey},
		{"other sender", keys, b, b, noon, one, "", ErrKey},
		{"other receiver", keys, a, a, noon, one, "", ErrKey},
		{"late", keys, a, b, noon.Add(Window + 1), one, "", ErrTime},
		{"early", keys, a, b, noon.Add(-Window - 1), one, "", ErrTime},
		{"short", keys, a, b, noon, one[:Overhead-1], "", ErrFormat},
		{"good", keys, a, b, noon.Add(Window), one, "one", nil},
		{"replayed", keys, a, b, noon, one, "", ErrTime},
		{"the next key", keys, a, b, noon, two, "two", nil},
		{"again", keys, a, b, noon, two, "", ErrTime},
	} {
		if got, err := o.Open(c.keys, c.from, c.to, c.now, c.datagram); string(got) != c.payload || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, want %q, %v", c.what, got, err, c.payload, c.err)
		}
	}
}

// A datagram may be overtaken by 15 others, and comes once.
func TestOrder(t *testing.T) {
	var s Sealer
	var all [][]byte
	for range 18 {
		all = append(all, s.Seal(keys, 1, a, b, noon, nil))
	}
	for i, want := range []error{nil, ErrTime} {
		var o Opener
		for _, d := range all[2 : 17+i] {
			if _, err := o.Open(keys, a, b, noon, d); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.Open(keys, a, b, noon, all[1]); !errors.Is(err, want) {
			t.Errorf("after %d others: %v, want %v", 15+i, err, want)
		}
		if _, err := o.Open(keys, a, b, noon, all[1]); !errors.Is(err, ErrTime) {
			t.Errorf("a second time: %v, want %v", err, ErrTime)
		}
	}
}

// After a clock was set back, datagrams are taken again, each once: that of the sender alone, or all clocks.
func TestSetBack(t *testing.T) {
	for _, x := range []struct {
		what           string
		sender, before time.Duration // how far the clocks of sender and receiver are ahead at first
	}{
		{"the sender's, by an hour", time.Hour, 0},
		{"the sender's, by less than the window", Window / 2, 0},
		{"both, by an hour", time.Hour, time.Hour},
		{"both, by a little", time.Second, time.Second},
	} {
		var s Sealer
		var o Opener
		for range 20 {
			o.Open(keys, a, b, noon.Add(x.before), s.Seal(keys, 1, a, b, noon.Add(x.sender), nil))
		}
		for range 20 {
			d := s.Seal(keys, 1, a, b, noon, nil)
			if _, err := o.Open(keys, a, b, noon, d); err != nil {
				t.Fatalf("%s: %v", x.what, err)
			}
			if _, err := o.Open(keys, a, b, noon, d); !errors.Is(err, ErrTime) {
				t.Fatalf("%s: a second time: %v", x.what, err)
			}
		}
	}
}

// No more senders are remembered than the limit; those that the clock refuses make room.
func TestSenders(t *testing.T) {
	var o Opener
	open := func(n uint32, now time.Time) error {
		var s Sealer
		from := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
		_, err := o.Open(keys, from, b, now, s.Seal(keys, 1, from, b, now, nil))
		return err
	}
	for n := range uint32(MaxSenders) {
		if err := open(n, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(MaxSenders, noon); !errors.Is(err, ErrSenders) {
		t.Errorf("%v, want %v", err, ErrSenders)
	}
	if err := open(MaxSenders, noon.Add(Window+1)); err != nil {
		t.Error(err)
	}
}

// Nobody without a key makes a datagram, and one that was sealed is opened as it was, but with no bit of it changed.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("one"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, d []byte) {
		d = d[:min(len(d), 1200)]
		var s Sealer
		var o Opener
		if _, err := o.Open(keys, a, b, noon, d); err == nil {
			t.Errorf("%x is taken", d)
		}
		sealed := s.Seal(keys, 1, a, b, noon, d)
		for i := range sealed {
			sealed[i] ^= 1
			if _, err := o.Open(keys, a, b, noon, sealed); err == nil {
				t.Errorf("%x is taken with byte %d changed", d, i)
			}
			sealed[i] ^= 1
		}
		if p, err := o.Open(keys, a, b, noon, sealed); err != nil || !bytes.Equal(p, d) {
			t.Errorf("%x: %x, %v", d, p, err)
		}
	})
}
