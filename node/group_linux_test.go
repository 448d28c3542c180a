package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two segments share a group and one has its own, beside the kernel's; then one goes over to
// peers, and back, while the node runs.
func TestGroups(t *testing.T) {
	for _, f := range []struct{ name, shared, own, prefix string }{
		{"IPv4", "239.1.1.1", "239.1.1.3", "192.0.2."}, {"IPv6", "ff05::1:1", "ff05::1:3", "2001:db8::"},
	} {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t)
			config := func(local, flood string) *Config {
				text := fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "%s", "queues": 2, "multicastDevice": "eth0"}],`, local)
				var ports, segments []string
				for vni, to := range map[int]string{100: flood, 200: f.shared, 300: f.own} {
					ports = append(ports, fmt.Sprintf(`{"name": "tap%d"}`, vni))
					segments = append(segments, fmt.Sprintf(`{"vni": %d, "tunnel": "vx", "flood": ["%s"], "members": [{"port": "tap%[1]d"}]}`, vni, strings.ReplaceAll(to, ",", `","`)))
				}
				return parse(t, text+`"ports": [`+strings.Join(ports, ",")+`], "segments": [`+strings.Join(segments, ",")+`]}`)
			}
			k := l.plug("k", "192.0.2.3").h
			for vni, group := range map[int]string{100: f.shared, 200: f.shared, 300: f.own} {
				k.VXLAN(fmt.Sprint("vx", vni), netns.VXLAN{ID: vni, Local: f.prefix + "3", Group: group, Dev: "eth0", Addr: fmt.Sprintf("10.%d.0.3/24", vni/100)})
			}
			guests := map[int]map[int]*netns.Host{}
			var sites []*site
			for i := 1; i <= 2; i++ {
				s := l.start(fmt.Sprint("n", i), fmt.Sprint("192.0.2.", i), config(fmt.Sprint(f.prefix, i), f.shared))
				sites = append(sites, s)
				guests[i] = map[int]*netns.Host{}
				for _, vni := range []int{100, 200, 300} {
					guests[i][vni] = s.guest(fmt.Sprint("tap", vni), fmt.Sprintf("10.%d.0.%d/24", vni/100, i), "")
				}
			}
			meet := func(vnis ...int) {
				t.Helper()
				for _, vni := range vnis {
					guests[1][vni].IP("neigh", "flush", "all")
					for _, to := range []int{2, 3} {
						guests[1][vni].Ping(fmt.Sprintf("10.%d.0.%d", vni/100, to), 1)
					}
				}
			}
			member := func(s *site, group string) bool {
				a := netip.MustParseAddr(group)
				if a.Is4() {
					b := a.As4()
					return strings.Contains(s.h.Run("cat", "/proc/net/igmp"), fmt.Sprintf("%02X%02X%02X%02X", b[3], b[2], b[1], b[0]))
				}
				return strings.Contains(s.h.Run("cat", "/proc/net/igmp6"), fmt.Sprintf("%x", a.As16()))
			}
			meet(100, 200, 300)
			sites[0].must(config(f.prefix+"1", f.prefix+"2,"+f.prefix+"3"))
			meet(100, 200, 300)
			if !member(sites[0], f.shared) {
				t.Error("left the group that VNI 200 still has")
			}
			sites[0].must(config(f.prefix+"1", f.shared))
			meet(100)
			cfg := config(f.prefix+"1", f.own)
			cfg.Segments = nil
			sites[0].must(cfg)
			for _, g := range []string{f.shared, f.own} {
				if member(sites[0], g) || !member(sites[1], g) {
					t.Errorf("member of %s", g)
				}
			}
		})
	}
}
