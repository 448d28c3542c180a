package snoop

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A query that hosts do not hear, or ignore, does not silence us: nobody would answer, and groups would be lost.
func TestQueriesThatNobodyAnswers(t *testing.T) {
	sources := asks(host4, 125)
	sources = igmp(host4, netip.MustParseAddr("224.0.0.1"), append(slices.Clone(sources[34:44]), 2, 125, 0, 1, 192, 0, 2, 1)[:16]...)
	sources6 := slices.Clone(asks(host6, 125)[62:])
	sources6[27] = 1
	toAll6 := netip.MustParseAddr("ff02::1")
	elsewhere := asks(host4, 125)
	copy(elsewhere, []byte{1, 0, 0x5e, 9, 9, 9})
	noAlert := asks(host6, 125)
	copy(noAlert[56:], []byte{1, 4, 0, 0, 0, 0}) // PadN alone
	mappedZero := slices.Clone(asks(host6, 125)[62:])
	copy(mappedZero[8:], []byte{10: 0xff, 11: 0xff, 15: 0})
	late6 := slices.Clone(asks(host6, 125)[62:])
	late6[4], late6[5] = 0xf0, 0
	for name, b := range map[string][]byte{
		"answered late":            igmp(host4, netip.MustParseAddr("224.0.0.1"), igmpQuery, 0xff, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0),
		"MLD answered late":        mld(host6, toAll6, late6...),
		"to another group":         igmp(host4, groupA, asks(host4, 125)[34:]...),
		"to another MAC":           elsewhere,
		"about some sources":       sources,
		"MLD to another group":     mld(host6, group6, asks(host6, 125)[62:]...),
		"MLD about some sources":   mld(host6, toAll6, append(sources6, make([]byte, 16)...)...),
		"MLD without router alert": noAlert,
		"MLD about ::ffff:0.0.0.0": mld(host6, toAll6, mappedZero...),
	} {
		l := newLab(t, Config{Querier: true, MAC: mac(10), Address: host4.Next()})
		l.pass(50)
		l.sent = nil
		l.from(port3, b)
		l.pass(130)
		n := [families]int{}
		for _, s := range l.sent {
			p, _ := look(s.b)
			n[p.family]++
		}
		if n[v4] == 0 || n[v6] == 0 {
			t.Errorf("%s: queries of ours: %v", name, n)
		}
	}
}

// A listener of one family is none of the other.
func TestMappedGroups(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(13)
	g := netip.MustParseAddr("::ffff:239.1.2.3")
	b := append([]byte{mldReport2, 0, 0, 0, 0, 0, 0, 1, toExclude, 0, 0, 0}, raw(g)...)
	l.from(port1, mld(host6, netip.MustParseAddr("ff02::16"), b...))
	l.want("an IPv4 group in MLD", groupA)
	if st := l.Stats(); st.Listeners != 0 {
		t.Errorf("%+v", st)
	}
}

// Behind a tunnel without peer numbers there are many hosts: one that leaves is not the only one.
func TestFastLeaveOfTunnel(t *testing.T) {
	l := newLab(t, Config{Querier: true, FastLeave: true})
	l.pass(13)
	tunnel := frame.NewDest(4, 0)
	l.from(tunnel, old(igmpReport2, groupA))
	l.from(tunnel, old(igmpLeave, groupA))
	l.want("the others are asked", groupA, tunnel)
	l.pass(4)
	l.want("nobody answers", groupA)
}
