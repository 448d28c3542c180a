package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// What a host sends to the broadcast address of its subnet, or to that of the link, reaches the stack of each other host exactly once,
// and each answers it. It never comes back to its sender.
func TestHostBroadcast(t *testing.T) {
	for _, fam := range families {
		for _, kinds := range []string{"uuk", "ukk", "uuu"} {
			t.Run(kinds+"/"+fam.name, func(t *testing.T) {
				ss := newSites(t, fam, kinds, [][]int{{1, 2}, {0, 2}, {0, 1}})
				addr := func(i int) string { return fmt.Sprintf("192.168.7.%d", i+1) }
				for i, s := range ss {
					s.host.IP("addr", "add", addr(i)+"/24", "broadcast", "+", "dev", s.dev)
					s.host.Sysctl("net.ipv4.icmp_echo_ignore_broadcasts", "0")
				}
				for from, s := range ss {
					for _, to := range []string{"192.168.7.255", "255.255.255.255"} {
						var seen []*netns.Capture
						for _, x := range ss {
							seen = append(seen, x.host.Capture(x.dev, "icmp"))
						}
						s.host.Run("ping", "-b", "-n", "-c", "1", "-W", "5", "-I", s.dev, to)
						seen[from].Want(len(ss), nil) // the request, and an answer of each other
						for i, c := range seen {
							asked, answers := 0, map[string]int{}
							for _, p := range c.Stop() {
								b := p.Data
								switch src, dst := netip.AddrFrom4([4]byte(b[26:])).String(), netip.AddrFrom4([4]byte(b[30:])).String(); {
								case b[34] == 8 && !p.Out && src == addr(from) && dst == to:
									asked++
								case b[34] == 0 && !p.Out && dst == addr(from):
									answers[src]++
								}
							}
							want := map[string]int{}
							for k := range ss {
								if k != from && i == from {
									want[addr(k)] = 1
								}
							}
							check.True(t, (asked == 1) == (i != from) && asked <= 1, "%s to %s: host %d is asked %d times", addr(from), to, i, asked)
							check.Equal(t, fmt.Sprintf("answers to %s at host %d", to, i), fmt.Sprint(answers), fmt.Sprint(want))
						}
					}
				}
			})
		}
	}
}
