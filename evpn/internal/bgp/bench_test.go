package bgp

import (
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// nobody takes what is decoded.
type nobody struct{ n int }

func (s *nobody) learned(*route.Route) { s.n++ }
func (s *nobody) withdrawn(*route.Key) {}
func (s *nobody) ended()               {}
func (s *nobody) malformed(string)     {}

func BenchmarkDecode(b *testing.B) {
	var body []byte
	for _, r := range many(1000) {
		body = appendNLRI(body, &r)
	}
	one := many(1)
	a := sharedOf(&one[0])
	m := internal.reach(&a, body)[headerLen:]
	d := decoder{agreement: internal}
	var s nobody
	b.ReportAllocs()
	for s.n < b.N {
		if err := d.update(m, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var o out
	o.routes = make(map[route.Key]route.Route)
	q := newQueue()
	for _, r := range many(batch) {
		o.put(r.Key, &r)
	}
	var buf []byte
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch {
		o.again(&q)
		buf, _ = o.take(&q, &internal, buf[:0])
	}
}
