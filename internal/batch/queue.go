package batch

// Most is how many of a Queue are passed at once: whoever waits for them waits for no more than these.
const Most = 2048

const pageLen = 1024

// A Queue has what has changed, in the order in which it did. The zero value is empty.
type Queue[K comparable] struct {
	in    map[K]struct{}
	pages [][]K // so that a long one grows without being copied
	long  bool  // has been
}

// Add adds x at the end, unless it is there.
func (q *Queue[K]) Add(x K) {
	if _, ok := q.in[x]; ok {
		return
	}
	if q.in == nil {
		q.in = map[K]struct{}{}
	}
	q.in[x] = struct{}{}
	last := len(q.pages) - 1
	if last < 0 || len(q.pages[last]) == pageLen {
		q.pages = append(q.pages, nil)
		last++
		q.long = q.long || last >= 4*Most/pageLen
	}
	q.pages[last] = append(q.pages[last], x)
}

// Len returns how many there are.
func (q *Queue[K]) Len() int { return len(q.in) }

// Pass takes out the first ones, at most [Most], and calls f with each. They are there until all are passed: f may add others, and adding
// one of them has no effect. It returns them, and whether there are more.
func (q *Queue[K]) Pass(f func(K)) (list []K, more bool) {
	list = make([]K, 0, min(Most, len(q.in)))
	for len(list) < Most && len(q.pages) > 0 {
		first := q.pages[0]
		x := first[0]
		if q.pages[0] = first[1:]; len(first) == 1 {
			q.pages = q.pages[1:]
		}
		f(x)
		list = append(list, x)
	}
	if len(q.pages) > 0 {
		for _, x := range list {
			delete(q.in, x)
		}
		return list, true
	}
	if clear(q.in); q.long {
		q.in = nil // not as large as the longest for ever
	}
	q.pages, q.long = nil, false
	return list, false
}
