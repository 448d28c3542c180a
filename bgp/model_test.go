package bgp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// Whatever comes, in whatever order, the rows and counts are those of a table that is told only what is true at the end.
func TestTableModel(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, m := newTable(settings()), newModel()
		cfg, gw := settings(), gateway
		x.configure(cfg, gw)
		type key struct {
			prefix netip.Prefix
			engine.Source
		}
		truth := map[key]engine.Path{}
		for range 100 {
			p := anyPath(r.IntN)
			k := key{p.Prefix.Masked(), p.Source}
			switch r.IntN(20) {
			case 0:
				x.down(p.Peer)
				for k := range truth {
					if k.Peer == p.Peer {
						delete(truth, k)
					}
				}
			case 1:
				cfg, gw = otherSettings(r)
				x.configure(cfg, gw)
			case 2, 3, 4, 5, 6:
				x.withdrawn(p)
				delete(truth, k)
			case 7:
				programmed(t, x, m)
			default:
				x.learned(p)
				truth[k] = p
			}
		}
		fresh := newTable(cfg)
		fresh.configure(cfg, gw)
		for _, p := range truth {
			fresh.learned(p)
		}
		got, want := fmt.Sprint(programmed(t, x, m)), fmt.Sprint(programmed(t, fresh, newModel()))
		if got != want {
			t.Fatalf("seed %d:\n%v\nwant\n%v", seed, got, want)
		}
		if x.n != len(truth) {
			t.Errorf("seed %d: %d paths, want %d", seed, x.n, len(truth))
		}
		for peer, n := range x.peers {
			if w := fresh.peers[peer]; w == nil && *n != (tally{}) || w != nil && *n != *w {
				t.Errorf("seed %d: %v: %v, want %v", seed, peer, *n, w)
			}
		}
	}
}

// anyPath makes a path of numbers below the argument of n: of few prefixes, peers and next hops, good ones and bad ones.
func anyPath(n func(int) int) engine.Path {
	list := []string{"10.65.2.0/26", "10.65.2.7/32", "10.65.1.0/26", "10.65.1.9/32", "10.66.2.0/26", "10.67.2.0/26", "10.68.2.0/26", "10.66.128.0/26", "10.65.200.0/30",
		"0.0.0.0/0", "::/0", "127.0.0.0/8", "10.0.0.0/25", "10.99.0.1/32", "192.0.2.0/25", "fd65:2::/122", "fd65:1::/123", "224.0.0.0/4", "fe80::/64", "10.64.0.0/10"}
	hops := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.0.2", "10.65.2.1", "0.0.0.0", "127.0.0.1", "224.0.0.1", "fd00::1", "fd00::2", "fd01::2", "fe80::2", "::ffff:10.0.0.2"}
	p := pathTo(list[n(len(list))], fmt.Sprintf("10.0.0.%d", 2+n(3)), uint32(n(2)), hops[n(len(hops))])
	return p
}

// otherSettings are settings that differ in what may change.
func otherSettings(r *rand.Rand) (*Config, []netip.Prefix) {
	c := settings()
	c.DefaultRoute, c.Borrowed, c.MaxPaths = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(3)
	c.Announce = c.Announce[:r.IntN(4)]
	c.Pools = c.Pools[r.IntN(3):]
	c.Import = c.Import[:r.IntN(3)]
	c.Distance = uint8(r.IntN(3))
	if r.IntN(3) == 0 {
		c.Routers = nil
	}
	return c, gateway[:r.IntN(3)]
}
