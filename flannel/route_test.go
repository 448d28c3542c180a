package flannel

import (
	"errors"
	"fmt"
	"testing"
)

// The host hears of routes what has changed, nothing if nothing has, and everything at first and after an error.
func TestFlushRoutes(t *testing.T) {
	m := mapper(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`, func(c *MapperConfig) { c.Host = true })
	var heard []string
	var fail error
	want := func(what, updates string) {
		t.Helper()
		heard = nil
		err := m.FlushRoutes(func(u RouteUpdate) error {
			text := fmt.Sprintf("snapshot %v", u.Snapshot)
			for _, r := range u.Add {
				text += fmt.Sprintf(" +%v %v", r.Prefix, r.MAC)
			}
			for _, r := range u.Del {
				text += fmt.Sprintf(" -%v %v", r.Prefix, r.MAC)
			}
			heard = append(heard, text)
			return fail
		})
		if got := fmt.Sprint(heard); got != updates || !errors.Is(err, fail) {
			t.Errorf("%s: %s (%v), want %s", what, got, err, updates)
		}
	}
	const two, three, four = "10.3.2.0/24 02:00:00:00:00:02", "10.3.3.0/24 02:00:00:00:00:03", "10.3.4.0/24 02:00:00:00:00:04"
	want("at first", "[snapshot true]")
	want("nothing", "[]")
	m.Set(record("10.3.3.0-24", 3, vxlan("192.0.2.3", 3)))
	m.Set(record("10.3.2.0-24", 2, vxlan("192.0.2.2", 2)))
	want("two leases", "[snapshot false +"+two+" +"+three+"]")
	r := record("10.3.2.0-24", 2, vxlan("192.0.2.2", 2))
	r.Revision = 9
	m.Set(r)
	want("a renewal", "[]")
	m.Set(record("10.3.4.0-24", 4, vxlan("192.0.2.4", 4)))
	m.Delete("10.3.4.0-24")
	want("one that has come and gone", "[]")
	m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 7)))
	m.Delete("10.3.3.0-24")
	want("another MAC, and one that has gone", "[snapshot false +10.3.2.0/24 02:00:00:00:00:07 -"+two+" -"+three+"]")
	m.Set(record("10.3.4.0-24", 6, vxlan("192.0.2.4", 4)))
	fail = errors.New("not now")
	want("an error", "[snapshot false +"+four+"]")
	want("another one", "[snapshot true +10.3.2.0/24 02:00:00:00:00:07 +"+four+"]")
	fail = nil
	want("after errors", "[snapshot true +10.3.2.0/24 02:00:00:00:00:07 +"+four+"]")
	want("nothing", "[]")
	m.Reset(nil)
	want("no leases", "[snapshot false -10.3.2.0/24 02:00:00:00:00:07 -"+four+"]")
}
