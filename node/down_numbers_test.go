package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// guarded returns the members with guards.
func guarded(n *Node) string {
	var list []string
	for vni, ports := range n.Guards() {
		for name := range ports {
			list = append(list, fmt.Sprintf("%d %q", vni, name))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// The guard of a member goes with its port, comes back with it, and does not outlive the member, whatever changes meanwhile.
func TestDownGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const config = `{"ports": [{"name": "a"}, {"name": "b"}], "segments": [
			{"vni": 1, "members": [{"port": "a", "vlan": 5, "guard": {}}, {"port": "b", "guard": {}}]}]}`
		m := newMortal(t, config)
		want := func(when, list string) {
			t.Helper()
			if got := guarded(m.Node); got != list {
				t.Errorf("%s: guards of %s, want %s", when, got, list)
			}
		}
		want("up", `1 "a", 1 "b"`)
		m.kill("a")
		want("down", `1 "b"`)
		must(t, m.Apply(changed(t, m.Config(), func(c *Config) { c.Segments[0].MaxMACs = 9 })))
		want("after a change", `1 "b"`)
		must(t, m.Apply(changed(t, m.Config(), func(c *Config) { c.Segments[0].Members = c.Segments[0].Members[1:] })))
		want("without the member", `1 "b"`)
		must(t, m.Apply(parse(t, config)))
		m.wantDown("a")
		want("with the member again", `1 "b"`)
		m.allow()
		time.Sleep(lastWait)
		m.settle()
		m.wantDown()
		want("up again", `1 "a", 1 "b"`)
	})
}

// A port that comes back with the number of one that is down is no multicast router in its place.
func TestDownMulticastRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, `{"ports": [{"name": "a"}, {"name": "b"}], "segments": [
			{"vni": 1, "members": [{"port": "a"}, {"port": "b"}], "multicast": {}, "multicastRouters": ["a"]}]}`)
		for _, x := range []struct{ back, down, want string }{{"b", "a", ""}, {"a", "", "a"}} {
			if x.down != "" {
				m.kill("a")
				m.kill("b")
			}
			m.allow(x.back)
			time.Sleep(lastWait)
			m.settle()
			if got := routers(m.Node); got != x.want {
				t.Errorf("%s is back: multicast routers at %q, want %q", x.back, got, x.want)
			}
		}
	})
}
