package snoop

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func (l *lab) want(what string, g netip.Addr, places ...frame.Dest) {
	l.t.Helper()
	if got, all := l.heard(g); all || !slices.Equal(got, places) {
		l.t.Errorf("%s: %v goes to %v, everywhere %v; want %v", what, g, got, all, places)
	}
}

func (l *lab) wantAll(what string, g netip.Addr) {
	l.t.Helper()
	if got, all := l.heard(g); !all {
		l.t.Errorf("%s: %v goes to %v, want everywhere", what, g, got)
	}
}

// What hosts of all versions say, in both families.
func TestJoinAndLeave(t *testing.T) {
	for _, x := range []struct {
		name        string
		g           netip.Addr
		join, leave []byte
	}{
		{"IGMPv1", groupA, old(igmpReport1, groupA), nil},
		{"IGMPv2", groupA, old(igmpReport2, groupA), old(igmpLeave, groupA)},
		{"IGMPv3", groupA, report3(record(toExclude, groupA)), report3(record(toInclude, groupA))},
		{"IGMPv3, asked", groupA, report3(record(modeIsExclude, groupA)), report3(record(toInclude, groupA))},
		{"IGMPv3, some sources", groupA, report3(record(allow, groupA, host4)), report3(record(toInclude, groupA))},
		{"IGMPv3, to some sources", groupA, report3(record(toInclude, groupA, host4)), report3(record(toInclude, groupA))},
		{"IGMPv3, after another group", groupA, report3(record(toExclude, groupB), record(toExclude, groupA)), report3(record(9, groupB), record(toInclude, groupA))},
		{"MLDv1", group6, old(mldReport1, group6), old(mldDone, group6)},
		{"MLDv2", group6, report3(record(toExclude, group6)), report3(record(toInclude, group6))},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLab(t, Config{Querier: true, FastLeave: true})
			l.pass(1)
			l.wantAll("before hosts have answered", x.g)
			l.pass(12)
			l.want("at first", x.g)
			for _, d := range []frame.Dest{port2, port1, peer7, port2} {
				if v := l.from(d, x.join); v != frame.Continue {
					t.Fatal(v)
				}
			}
			l.want("joined", x.g, port1, port2, peer7)
			if x.leave != nil {
				l.from(port1, x.leave)
				l.want("left", x.g, port2, peer7)
				l.from(port1, x.join)
			}
			l.pass(200)
			l.from(port2, x.join)
			l.pass(59)
			l.want("just in time", x.g, port1, port2, peer7)
			l.pass(1)
			l.want("over", x.g, port2)
			l.Left(port2)
			l.want("gone", x.g)
		})
	}
}

// A port of which a host has left is asked twice, and lost when nobody answers.
func TestLastListener(t *testing.T) {
	for _, answers := range []bool{false, true} {
		l := newLab(t, Config{Querier: true})
		l.pass(13)
		join, leave := old(igmpReport2, groupA), old(igmpLeave, groupA)
		l.from(port1, join)
		l.sent = nil
		l.from(port1, leave)
		l.pass(1)
		if answers {
			l.from(port1, join)
		}
		l.pass(2)
		l.want("before the end", groupA, port1)
		want := 2
		if answers {
			want = 1
		}
		for _, x := range l.sent {
			if p, _ := look(x.b); x.to != port1 || p.kind != query || p.dst != mapped(raw(groupA)) {
				t.Errorf("%v is asked %v about %v", x.to, p.kind, p.dst)
			}
		}
		if len(l.sent) != want {
			t.Errorf("answers %v: %d questions, want %d", answers, len(l.sent), want)
		}
		l.pass(1)
		if l.want("at the end", groupA, []frame.Dest{port1}[:want%2]...); t.Failed() {
			return
		}
	}
}

// Who says again that it has left has no more time, and where another one asks, its questions end a group.
func TestLeftAgain(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	l.from(port1, old(igmpReport2, groupA))
	for range 2 {
		l.want("before the end", groupA, port1)
		l.from(port1, old(igmpLeave, groupA))
		l.pass(2)
	}
	l.want("at the end", groupA)

	l = newLab(t, Config{})
	l.from(port2, asks(host4, 125))
	l.pass(11)
	l.from(port1, old(igmpReport2, groupA))
	l.from(port1, old(igmpLeave, groupA))
	l.pass(6)
	l.want("not asked", groupA, port1, port2)
	if len(l.sent) != 0 {
		t.Errorf("%d queries of ours", len(l.sent))
	}
}

// What goes everywhere, and what only to routers.
func TestWhere(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	l.from(port3, packet4(host4, netip.MustParseAddr("224.0.0.13"), protoPIM, []byte{pimHello, 0, 0xdf, 0xff}))
	l.from(peer8, asks(host6, 125))
	l.from(port1, old(igmpReport2, groupA))
	l.want("a group", groupA, port1, port3)
	l.want("a group that nobody has joined", groupB, port3)
	l.want("the other family", group6, peer8)
	for _, a := range []string{"224.0.0.1", "224.0.0.251", "ff02::1", "ff02::1:ff00:9", "ff01::1"} {
		l.wantAll("local", netip.MustParseAddr(a))
	}
	for _, x := range []struct {
		name   string
		b      []byte
		places []frame.Dest
		all    bool
	}{
		{"report", old(igmpReport2, groupA), []frame.Dest{port3}, false},
		{"MLD report", report3(record(toExclude, group6)), []frame.Dest{peer8}, false},
		{"query", asks(zero, 125), nil, true},
		{"other IGMP", igmp(host4, groupA, 0x13, 0, 0, 0, 0, 0, 0, 0), nil, true},
		{"ARP to a group", slices.Concat([]byte{1, 0, 0x5e, 1, 2, 3, 2, 0, 0, 0, 0, 9, 8, 6}, make([]byte, 46)), nil, true},
	} {
		if got, all := l.to(x.b); all != x.all || !slices.Equal(got, x.places) {
			t.Errorf("%s goes to %v, everywhere %v", x.name, got, all)
		}
	}
	l.pass(255)
	l.want("no router any more", groupB)
	l = newLab(t, Config{Querier: true, Flood: true})
	l.pass(13)
	l.wantAll("unknown, with Flood", groupA)
	l.from(port1, old(igmpReport2, groupA))
	l.want("known, with Flood", groupA, port1)
}

// Routers that are named get all groups and the reports, for as long as they are named and there, in both families.
func TestSetRouters(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.SetRouters(port3, peer8, port3)
	l.wantAll("before hosts have answered", groupA)
	l.pass(13)
	l.from(port3, asks(zero, 125))
	l.from(port1, old(igmpReport2, groupA))
	both := []frame.Dest{port3, peer8}
	l.want("a group", groupA, port1, port3, peer8)
	l.want("a group that nobody has joined", groupB, both...)
	l.want("the other family", group6, both...)
	for _, b := range [][]byte{old(igmpReport2, groupA), report3(record(toExclude, group6))} {
		if got, all := l.to(b); all || !slices.Equal(got, both) {
			t.Errorf("a report goes to %v, everywhere %v", got, all)
		}
	}
	l.pass(260)
	l.want("what others say has no end for it", groupB, both...)
	var rows []Listener
	for x := range l.All() {
		rows = append(rows, x)
	}
	want := Router{IPv4: true, IPv6: true, Permanent: true}
	if !slices.Equal(rows, []Listener{{Dest: port3, Router: want}, {Dest: peer8, Router: want}}) {
		t.Errorf("%+v", rows)
	}
	l.Left(port3)
	l.want("one has gone", groupB, peer8)
	l.Left(frame.NewDest(4, 0))
	l.want("the tunnel has gone", groupB)
	l.SetRouters(port2)
	l.want("another", groupB, port2)
	l.SetRouters()
	l.want("none", groupB)
}

// A port for hosts has no say in the election.
func TestHosts(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	h := l.Hosts()
	for _, b := range [][]byte{asks(host4, 125), asks(host6, 125), packet4(host4, netip.MustParseAddr("224.0.0.13"), protoPIM, []byte{pimHello, 0, 0xdf, 0xff})} {
		if v := l.through(h, port1, b); v != frame.Drop(frame.Policy) {
			t.Error(v)
		}
	}
	if v := l.through(h, port1, old(igmpReport2, groupA)); v != frame.Continue {
		t.Error(v)
	}
	fragment := packet4(host4, netip.MustParseAddr("224.0.0.13"), protoPIM, []byte{pimHello, 0, 1, 2}) // without a checksum that can be seen
	fragment[20] = 0x20
	if v := l.through(h, port1, fragment); v != frame.Continue {
		t.Errorf("a fragment of PIM: %v", v)
	}
	l.want("a listener", groupA, port1)
	l.want("no router", groupB)
	if st := l.Stats(); st.Refused != 3 || st.Reports != 1 || st.Listeners != 1 || st.Groups != 1 {
		t.Errorf("%+v", st)
	}
}

// Records behind those that a report counts are none.
func TestUncountedRecords(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	for _, g := range [][2]netip.Addr{{groupA, groupB}, {group6, group6.Next()}} {
		b := report3(record(toExclude, g[0]), record(toExclude, g[1]))
		p, _ := look(b)
		m := b[14+p.message:]
		if m[7] = 1; g[0].Is4() {
			b = igmp(host4, netip.MustParseAddr("224.0.0.22"), m...)
		} else {
			b = mld(host6, netip.MustParseAddr("ff02::16"), m...)
		}
		l.from(port1, b)
		l.want("counted", g[0], port1)
		l.want("not counted", g[1])
	}
}

// Malformed messages are dropped, and teach nothing.
func TestMalformed(t *testing.T) {
	bad := func(b []byte, at int) []byte { b = slices.Clone(b); b[at] ^= 1; return b }
	short := func(b []byte, n int) []byte { // its lengths are right, and its message is not
		p, _ := look(b)
		m := b[14+p.message : len(b)-n]
		if p.family == v6 {
			return mld(host6, group6, slices.Clone(m)...)
		}
		return igmp(host4, groupA, slices.Clone(m)...)
	}
	for _, x := range []struct {
		name string
		b    []byte
		why  frame.Reason
	}{
		{"IGMP checksum", bad(old(igmpReport2, groupA), 41), frame.BadChecksum},
		{"IP checksum", bad(old(igmpReport2, groupA), 22), frame.BadChecksum},
		{"IP length", old(igmpReport2, groupA)[:40], frame.BadHeader},
		{"IGMP length", short(old(igmpReport2, groupA), 2), frame.BadHeader},
		{"records", short(report3(record(toExclude, groupA), record(toExclude, groupB)), 2), frame.BadHeader},
		{"sources", short(report3(record(toInclude, groupA, host4)), 2), frame.BadHeader},
		{"no group", igmp(host4, groupA, igmpReport2, 0, 0, 0, 192, 0, 2, 1), frame.BadHeader},
		{"query of 10 bytes", short(asks(host4, 125), 2), frame.BadHeader},
		{"query about a host", igmp(host4, groupA, igmpQuery, 10, 0, 0, 192, 0, 2, 1), frame.BadHeader},
		{"MLD checksum", bad(old(mldReport1, group6), 80), frame.BadChecksum},
		{"MLD length", short(old(mldReport1, group6), 2), frame.BadHeader},
		{"MLD records", short(report3(record(toExclude, group6)), 2), frame.BadHeader},
		{"hop limit", bad(old(mldReport1, group6), 21), frame.BadHeader},
		{"source", mld(netip.MustParseAddr("2001:db8::1"), group6, old(mldReport1, group6)[62:]...), frame.BadHeader},
		{"query without a source", mld(netip.IPv6Unspecified(), group6, asks(host6, 1)[62:]...), frame.BadHeader},
		{"PIM checksum", packet4(host4, netip.MustParseAddr("224.0.0.13"), protoPIM, []byte{pimHello, 0, 0xdf, 0xfe}), frame.BadChecksum},
	} {
		l := newLab(t, Config{})
		if v := l.from(port1, x.b); v != frame.Drop(x.why) {
			t.Errorf("%s: %v", x.name, v)
		}
		if st := l.Stats(); st.Malformed != 1 || st.Listeners != 0 || st.Reports+st.Queries+st.Routers != 0 {
			t.Errorf("%s: %+v", x.name, st)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, x := range []struct {
		code byte
		n    uint32
	}{{0, 0}, {127, 127}, {128, 128}, {0x8f, 248}, {0xff, 31744}} {
		if got := float8(x.code); got != x.n {
			t.Errorf("%#x is %d, want %d", x.code, got, x.n)
		}
		if got := putFloat8(x.n); got != x.code {
			t.Errorf("%d is %#x, want %#x", x.n, got, x.code)
		}
	}
	if got := float16(0x8001); got != 0x1001<<3 {
		t.Error(got)
	}
}

func TestAllocs(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	join := frame.Make(report3(record(toExclude, groupA), record(toExclude, groupB)))
	join.From = port1
	packet := frame.Make(packet4(host4, groupA, 17, make([]byte, 8)))
	l.Process(&join, frame.At{})
	if n := testing.AllocsPerRun(100, func() {
		l.Process(&join, frame.At{})
		l.Process(&packet, frame.At{})
		l.Select(&packet)
		l.Select(&join)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FastLeave is for ports: behind a peer there may be other hosts.
func TestFastLeaveOfPeer(t *testing.T) {
	l := newLab(t, Config{Querier: true, FastLeave: true})
	l.pass(13)
	l.from(peer7, old(igmpReport2, groupA))
	l.from(peer7, old(igmpLeave, groupA))
	l.want("left", groupA, peer7)
}
