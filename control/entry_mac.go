package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// A macEntry is an entry of an FDB.
type macEntry struct {
	macTarget
	list    []remote // behind the tunnel
	dest    frame.Dest
	renewed bool // replaces an entry of a local host
	held    []held
}

// A macTarget is what equal entries have in common.
type macTarget struct {
	at     macKey
	table  *fdb.Table
	port   frame.Dest
	tunnel tunnel    // nil = the port itself
	vni    frame.VNI // on the tunnel
	flags  fdb.Flags
}

func (at macKey) String() string { return fmt.Sprintf("mac %v vni %d", at.mac, at.vni) }

func (t *tx) mac(at macKey, l location, static, renewed bool) (entry, error) {
	s, err := t.segment(at.vni)
	if err != nil {
		return nil, err
	}
	e := &macEntry{macTarget: macTarget{at: at, table: s.vsi.FDB(), flags: fdb.Control}, renewed: renewed || l.sticky || l.filter}
	if l.sticky {
		e.flags |= fdb.Sticky
	}
	if static {
		e.flags = fdb.Static
	}
	if l.filter {
		e.flags |= fdb.Filter
		e.port = frame.Filter
		return e, nil
	}
	if err := t.reaches(at.vni, l); err != nil {
		return nil, err
	}
	if l.vrf != "" {
		v, err := t.vrf(l.vrf)
		if err == nil && v.Interface(at.vni) == nil {
			err = fmt.Errorf("Prefix.Via.VNI: %w", ErrNoInterface)
		}
		if err != nil {
			return nil, err
		}
	}
	if e.port = s.ports[l.port]; l.port == "" {
		f, _ := s.vtep(l.tunnel)
		e.port, e.tunnel, e.vni, e.list = f.at.Dest(0), f.tunnel, f.vni(), []remote{l.remote}
		if l.group.name != "" {
			e.list = t.p.slots[l.group].members()
		}
	}
	return e, nil
}

func (e *macEntry) same(x entry) bool {
	o := x.(*macEntry)
	return e.macTarget == o.macTarget && slices.Equal(e.list, o.list)
}
func (e *macEntry) where() any    { return e.table }
func (e *macEntry) peers() []held { return e.held }

func (e *macEntry) hold(t *tx) (err error) {
	if e.dest = e.port; e.tunnel != nil {
		var num uint16
		num, e.held, err = t.holdRemotes(e.tunnel, e.vni, e.list)
		e.dest = frame.NewDest(e.port.Port(), num)
	}
	return err
}

// is reports whether the table has this entry.
func (e *macEntry) is(was fdb.Entry) bool {
	return was.Dest == e.dest && was.Flags == e.flags && was.Origin != fdb.OriginLearned
}

func (e *macEntry) set(t *tx, old entry) error {
	was, had := e.table.Get(e.at.mac)
	if had && e.is(was) {
		return nil
	}
	o, _ := old.(*macEntry)
	err := e.table.Set(e.at.mac, e.dest, e.flags)
	switch local, static := errors.Is(err, fdb.ErrLocal), errors.Is(err, fdb.ErrStatic); {
	case local && (e.renewed || was.Dest == e.dest), static && o != nil && o.is(was):
		err = e.table.Set(e.at.mac, e.dest, e.flags|fdb.Override)
	case local || static:
		t.p.stats.GivenWay++
		return nil
	}
	if err != nil {
		return err
	}
	t.p.stats.MACs++
	t.undo(func() { e.restore(t, was, had) })
	return nil
}

func (e *macEntry) clear(t *tx) {
	if was, had := e.table.Get(e.at.mac); had && e.is(was) {
		e.table.Delete(e.at.mac)
		t.p.stats.MACs++
	}
}

// restore undoes set.
func (e *macEntry) restore(t *tx, was fdb.Entry, had bool) {
	t.p.stats.MACs++
	switch {
	case had && was.Origin != fdb.OriginLearned:
		e.table.Set(e.at.mac, was.Dest, was.Flags|fdb.Override)
	case e.table.Delete(e.at.mac) && had:
		e.table.Learn(e.at.mac, was.Dest, was.Seen)
	}
}
