package table

import "time"

// latecomers are paths that a place has no room for, since it has as many as it may.
type latecomers struct{ paths map[*path]struct{} }

func (l *latecomers) add(p *path) {
	if l.paths == nil {
		l.paths = map[*path]struct{}{}
	}
	l.paths[p] = struct{}{}
	p.late = true
}

func (l *latecomers) remove(p *path) {
	if delete(l.paths, p); len(l.paths) == 0 {
		l.paths = nil
	}
}

// take removes up to n of them, any ones.
func (l *latecomers) take(n int) (list []*path) {
	for p := range l.paths {
		if len(list) >= n {
			break
		}
		l.remove(p)
		list = append(list, p)
	}
	return list
}

// readmit gives paths another try for which a place that has changed has room now. It is part of Flush, so that a path that replaces
// another keeps its room.
func (t *Table) readmit(now time.Duration, x place) {
	var list []*path
	switch x := x.(type) {
	case *host:
		list = x.late.take(t.maxClaims() - len(x.claims))
	case *prefix:
		list = x.late.take(maxPaths - len(x.paths))
	case *flood:
		list = x.late.take(maxPaths - len(x.paths))
	}
	for _, p := range list {
		t.unuse(now, p)
		t.use(now, p)
	}
}

// maxClaims is how many routes of peers a host may have.
func (t *Table) maxClaims() int { return 4 * t.cfg.MaxAddrs }
