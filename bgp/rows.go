package bgp

import (
	"cmp"
	"net/netip"
	"slices"
	"unique"

	"github.com/vxswitch/vxswitch/control"
)

// blackhole is the distance of the rows of our own blocks: whatever else the VRF has comes before.
const blackhole = 255

// Rows are those of a prefix, in order and without the prefix, so that prefixes with the same ways share them. The zero value is none.
type rows struct{ unique.Handle[row] }

type row struct {
	control.Prefix
	next rows
}

// rowsOf returns a list as rows.
func rowsOf(list []control.Prefix) (r rows) {
	for _, x := range slices.Backward(list) {
		x.Prefix = netip.Prefix{}
		r = rows{unique.Make(row{x, r})}
	}
	return r
}

// of returns the rows of a prefix that others has not, after list.
func (r rows) of(p netip.Prefix, list []control.Row, others rows) []control.Row {
	for ; r != (rows{}); r = r.Value().next {
		if x := r.Value().Prefix; !others.has(x) {
			x.Prefix = p
			list = append(list, x)
		}
	}
	return list
}

func (r rows) has(x control.Prefix) bool {
	for ; r != (rows{}); r = r.Value().next {
		if r.Value().Prefix == x {
			return true
		}
	}
	return false
}

// flush passes rows that have changed: not too many at once, so that peers need not wait for all. It reports whether there are more.
// After an error other than that of refused rows the next one passes all rows.
func (t *table) flush(owner string, to control.Programmer) (more bool, err error) {
	u := control.Update{Loose: true, Snapshot: t.all, Add: t.used.add[:0], Del: t.used.del[:0]}
	_, more = t.dirty.Pass(func(p netip.Prefix) {
		k, now := t.prefixes[p], rowsOf(t.rows(p))
		if was := k.rows; now != was {
			u.Del = was.of(p, u.Del, now)
			u.Add = now.of(p, u.Add, was)
			k.rows = now
			t.keep(p, k)
		}
	})
	t.used.add, t.used.del = u.Add, u.Del
	if t.all {
		u.Add, u.Del = nil, nil
		for p, k := range t.prefixes {
			u.Add = k.rows.of(p, u.Add, rows{})
		}
	} else if len(u.Add)+len(u.Del) == 0 {
		return more, nil
	}
	err = to.Program(owner, u)
	t.all = err != nil && control.Refused(err) == nil
	return more, err
}

// rows returns a row for each way that is taken; those that are the same once, and of too many the lowest. The list is the table's until the
// next call.
func (t *table) rows(p netip.Prefix) (list []control.Prefix) {
	c := t.rules.cfg
	if t.rules.blocks[p] {
		if p.IsSingleIP() {
			return nil
		}
		return []control.Prefix{{VRF: c.VRF, Prefix: p, Distance: blackhole}}
	}
	list = t.used.rows[:0]
	for _, w := range t.ways(p) {
		list = append(list, control.Prefix{VRF: c.VRF, Prefix: p, Via: w.Via, Distance: cmp.Or(c.Distance, DefaultDistance)})
	}
	t.used.rows = list
	return list
}
