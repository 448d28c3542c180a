package bgp

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// told returns how many routes messages announce.
func told(t *testing.T, b []byte) int {
	t.Helper()
	d, to := decoder{agreement: internal}, nobody{}
	for r := bytes.NewReader(b); r.Len() > 0; {
		_, body, err := readMessage(r, make([]byte, maxExtended), maxExtended)
		if err != nil {
			t.Fatal(err)
		}
		if n := d.update(body, &to); n != nil {
			t.Fatal(n)
		}
	}
	return to.n
}

// rest takes all that is queued, and returns how many routes that announces.
func (o *out) rest(t *testing.T, q *queue) (n int) {
	t.Helper()
	for {
		b, more := o.take(q, &internal, nil)
		if !more {
			return n
		}
		n += told(t, b)
	}
}

// A peer that asks for all routes again and again is answered one time after another: what it asks meanwhile is one request, and looks at no
// route before the answer is out.
func TestRequestsInAnswer(t *testing.T) {
	const n = 3 * batch
	o := out{routes: make(map[route.Key]route.Route)}
	q := newQueue()
	o.join(&q)
	for _, r := range many(n) {
		o.put(r.Key, &r)
	}
	if got := o.rest(t, &q); got != n {
		t.Fatalf("%d routes, want %d", got, n)
	}
	o.again(&q)
	o.take(&q, &internal, nil)
	for range 100 {
		o.again(&q)
	}
	if got := len(q.keys); got != n-batch {
		t.Errorf("%d routes wait in the middle of an answer, want %d", got, n-batch)
	}
	if got := o.rest(t, &q); got != n-batch+n {
		t.Errorf("%d routes after that, want the rest and all once more, %d", got, n-batch+n)
	}
	if q.asks {
		t.Error("a request is left")
	}
}

// Routes that go before they are told do not hold up the answer.
func TestRequestAndWithdrawal(t *testing.T) {
	o := out{routes: make(map[route.Key]route.Route)}
	q := newQueue()
	all := many(10)
	for _, r := range all {
		o.put(r.Key, &r)
	}
	o.join(&q)
	o.again(&q)
	for _, r := range all[1:] {
		o.put(r.Key, nil)
	}
	if got := o.rest(t, &q); got != 2 || q.asks {
		t.Errorf("%d routes, want the one that is left twice; a request is left: %v", got, q.asks)
	}
}
