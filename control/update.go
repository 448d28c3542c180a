package control

import (
	"errors"
	"fmt"
	"slices"
)

// An Update changes the rows of one owner: it removes Del, then adds Add in order. A row in both counts as
// advertised again, which matters for hosts that move. With Snapshot, Add is the complete set: all other
// rows of the owner are removed. Rows that do not change are not written again.
//
// A new or changed row that cannot be written now is refused. With Loose it waits instead: for its segment, VTEP,
// port, group, VRF or interface, or for room in a table. [Plane.Waiting] lists the rows that wait.
type Update struct {
	Snapshot bool
	Loose    bool
	Add, Del []Row
}

// A Programmer takes the rows of control planes.
type Programmer interface {
	// Program carries out an Update. Refused rows do not affect others: the error wraps a RowErrors with all
	// of them, and the rest of the Update is carried out. A refused row counts as removed. To remove a row
	// that does not exist, or to add one that does, is not an error. Add and Del are the caller's again when it returns.
	Program(owner string, u Update) error
}

// A RowError says why a row was refused.
type RowError struct {
	Row Row
	Err error
}

// Error returns the row and the error in one line.
func (e RowError) Error() string { return fmt.Sprintf("%v: %v", e.Row, e.Err) }

// Unwrap returns Err.
func (e RowError) Unwrap() error { return e.Err }

// RowErrors are the refused rows of an Update, at least one.
type RowErrors []RowError

// Error returns the first error, and the number of others.
func (e RowErrors) Error() string {
	switch len(e) {
	case 0:
		return "no rows"
	case 1:
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more rows)", e[0], len(e)-1)
}

// Unwrap returns the errors.
func (e RowErrors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// Refused returns the refused rows of an error of Program.
func Refused(err error) RowErrors {
	var list RowErrors
	errors.As(err, &list)
	return list
}

// change changes the rows of an owner, and refuses those that are wrong. It returns the new ones.
func (t *tx) change(o *owner, u *Update) (fresh []ref) {
	again := map[Row]bool{} // keys in Del, and whether they are in Add
	for _, r := range u.Del {
		switch {
		case !t.known(r):
		case len(u.Add) > 0:
			again[keyOf(clean(r))] = false
		default:
			t.dropRow(o, clean(r))
		}
	}
	var same []ref
	for _, r := range u.Add {
		if !t.known(r) {
			continue
		}
		r = clean(r)
		renewed := false
		if len(again) > 0 {
			if _, renewed = again[keyOf(r)]; renewed {
				again[keyOf(r)] = true
			}
		}
		n := t.p.find(o, r)
		if n != 0 && !renewed && t.p.at(n).place.row == common(r) {
			t.p.at(n).flags |= kept
			same = append(same, n)
			continue
		}
		flags := kept
		if n != 0 {
			if r := t.p.at(n); r.seq <= t.since || r.flags&advanced != 0 { // or is new, and given twice
				flags |= advanced
			}
			t.drop(n)
		}
		if renewed {
			flags |= advanced
		}
		if err := check(r); err != nil {
			t.refused = append(t.refused, RowError{r, err})
			continue
		}
		fresh = append(fresh, t.insert(o, r, flags))
	}
	for key, added := range again {
		if !added {
			t.dropRow(o, key)
		}
	}
	if u.Snapshot {
		for n, r := range t.p.of(o) {
			if r.flags&kept == 0 {
				t.drop(n)
			}
		}
	}
	for _, n := range slices.Concat(same, fresh) {
		t.p.at(n).flags &^= kept
	}
	return fresh
}

// dropRow removes the row of an owner with the key of r, if there is one.
func (t *tx) dropRow(o *owner, r Row) {
	if n := t.p.find(o, r); n != 0 {
		t.drop(n)
	}
}

// known refuses nil and pointers, which are not rows.
func (t *tx) known(r Row) bool {
	switch r.(type) {
	case MAC, Group, Flood, Prefix:
		return true
	}
	t.refused = append(t.refused, RowError{r, fmt.Errorf("%T: must be a MAC, Group, Flood or Prefix", r)})
	return false
}

// settle refuses new rows without a place, groups before the rows that name them.
func (t *tx) settle(fresh []ref) {
	for _, groups := range []bool{true, false} {
		for _, n := range fresh {
			p := t.p.at(n).place
			if p == nil {
				continue // refused
			}
			if _, ok := p.row.(Group); ok != groups {
				continue
			}
			err := t.find(p)
			if err == nil {
				err = t.p.at(n).own()
			}
			if err != nil && t.strict(n, err) {
				t.refuse(n, err)
			}
		}
	}
}

// own returns an error if a row has a MAC of the switch itself.
func (r *record) own() error {
	field, mac := "MAC.MAC", r.mac
	if k, ok := r.place.router(); ok {
		field, mac = "Prefix.Via.MAC", k.mac
	}
	if r.place.table != nil && !mac.IsZero() && own(r.place.table.Get(mac)) {
		return fmt.Errorf("%s: %v: %w", field, mac, errOwn)
	}
	return nil
}
