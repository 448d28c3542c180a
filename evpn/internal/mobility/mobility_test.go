package mobility

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

func at(s string) route.Addr { return route.AddrFrom(netip.MustParseAddr(s)) }

// RFC 7432, sections 15, 15.1 and 15.2.
func TestBeats(t *testing.T) {
	low, high, six := at("192.0.2.1"), at("192.0.2.200"), at("2001:db8::1")
	for _, c := range []struct {
		what string
		a, b Claim
	}{
		{"the later place", Claim{high, 2, false}, Claim{low, 1, false}},
		{"the later place, by far", Claim{high, 1 << 31, false}, Claim{low, 5, false}},
		{"of equal ones the lower address", Claim{low, 3, false}, Claim{high, 3, false}},
		{"IPv4 before IPv6", Claim{high, 3, false}, Claim{six, 3, false}},
		{"no sequence is 0", Claim{low, 0, false}, Claim{high, 0, false}},
		{"a host that does not move", Claim{high, 0, true}, Claim{low, 9, false}},
		{"of two that do not move the later", Claim{high, 1, true}, Claim{low, 0, true}},
		{"of two that do not move the lower", Claim{low, 0, true}, Claim{high, 0, true}},
	} {
		if !c.a.Beats(&c.b) || c.b.Beats(&c.a) {
			t.Errorf("%s: %+v and %+v", c.what, c.a, c.b)
		}
	}
	if c := (Claim{low, 3, false}); c.Beats(&c) {
		t.Error("a claim beats itself")
	}
}

// All VTEPs agree: whichever claim comes first, and in any company, the best is the same.
func TestBestIsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	claims := make([]Claim, 7)
	best := func() Claim {
		best := claims[0]
		for _, c := range claims[1:] {
			if c.Beats(&best) {
				best = c
			}
		}
		return best
	}
	for range 2000 {
		for i := range claims {
			claims[i] = Claim{at([]string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"}[r.IntN(4)]), uint32(r.IntN(4)), r.IntN(4) == 0}
		}
		want := best()
		for _, c := range claims {
			if c.Beats(&want) {
				t.Fatalf("%+v beats the best, %+v", c, want)
			}
		}
		r.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		if got := best(); got != want {
			t.Fatalf("%+v or %+v: %+v", got, want, claims)
		}
	}
}

// A host that moves there and back gets 1, 2, 3 ..., each VTEP one more than it has seen.
func TestSequences(t *testing.T) {
	var a, b Host
	var c Config
	here := func(h *Host, now int, theirs *Claim, want uint32) Claim {
		t.Helper()
		seq, ok := h.Here(time.Duration(now)*time.Minute, theirs, c)
		if !ok || seq != want {
			t.Errorf("at %d: sequence %d, %v, want %d", now, seq, ok, want)
		}
		return Claim{Sequence: seq}
	}
	x := here(&a, 0, nil, 0)
	b.There(0, &x, c)
	y := here(&b, 10, &x, 1)
	a.There(10*time.Minute, &y, c)
	x = here(&a, 20, &y, 2)
	here(&a, 21, nil, 2) // it says so again
	b.There(20*time.Minute, &x, c)
	a.Gone(30 * time.Minute)
	here(&a, 34, nil, 2) // its withdrawal may not have got round
	a.Gone(40 * time.Minute)
	if a.Forgotten(45*time.Minute, c) || !a.Forgotten(46*time.Minute, c) {
		t.Error("forgotten too early or too late")
	}
	here(&a, 46, nil, 0)
}

// A host on an Ethernet segment speaks at several of its VTEPs: they say one sequence, and it has not moved.
func TestBeside(t *testing.T) {
	var h Host
	for i := range 20 {
		theirs := Claim{Sequence: uint32(i / 4)}
		if seq, ok := h.Beside(&theirs); !ok || seq != uint32(i/4) || h.Duplicate() {
			t.Errorf("at %d: %d, %v, duplicate %v", i, seq, ok, h.Duplicate())
		}
		h.There(time.Duration(i), &theirs, Config{})
	}
	if seq, _ := h.Beside(&Claim{}); seq != 4 {
		t.Errorf("an old claim: %d", seq)
	}
	if seq, _ := h.Here(time.Minute, &Claim{Sequence: 4}, Config{}); seq != 5 {
		t.Errorf("it moves to another segment: %d", seq)
	}
}

// The fifth move in 180 s is one too many, and not the fifth in an hour. What is claimed as a duplicate is cleared by hand.
func TestDuplicates(t *testing.T) {
	for _, x := range []struct {
		every     time.Duration
		duplicate bool
	}{{30 * time.Second, true}, {45 * time.Second, true}, {46 * time.Second, false}, {time.Hour, false}} {
		var h Host
		theirs := Claim{}
		h.There(0, &theirs, Config{})
		for i := range 5 {
			now := time.Duration(i) * x.every
			if seq, ok := h.Here(now, &theirs, Config{}); ok {
				theirs.Sequence = seq
			} else if i < 4 {
				t.Errorf("%v: move %d is refused", x.every, i+1)
			}
			if h.Duplicate() != (x.duplicate && i == 4) {
				t.Errorf("%v: after move %d: duplicate %v", x.every, i+1, h.Duplicate())
			}
		}
		if !x.duplicate {
			continue
		}
		if _, ok := h.Here(time.Hour, nil, Config{}); ok || h.Forgotten(24*time.Hour, Config{}) {
			t.Error("a duplicate is claimed, or forgotten")
		}
		h.Clear()
		if _, ok := h.Here(time.Hour, &theirs, Config{}); !ok || h.Duplicate() {
			t.Error("it is a duplicate after Clear")
		}
	}
	var h Host // which moves between others
	for i := range 6 {
		h.There(time.Duration(i)*time.Second, &Claim{Sequence: uint32(i)}, Config{})
	}
	if !h.Duplicate() {
		t.Error("moves between others are not counted")
	}
}

// Nobody takes over a host that cannot move, and a sequence does not begin anew behind the last.
func TestFixed(t *testing.T) {
	for _, c := range []Claim{{Sticky: true}, {Sequence: MaxSequence}} {
		var h Host
		h.There(0, &c, Config{})
		if seq, ok := h.Here(time.Second, &c, Config{}); ok {
			t.Errorf("%+v is taken over with %d", c, seq)
		}
	}
	var h Host
	last := Claim{Sequence: MaxSequence - 1}
	if seq, ok := h.Here(0, &last, Config{}); !ok || seq != MaxSequence {
		t.Errorf("after the last but one: %d, %v", seq, ok)
	}
	h = Host{} // the claim with the last has gone, and an older one counts
	h.There(0, &Claim{Sequence: MaxSequence}, Config{})
	if seq, ok := h.Here(time.Second, &Claim{Sequence: 3}, Config{}); !ok || seq != MaxSequence {
		t.Errorf("after the last: %d, %v", seq, ok)
	}
}
