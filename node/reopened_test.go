package node

import (
	"testing"
	"testing/synctest"
)

// An IP port that a change has opened again is a next hop again. It has the number of the one before, whose end the node hears of later.
func TestReopenedNextHop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, `{"ports": [{"name": "t1", "type": "tun"}, {"name": "t2", "type": "tun"}], "segments": [
			{"vni": 1, "members": [{"port": "t1"}], "gateway": {"vrf": "red", "addresses": ["10.0.1.1/32"]}},
			{"vni": 2, "members": [{"port": "t2"}], "gateway": {"vrf": "red", "addresses": ["10.0.2.1/32"]}}],
			"vrfs": [{"name": "red", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 1}, {"segment": 2}]}]}]}`)
		want := func(when string, dead int) {
			t.Helper()
			hops := m.Node.Gateway().VRF("red").NextHops()
			got := 0
			for _, down := range hops {
				if down {
					got++
				}
			}
			if got != dead || len(hops) != 2 {
				t.Errorf("%s: next hops %v, want 2 and %d down", when, hops, dead)
			}
		}
		want("at first", 0)
		must(t, m.Apply(changed(t, m.Config(), func(c *Config) { c.Ports[0].MTU = 1400 })))
		m.settle()
		want("opened again", 0)
		m.kill("t1")
		want("down", 1)
	})
}
