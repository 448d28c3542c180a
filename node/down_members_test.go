package node

import (
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/fdb"
)

// While a port with several members in a segment is down, the node changes as usual, also where an FDB entry is at one of them.
func TestDownWithMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, `{"ports": [{"name": "a"}, {"name": "b"}], "segments": [
			{"vni": 1, "members": [{"port": "a", "vlan": 10}, {"port": "a", "vlan": 20}, {"port": "b"}], "fdb": [{"mac": "02:00:00:00:00:09", "port": "a.20"}]}
		]}`)
		m.kill("a")
		m.wantDown("a")
		must(t, m.Apply(changed(t, m.Config(), func(c *Config) { c.Segments[0].MaxMACs = 9 })))
		m.allow()
		must(t, m.Apply(m.Config()))
		m.settle()
		m.wantDown()
		e, ok := m.Segments()[0].FDB().Get(host(9))
		if got := m.Switch().Name(e.Dest); !ok || got != "a.20" || e.Origin != fdb.OriginStatic {
			t.Errorf("the entry is at %q: %+v", got, e)
		}
	})
}
