package table

import "time"

// batch returns what a Flush passes, which may touch other places.
func (t *Table) batch(now time.Duration) (list []place) {
	list, t.more = t.dirty.Pass(func(x place) {
		t.readmit(now, x)
		switch x := x.(type) {
		case *host:
			x.hold(t)
			x.join(t)
		case *prefix:
			x.join(t)
		}
	})
	return list
}
