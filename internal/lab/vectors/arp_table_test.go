package vectors

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// tableRows are what the table learns, from whom, and for how long.
func tableRows() []row {
	plain := arp.Config{Mode: arp.Suppress}
	start := func(l *lab, v6 bool, vlan uint16) *segment {
		return l.neighbours(v6, vlan, arp.TableConfig{}, plain, nil)
	}
	return slices.Concat(
		each("6.snoop", "questions, answers and announcements, from both sides", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			for n, send := range map[byte]func(m message){
				20: func(m message) { s.a.Send(s.tagged(m.bytes())) },
				40: func(m message) { s.f.send(vx(vni, m.bytes())) },
			} {
				send(asks(v6, rmac(n), n, 5))
				send(says(v6, rmac(n+1), n+1, s.b.MAC, 2))
				send(announces(v6, rmac(n+2), n+2))
				for i := range byte(3) {
					s.wantEntry(n+i, rmac(n+i))
				}
				send(probes(v6, rmac(n+3), n+3))
				s.wantEntry(n+3, frame.MAC{})
			}
			l.drops(nil)
		}),
		each("6.control", "a control plane needs nobody to speak", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			l.must(s.r.Table().Set(inner(v6, 9), rmac(3), arp.Control, 0))
			q := asks(v6, s.a.MAC, 1, 9).bytes()
			s.asks(q, arp.Answered, answered, by(rmac(3), 9, 0)(s).bare())
		}),
		each("6.ageing", "forgotten after 300 s, asked for again", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			hear := func() { // the MAC, not the address
				s.f.send(vx(vni, eth(frame.Broadcast, rmac(3), "here")))
				l.forget()
			}
			l.pass(298 * time.Second)
			hear()
			q := asks(v6, s.a.MAC, 1, 3).bytes()
			s.asks(q, arp.Answered, answered, by(rmac(3), 3, 0)(s).bare())
			l.pass(3 * time.Second)
			s.wantEntry(3, frame.MAC{})
			s.wantEntry(1, s.a.MAC)
			s.wantEntry(4, rmac(4)) // set, not heard
			s.asks(q, arp.UnknownIP, flooded, nil)
		}),
		each("6.ageing", "an announcement keeps it", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			for range 4 {
				l.pass(200 * time.Second)
				s.f.send(vx(vni, announces(v6, rmac(3), 3).bytes()))
			}
			l.forget()
			s.wantEntry(3, rmac(3))
			s.wantEntry(2, frame.MAC{})
		}),
		each("6.follow", "an announcement from another MAC", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			s.g.send(vx(vni, announces(v6, rmac(9), 3).bytes()))
			l.forget()
			q := asks(v6, s.a.MAC, 1, 3).bytes()
			s.asks(q, arp.Answered, answered, by(rmac(9), 3, 0)(s).bare())
		}),
		each("6.follow", "a host that comes here is not answered for any more", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			s.b.Send(announces(v6, rmac(3), 3).bytes())
			l.forget()
			q := asks(v6, s.a.MAC, 1, 3).bytes()
			s.asks(q, arp.Local, localOnly, nil)
		}),
		each("6.follow", "not an advertisement without O from another MAC", 6, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			m := announces(v6, rmac(9), 3)
			m.flags = 0
			s.g.send(vx(vni, m.bytes()))
			l.forget()
			s.wantEntry(3, rmac(3))
		}),
		each("6.bound", "one more than the share of a peer", 0, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{Limit: 6}, plain, nil) // hosts 2 and 3 are in it
			for n := range byte(5) {
				s.f.send(vx(vni, announces(v6, rmac(10+n), 10+n).bytes()))
			}
			l.forget()
			s.wantEntry(11, rmac(11))
			s.wantEntry(12, frame.MAC{})
			st := s.r.Stats().Table
			l.check(st.Snooped == 4 && st.Entries == 5 && st.Full == 3, "%+v", st)
			// Who is not in it is asked for, and served, all the same.
			q := asks(v6, s.a.MAC, 1, 12).bytes()
			s.asks(q, arp.UnknownIP, flooded, nil)
		}),
		each("6.shown", "origin, state, place and age", 0, func(l *lab, v6 bool, vlan uint16) {
			s := start(l, v6, vlan)
			l.must(s.r.Table().Set(inner(v6, 6), rmac(6), arp.Static, 0))
			var got []arp.Entry
			for e := range s.r.Table().All() {
				got = append(got, e)
			}
			want := []arp.Entry{
				{IP: inner(v6, 2), MAC: s.b.MAC, Origin: arp.Snooped, State: arp.Reachable, From: s.b.At.Dest(0)},
				{IP: inner(v6, 3), MAC: rmac(3), Origin: arp.Snooped, State: arp.Reachable, From: l.dest(2)},
				{IP: inner(v6, 4), MAC: rmac(4), Origin: arp.Control, State: arp.Permanent},
				{IP: inner(v6, 6), MAC: rmac(6), Origin: arp.Static, State: arp.Permanent},
			}
			check.Need(l.T, len(got) == len(want), "%+v", got)
			for i, e := range got {
				e.Flags = 0
				l.check(e == want[i], "%+v, want %+v", e, want[i])
			}
		}),
		flagRows(),
	)
}

// flagRows are the flags of advertisements that answers repeat.
func flagRows() (rows []row) {
	for name, flags := range map[string]uint8{"none": 0, "O": naOverride, "R": naRouter, "R and O": naRouter | naOverride} {
		rows = append(rows, each("6.nd-flags", name, 6, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
			m := announces(v6, rmac(3), 3)
			m.flags = flags
			s.f.send(vx(vni, m.bytes()))
			l.pass(2 * time.Second)
			s.f.send(vx(vni, asks(v6, rmac(3), 3, 5).bytes())) // a question says nothing of them
			l.forget()
			q := asks(v6, s.a.MAC, 1, 3).bytes()
			s.sends(q, arp.Answered)
			want := by(rmac(3), 3, 0)(s)
			want.flags = naSolicited | flags
			s.wantFate(q, answered, want.bare())
		})...)
	}
	return rows
}
