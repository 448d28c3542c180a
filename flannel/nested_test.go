package flannel

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/control/controltest"
)

// A lease takes no part of an older one's subnet, in whichever order they come, and counts when the older one goes. Around older
// ones it may be.
func TestMapperNested(t *testing.T) {
	outer := record("10.3.8.0-22&fc00:3:0:8::-62", 5, Attrs{Type: "vxlan", IPv4: end("192.0.2.2", 2), IPv6: end("2001:db8::2", 102)})
	inner := record("10.3.9.0-24&fc00:3:0:9::-64", 6, Attrs{Type: "vxlan", IPv4: end("192.0.2.3", 3), IPv6: end("2001:db8::3", 103)})
	first := record("10.3.8.0-24", 4, vxlan("192.0.2.4", 4)) // has the first address of outer, which then has no subnet
	want := func(m *Mapper, to *controltest.Model, what string, n int, refused string) {
		t.Helper()
		if got := rows(t, m, to); len(got) != n || fmt.Sprint(m.Refused()) != refused {
			t.Errorf("%s: rows %v, refused %v", what, got, m.Refused())
		}
	}
	for _, order := range [][]Record{{outer, inner}, {inner, outer}} {
		m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil), model()
		for _, r := range order {
			m.Set(r)
		}
		want(m, to, "both", 2, "map[same-subnet:1]")
		m.Set(first)
		want(m, to, "with an older one at the first address", 3, "map[same-subnet:2]")
		m.Delete(first.Key)
		want(m, to, "without it", 2, "map[same-subnet:1]")
		m.Delete(outer.Key)
		want(m, to, "the older one has gone", 2, "map[]")
		younger := outer
		younger.Created = 7
		m.Set(younger)
		want(m, to, "it has come again", 4, "map[]")
		m.Apply(Change{Snapshot: true, Set: []Record{inner, outer}})
		want(m, to, "a snapshot says that it is older", 2, "map[same-subnet:1]")
	}
}
