package control

import (
	"fmt"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

// A neighbourEntry is an entry of a neighbour table.
type neighbourEntry struct {
	neighbourTarget
	renewed bool // replaces an entry of a local host
}

// A neighbourTarget is what equal entries have in common.
type neighbourTarget struct {
	at     neighbourKey
	table  *arp.Table
	mac    frame.MAC
	origin arp.Origin
	flags  arp.Flags
}

func (at neighbourKey) String() string { return fmt.Sprintf("neighbour %v vni %d", at.ip, at.vni) }

func (t *tx) neighbour(at neighbourKey, n neighbour, static, renewed bool) (entry, error) {
	s, err := t.segment(at.vni)
	if err == nil {
		err = t.reaches(at.vni, n.at) // a row waits as a whole
	}
	if err != nil || s.arp == nil {
		return nil, err
	}
	e := &neighbourEntry{neighbourTarget{at, s.arp, n.mac, arp.Control, arp.Taught}, renewed}
	if n.router {
		e.flags |= arp.Router
	}
	if static {
		e.origin = arp.Static
	}
	return e, nil
}

func (e *neighbourEntry) same(x entry) bool {
	return e.neighbourTarget == x.(*neighbourEntry).neighbourTarget
}
func (e *neighbourEntry) where() any     { return e.table }
func (e *neighbourEntry) peers() []held  { return nil }
func (e *neighbourEntry) hold(*tx) error { return nil }

// is reports whether the table has this entry.
func (e *neighbourEntry) is(was arp.Entry) bool {
	return was.MAC == e.mac && was.Origin == e.origin && was.Flags == e.flags
}

func (e *neighbourEntry) set(t *tx, old entry) error {
	was, had := e.table.Lookup(e.at.ip)
	if had && e.is(was) {
		return nil
	}
	o, _ := old.(*neighbourEntry)
	if had && e.origin == arp.Control {
		local := was.Origin == arp.Snooped && was.From.Port() != 0 && was.From.Peer() == 0
		if local && !e.renewed || was.Origin == arp.Static && (o == nil || !o.is(was)) {
			t.p.stats.GivenWay++
			return nil
		}
	}
	if err := e.table.Set(e.at.ip, e.mac, e.origin, e.flags); err != nil {
		return err
	}
	t.p.stats.Neighbours++
	t.undo(func() { e.restore(t, was, had) })
	return nil
}

func (e *neighbourEntry) clear(t *tx) {
	if was, had := e.table.Lookup(e.at.ip); had && e.is(was) {
		e.table.Delete(e.at.ip)
		t.p.stats.Neighbours++
	}
}

// restore undoes set.
func (e *neighbourEntry) restore(t *tx, was arp.Entry, had bool) {
	t.p.stats.Neighbours++
	switch {
	case had && was.Origin != arp.Snooped:
		e.table.Set(e.at.ip, was.MAC, was.Origin, was.Flags)
	case e.table.Delete(e.at.ip) && had:
		e.table.Learn(&arp.Claim{IP: was.IP, MAC: was.MAC, Flags: was.Flags, From: was.From}, was.Seen)
	}
}
