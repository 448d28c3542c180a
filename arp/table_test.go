package arp

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

func claim(ip netip.Addr, m frame.MAC, from frame.Dest) *Claim {
	return &Claim{IP: ip, MAC: m, From: from}
}

func kinds(es []frame.Event) (k []string) {
	for _, e := range es {
		k = append(k, e.Kind.String())
	}
	return k
}

func (l *lab) learns(c *Claim, want LearnOutcome) {
	l.t.Helper()
	if o := l.table.Learn(c, l.now); o != want {
		l.t.Errorf("%+v: %v, want %v", *c, o, want)
	}
}

func TestLearn(t *testing.T) {
	l := newLab(t, nil, Config{})
	l.learns(claim(ip4(1), mac(1), port1), New)
	l.learns(claim(ip4(1), mac(1), port1), Known)
	l.learns(claim(ip6(1), mac(1), port1), New)
	l.now = 7
	l.learns(claim(ip4(1), mac(1), port2), Known) // on another port
	if e, _ := l.table.Lookup(ip4(1)); e.From != port2 || e.Seen != 7 || e.State != Reachable || e.Origin != Snooped {
		t.Errorf("%+v", e)
	}
	l.learns(claim(ip4(1), mac(2), peer3), Moved)
	if h := l.table.Resolve(ip4(1)); h.MAC() != mac(2).Uint64() || !h.Remote() {
		t.Errorf("%+v", h)
	}
	if e, _ := l.table.Lookup(ip4(1)); e.MAC != mac(2) || e.From != peer3 || e.Moves != 1 {
		t.Errorf("%+v", e)
	}
	for _, c := range []*Claim{
		claim(ip4(0), mac(1), port1), // 192.0.2.0 is a host for all we know
	} {
		l.learns(c, New)
	}
	for _, s := range []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1", "::ffff:1.2.3.4", "fe80::1%eth0"} {
		l.learns(claim(netip.MustParseAddr(s), mac(1), port1), Invalid)
	}
	l.learns(claim(netip.Addr{}, mac(1), port1), Invalid)
	l.learns(claim(ip4(9), frame.MAC{}, port1), Invalid)
	l.learns(claim(ip4(9), frame.Broadcast, port1), Invalid)
	if st := l.table.Stats(); st.Entries != 3 || st.Snooped != 3 || st.Learned != 3 || st.Moved != 1 || st.Invalid != 13 {
		t.Errorf("%+v", st)
	}
	if got := kinds(l.events); !slices.Equal(got, []string{"neighbour-learned", "neighbour-learned", "neighbour-moved", "neighbour-moved", "neighbour-learned"}) {
		t.Error(got)
	}
	if e := l.events[2]; e.MAC != mac(1) || e.OldMAC != mac(1) || e.Dest != port2 {
		t.Errorf("%+v", e)
	}
	if e := l.events[3]; e.VNI != 100 || e.IP != ip4(1) || e.MAC != mac(2) || e.OldMAC != mac(1) || e.Dest != peer3 {
		t.Errorf("%+v", e)
	}
}

// Static entries never change by what is heard, control entries only by a host here.
func TestOrigins(t *testing.T) {
	l := newLab(t, nil, Config{})
	must(t, l.table.Set(ip4(1), mac(1), Static, 0))
	must(t, l.table.Set(ip4(2), mac(2), Control, 0))
	l.learns(claim(ip4(1), mac(9), port1), Refused)
	l.learns(claim(ip4(1), mac(1), port1), Known)
	l.learns(claim(ip4(2), mac(9), peer3), Refused)
	l.learns(claim(ip4(2), mac(9), 9<<16|0xffff), Refused) // a peer without a number
	l.learns(claim(ip4(2), mac(9), port1), Moved)
	if e, _ := l.table.Lookup(ip4(2)); e.Origin != Snooped || e.MAC != mac(9) || e.State != Reachable {
		t.Errorf("%+v", e)
	}
	if st := l.table.Stats(); st.Snooped != 1 || st.Refused != 3 {
		t.Errorf("%+v", st)
	}
	must(t, l.table.Set(ip4(2), mac(2), Static, 0)) // by hand: whatever was there
	if e, _ := l.table.Lookup(ip4(2)); e.Origin != Static || e.MAC != mac(2) || e.State != Permanent {
		t.Errorf("%+v", e)
	}
	if st := l.table.Stats(); st.Snooped != 0 || st.Entries != 2 {
		t.Errorf("%+v", st)
	}
	l.now = 10000
	l.table.Sweep(l.now, nil)
	if l.table.Len() != 2 {
		t.Error("aged")
	}
	l.learns(claim(ip4(3), mac(3), port1), New)
	l.table.Flush()
	if l.table.Len() != 2 || !l.table.Delete(ip4(1)) || l.table.Delete(ip4(1)) || l.table.Len() != 1 {
		t.Error("Flush, Delete")
	}
	for _, err := range []error{
		l.table.Set(netip.Addr{}, mac(1), Static, 0), l.table.Set(ip4(1), frame.Broadcast, Static, 0), l.table.Set(ip4(1), mac(1), Snooped, 0),
	} {
		if err == nil {
			t.Error("set")
		}
	}
}

func TestLimits(t *testing.T) {
	l := newLab(t, &TableConfig{VNI: 100, Limit: 5, PerDest: 3}, Config{})
	for n := range byte(5) {
		want := New
		if n >= 3 {
			want = Full
		}
		l.learns(claim(ip4(n), mac(n), port1), want)
	}
	l.learns(claim(ip4(10), mac(10), port2), New)
	l.learns(claim(ip4(11), mac(11), port2), New)
	l.learns(claim(ip4(12), mac(12), port2), Full) // in all
	must(t, l.table.Set(ip4(13), mac(13), Static, 0))
	l.learns(claim(ip4(0), mac(0x20), port2), Moved) // none more than before
	l.table.Delete(ip4(1))
	l.learns(claim(ip4(3), mac(3), port1), New)
	if st := l.table.Stats(); st.Full != 3 || st.Entries != 6 || st.Snooped != 5 {
		t.Errorf("%+v", st)
	}

	// Port 2 has its three now: nobody moves there, and those who are there stay as they like.
	was, _ := l.table.Lookup(ip4(2))
	l.now++
	l.learns(claim(ip4(2), mac(2), port2), Full)
	l.learns(claim(ip4(2), mac(0x22), port2), Full)
	if e, _ := l.table.Lookup(ip4(2)); e != was {
		t.Errorf("%+v, was %+v", e, was)
	}
	l.learns(claim(ip4(10), mac(10), port2), Known)
	l.learns(claim(ip4(10), mac(0x2a), port2), Moved)
	// An entry that was set counts once it has given way.
	must(t, l.table.Set(ip4(13), mac(13), Control, 0))
	l.table.Delete(ip4(2))
	l.learns(claim(ip4(13), mac(0x2d), port2), Full) // at its port
	l.learns(claim(ip4(13), mac(0x2d), port1), Moved)
	must(t, l.table.Set(ip4(14), mac(14), Control, 0))
	l.learns(claim(ip4(14), mac(0x2e), port1), Full) // in all
	if st := l.table.Stats(); st.Full != 7 || st.Entries != 6 || st.Snooped != 5 {
		t.Errorf("%+v", st)
	}
	for _, c := range []struct {
		cfg  TableConfig
		name string
	}{
		{TableConfig{VNI: 1 << 24}, "VNI"}, {TableConfig{Limit: -1}, "Limit"}, {TableConfig{PerDest: -1}, "PerDest"},
		{TableConfig{Ageing: time.Millisecond}, "Ageing"}, {TableConfig{DuplicateWindow: time.Millisecond}, "DuplicateWindow"},
		{TableConfig{DuplicateWindow: -1}, "DuplicateWindow"},
	} {
		if _, err := NewTable(&c.cfg); err == nil || !strings.Contains(err.Error(), "TableConfig."+c.name+": ") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// A limit as large as a number gets is no limit, and a time that no tick can tell is refused.
func TestLargeSettings(t *testing.T) {
	l := newLab(t, &TableConfig{Limit: math.MaxInt}, Config{})
	l.learns(claim(ip4(1), mac(1), port1), New)
	const wraps = (1<<32 + 1) * time.Second
	for field, err := range map[string]error{
		"Ageing":          (&TableConfig{Ageing: wraps}).Check(),
		"DuplicateWindow": (&TableConfig{DuplicateWindow: wraps}).Check(),
	} {
		if err == nil || !strings.Contains(err.Error(), field+": 1193046h28m17s: must be 1s to 596523h14m7s") {
			t.Errorf("%s: %v", field, err)
		}
	}
	cfg := Config{Table: l.table, MissTimeout: wraps}
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "MissTimeout: 1193046h28m17s: must be 1s to 596523h14m7s") {
		t.Error(err)
	}
}

// An address that goes back and forth is a duplicate after five moves in 180 seconds; one
// that moves now and then is none.
func TestDuplicates(t *testing.T) {
	for _, freeze := range []bool{false, true} {
		l := newLab(t, &TableConfig{VNI: 100, Freeze: freeze}, Config{Mode: Suppress})
		l.learns(claim(ip4(1), mac(0), port1), New)
		for n := range byte(20) { // each window sees four
			l.now += 50
			l.learns(claim(ip4(1), mac((n+1)%2), port1), Moved)
		}
		if st := l.table.Stats(); st.Duplicates != 0 {
			t.Fatalf("%+v", st)
		}
		l.now += 1000
		l.events = nil
		for n := range byte(5) {
			l.now++
			want := Moved
			if freeze && n == 4 {
				want = Refused
			}
			l.learns(claim(ip4(1), mac((n+1)%2), port1), want)
		}
		if st := l.table.Stats(); st.Duplicates != 1 {
			t.Errorf("%+v", st)
		}
		var dup []frame.Event
		for _, e := range l.events {
			if e.Kind == frame.EventNeighbourDuplicate {
				dup = append(dup, e)
			}
		}
		if len(dup) != 1 || dup[0].IP != ip4(1) || dup[0].MAC != mac(1) || dup[0].OldMAC != mac(0) || dup[0].VNI != 100 {
			t.Errorf("%+v", dup)
		}
		if !freeze {
			continue
		}
		// It is neither followed nor answered for, for the ageing time and no longer, however
		// often it is claimed.
		l.fdb[mac(0)] = peer3
		for range 299 {
			l.learns(claim(ip4(1), mac(0), port1), Refused)
			l.learns(claim(ip4(1), mac(1), port1), Refused)
			if v, b, _ := l.say(port2, question(false, 2, 1)); v != frame.Continue || b != Frozen {
				t.Errorf("%v, %v", v, b)
			}
			l.now++
			l.r.Housekeep(l.now)
		}
		if e, ok := l.table.Lookup(ip4(1)); !ok || e.State != Duplicate || e.MAC != mac(0) {
			t.Errorf("%+v", e)
		}
		if h := l.table.Resolve(ip4(1)); h != 0 {
			t.Errorf("packets go to %+v", h)
		}
		l.now++
		l.r.Housekeep(l.now)
		l.learns(claim(ip4(1), mac(1), port1), New)
	}
}

// Where nothing ages a duplicate is frozen for the default of the ageing time.
func TestFrozenForever(t *testing.T) {
	l := newLab(t, &TableConfig{VNI: 100, Freeze: true, Ageing: -1}, Config{})
	l.learns(claim(ip4(1), mac(0), port1), New)
	for n := range byte(5) {
		want := Moved
		if n == 4 {
			want = Refused
		}
		l.learns(claim(ip4(1), mac((n+1)%2), port1), want)
	}
	for range 299 {
		l.now++
		l.learns(claim(ip4(1), mac(1), port1), Refused)
	}
	l.now++
	l.learns(claim(ip4(1), mac(0), port1), Known)
	if h := l.table.Resolve(ip4(1)); h.MAC() != mac(0).Uint64() {
		t.Errorf("packets go to %+v", h)
	}
}

// Flags come from advertisements; a question changes none. One without O does not
// override another MAC (RFC 4861, section 7.2.5).
func TestFlags(t *testing.T) {
	l := newLab(t, nil, Config{Mode: Suppress})
	adv := announcement(true, 3)
	adv.flags = 0xa0 // R, O
	l.fdb[mac(3)] = peer3
	l.say(peer3, adv)
	l.now++
	l.say(peer3, question(true, 3, 9))
	asked := func(want uint8) {
		t.Helper()
		_, _, f := l.say(port1, question(true, 1, 3))
		if got := hear(t, f.Bytes()); got.flags != want || got.senderMAC != mac(3) {
			t.Errorf("%+v, want flags %#x", got, want)
		}
	}
	asked(0xe0)
	adv.src, adv.senderMAC, adv.flags = mac(8), mac(8), 0
	l.say(peer3, adv)
	asked(0xe0) // as before
	adv.src, adv.senderMAC = mac(3), mac(3)
	l.now++
	l.say(peer3, adv) // no router any more, and anycast
	asked(0x40)
	ra := said{kind: routerAdv, src: mac(7), dst: toAllMAC, sender: netip.MustParseAddr("fe80::7"), senderMAC: mac(7), to: toAll}
	l.say(peer3, ra)
	if e, ok := l.table.Lookup(ra.sender); !ok || e.MAC != mac(7) || e.Flags != Router|Taught {
		t.Errorf("%+v", e)
	}
	rs := said{kind: routerSol, src: mac(6), dst: toAllMAC, sender: netip.MustParseAddr("fe80::6"), senderMAC: mac(6), to: toAll}
	l.say(peer3, rs)
	if e, ok := l.table.Lookup(rs.sender); !ok || e.MAC != mac(6) || e.Flags != 0 {
		t.Errorf("%+v", e)
	}
	for _, bad := range []func(){
		func() { ra.sender = ip6(7) },
		func() { ra = rs; ra.sender = netip.IPv6Unspecified() },
	} {
		bad()
		if v, b, _ := l.say(peer3, ra); v != frame.Continue || b != Malformed {
			t.Errorf("%v, %v", v, b)
		}
	}
}

// Everything at once, for the race detector; and nothing is lost count of.
func TestConcurrently(t *testing.T) {
	l := newLab(t, &TableConfig{Limit: 100, Ageing: time.Second, DuplicateMoves: -1}, Config{})
	l.table.cfg.Notify = nil // the lab's is for one goroutine
	var wg sync.WaitGroup
	for w := range byte(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 20_000 {
				ip := ip4(byte(rng.IntN(200)))
				switch rng.IntN(8) {
				case 0:
					l.table.Set(ip, mac(w+1), Static, 0)
				case 1:
					l.table.Delete(ip)
				case 2:
					l.table.Sweep(frame.Tick(i/1000), func(e Entry) bool { return e.IP.As4()[3]%2 == 0 })
				case 3:
					for range l.table.All() {
						break
					}
				case 4:
					if e, ok := l.table.Lookup(ip); ok && (e.IP != ip || e.MAC == frame.MAC{}) {
						t.Errorf("%+v", e)
					}
				default:
					l.table.Learn(claim(ip, mac(w+1), frame.NewDest(uint16(w+1), 0)), frame.Tick(i/1000))
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for e := range l.table.All() {
		if e.Origin == Snooped {
			n++
		}
	}
	if st := l.table.Stats(); st.Snooped != n || n > 100 {
		t.Errorf("%d snooped entries, %+v", n, st)
	}
}
