package snoop

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// tenMinutes is how long somebody does his worst.
const tenMinutes = 600

func numbered(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{239, byte(n >> 16), byte(n >> 8), byte(n)})
}

// One port joins groups without end: what hosts elsewhere listen to goes on to reach them, and nobody gets what he has not joined
// but the attacker.
func TestWorstListeners(t *testing.T) {
	const hosts = 100
	place := func(h int) frame.Dest { return frame.NewDest(uint16(10+h), 0) }
	run := func(attack bool) (served int) {
		l := newLab(t, Config{Querier: true, Limit: 256})
		l.pass(13)
		for n := range tenMinutes {
			for k := 0; attack && k < 300; k++ {
				l.from(port1, report3(record(toExclude, numbered(n*300+k))))
			}
			for h := range hosts {
				if n%100 == h {
					l.from(place(h), report3(record(toExclude, numbered(1<<20+h))))
				}
			}
			l.pass(1)
			if n < 100 {
				continue
			}
			for h := range hosts {
				got, all := l.heard(numbered(1<<20 + h))
				for _, d := range got {
					if !all && d == place(h) && len(got) <= 2 {
						served++
					}
				}
			}
		}
		if attack {
			if st := l.Stats(); st.Listeners > 256 || st.Crowded != 1 || st.Full == 0 {
				t.Errorf("%+v", st)
			}
			if got, all := l.heard(numbered(1 << 22)); all || len(got) != 1 || got[0] != port1 {
				t.Errorf("the attacker's other groups go to %v, everywhere %v", got, all)
			}
		}
		return served
	}
	worst.Kept(t, "multicast listeners", run(false), run(true))
}

// A host that wins the election and asks as it likes, or not at all, does not make others be forgotten.
func TestWorstQuerier(t *testing.T) {
	const hosts, most = 20, 50 * 60
	low := netip.MustParseAddr("192.0.2.0")
	general := func(code, interval byte) []byte {
		return igmp(low, netip.MustParseAddr("224.0.0.1"), igmpQuery, code, 0, 0, 0, 0, 0, 0, 2, interval, 0, 0)
	}
	for _, x := range []struct {
		name string
		asks func(now int) []byte
	}{
		{"once in a while", func(now int) []byte {
			if now%240 == 0 {
				return general(100, 125)
			}
			return nil
		}},
		{"with long times for answers", func(int) []byte { return general(0xff, 125) }},
		{"says it asks rarely, then often", func(now int) []byte {
			if now%1000 == 0 {
				return general(100, 0xff)
			} else if now%1000 == 10 {
				return general(100, 1)
			}
			return nil
		}},
		{"about one group", func(now int) []byte {
			if now == 0 {
				return general(100, 125)
			}
			return igmp(low, groupA, igmpQuery, 1, 0, 0, 239, 1, 2, 3, 0, 0, 0, 0)
		}},
	} {
		l := newLab(t, Config{Querier: true, Address: host4})
		l.pass(1)
		var due [hosts]frame.Tick // when a host answers, at the latest
		hear := func(b []byte) {
			p, _ := look(b)
			m, why := p.parse()
			if why != frame.NotDropped || p.family != v4 {
				return
			}
			for h := range due {
				if at := l.tick + frame.Tick(m.maxResp/1000); due[h] == 0 || at < due[h] {
					due[h] = at
				}
			}
		}
		for now := range most {
			if b := x.asks(now); b != nil {
				l.from(port1, b)
				hear(b)
			}
			for _, s := range l.sent {
				hear(s.b)
			}
			l.sent = nil
			for h := range due {
				if due[h] != 0 && due[h] <= l.tick {
					due[h] = 0
					l.from(frame.NewDest(uint16(10+h), 0), report3(record(modeIsExclude, numbered(h))))
				}
			}
			l.pass(1)
			if now < 20 {
				continue
			}
			for h := range hosts {
				if got, all := l.heard(numbered(h)); !all && !slices.Contains(got, frame.NewDest(uint16(10+h), 0)) {
					t.Fatalf("%s: after %d s host %d is forgotten", x.name, now, h)
				}
			}
		}
		if !l.on[v4].Load() {
			t.Errorf("%s: all is flooded", x.name)
		}
	}
}
