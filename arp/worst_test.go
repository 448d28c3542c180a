package arp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// tenMinutes is how long somebody does his worst.
const tenMinutes = 600

// strange is the n-th address of a prefix of 10.0.0.0/8 that nobody counts.
func strange(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// One port fills the table with neighbours that there are not: what hosts elsewhere have said
// stays known, and they answer our questions.
func TestWorstNeighbours(t *testing.T) {
	const hosts = 200
	for _, c := range []struct {
		name string
		rate int             // messages of the attacker in a second
		asks func(n int) int // which of its addresses is asked for while it says so, -1 for none
	}{
		{"announcements", 100, func(int) int { return -1 }},
		{"announcements, then ten a second", 10, func(int) int { return -1 }},
		{"answers to questions that it has caused", 100, func(n int) int { return n }},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(attack bool) (served int) {
				table, err := NewTable(nil)
				must(t, err)
				var open netip.Addr
				table.Watch(func(ip netip.Addr) bool { return ip == open }, func(netip.Addr) {})
				n := 0
				for tick := range frame.Tick(tenMinutes) {
					for k := 0; attack && (k < c.rate || tick == 0 && k < DefaultLimit); k++ {
						open = strange(c.asks(n))
						table.Learn(claim(strange(n), mac(66), port1), tick)
						open = netip.Addr{}
						n++
					}
					for h := range hosts {
						ip := ip4(byte(h))
						if h < hosts/2 && int(tick)%100 == h {
							table.Learn(claim(ip, mac(byte(h)), port2), tick)
						} else if h >= hosts/2 && table.Resolve(ip) == 0 { // who is asked for when there is a packet
							open = ip
							table.Learn(claim(ip, mac(byte(h)), peer3), tick)
							open = netip.Addr{}
						}
						if table.Resolve(ip).MAC() == mac(byte(h)).Uint64() {
							served++
						}
					}
					table.Sweep(tick, nil)
				}
				return served
			}
			worst.Kept(t, "neighbours", run(false), run(true))
		})
	}
}

// What somebody does with the lock of the table does not keep an answer out.
func TestAnswerWaits(t *testing.T) {
	table, err := NewTable(nil)
	must(t, err)
	table.Watch(func(ip netip.Addr) bool { return ip == ip4(1) }, func(netip.Addr) {})
	if o := table.Learn(claim(ip4(3), mac(3), port1), 0); o != New {
		t.Fatal(o)
	}
	told := make(chan LearnOutcome)
	table.mu.Lock()
	time.AfterFunc(time.Millisecond, table.mu.Unlock)
	go func() { told <- table.write(claim(ip4(1), mac(1), port1), 0, false) }()
	if o := <-told; o != New {
		t.Errorf("an answer: %v", o)
	}
}

// Who is in none of the gateway's prefixes teaches nothing, unless he was asked.
func TestForeign(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil, Config{})
		g := gw(v6, false)
		g.Prefixes = []netip.Prefix{netip.PrefixFrom(addr(v6, gatewayHost), addr(v6, 0).BitLen()-8)}
		must(t, l.r.SetGateway(g))
		stranger := netip.MustParseAddr(map[bool]string{false: "198.51.100.7", true: "2001:db8:1::7"}[v6])
		foreign := question(v6, 7, 9)
		foreign.sender = stranger
		var open netip.Addr
		l.table.Watch(func(ip netip.Addr) bool { return ip == open }, func(netip.Addr) {})
		known := func(ip netip.Addr, want bool) {
			t.Helper()
			if _, ok := l.table.Lookup(ip); ok != want {
				t.Errorf("%v is known: %v", ip, ok)
			}
		}
		l.say(port1, question(v6, 1, 9))
		known(addr(v6, 1), true)
		l.say(port1, foreign)
		known(stranger, false)
		if st := l.table.Stats(); st.Refused != 1 {
			t.Errorf("%+v", st)
		}
		open = stranger
		l.say(port1, foreign)
		known(stranger, true)
		open = netip.Addr{}
		l.now += 200
		l.say(port1, foreign) // still there
		l.now += 200
		l.r.Housekeep(l.now)
		known(stranger, true)
		// Of a family that the gateway has no prefix of, and link-local ones of IPv6, nothing is said.
		l.say(port1, question(!v6, 1, 9))
		known(addr(!v6, 1), true)
		if v6 {
			foreign.sender = netip.MustParseAddr("fe80::7")
			l.say(port1, foreign)
			known(foreign.sender, true)
		}
	}
}

// However many neighbours fall due at once, each is asked before it is forgotten.
func TestRefreshAsksAll(t *testing.T) {
	for _, ageing := range []time.Duration{DefaultAgeing, 8 * time.Second} {
		const hosts = 1000
		asked := map[netip.Addr]bool{}
		var l *lab
		cfg := Config{MAC: ownMAC, Refresh: true, Inject: func(f *frame.Frame) bool {
			if len(asked) == 100 && l.now%2 == 0 {
				return false // the switch has no room just now
			}
			s := hear(t, f.Bytes())
			asked[s.target] = true
			l.learns(claim(s.target, s.dst, port1), Known)
			return true
		}}
		l = newLab(t, &TableConfig{Ageing: ageing}, cfg)
		l.table.cfg.Notify = nil
		for n := range hosts {
			l.learns(claim(strange(n), mac(byte(n)), port1), New)
		}
		for range 2 * ageing / time.Second {
			l.now++
			l.r.Housekeep(l.now)
			if n := l.table.Len(); n != hosts {
				t.Fatalf("ageing %v: %d of %d are left at %d", ageing, n, hosts, l.now)
			}
		}
		if len(asked) != hosts {
			t.Errorf("%d asked", len(asked))
		}
	}
}
