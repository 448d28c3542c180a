package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Two ports of a segment in one bridge of the kernel: a loop. The tunnel sees no more than the
// storm limit, hosts on other ports go on, and what helps, STP or FlapHold, ends it.
func TestLoop(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		stp, ends  bool
	}{
		{"nothing helps", "", false, false},
		{"STP", `"forwardBridgeGroup": true, `, true, true},
		{"flapHold", `"flapHold": "30s", `, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			net := netns.New(t)
			h, x, y := net.Host("loop"), net.Host("x"), net.Host("y")
			for _, h := range []*netns.Host{h, x, y} {
				h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
			}
			n := running(t)
			text := fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "127.0.0.1", "port": 14799}],
				"ports": [{"name": "one", "namespace": %q}, {"name": "two", "namespace": %q}, {"name": "px", "namespace": %q}, {"name": "py", "namespace": %q}],
				"segments": [{"vni": 10, "tunnel": "vx", "flood": ["127.0.0.9"], %s"members": [{"port": "one"}, {"port": "two"}, {"port": "px"}, {"port": "py"}]}]}`,
				h.NS, h.NS, x.NS, y.NS, c.keys)
			h.Do(func() {
				must(t, n.Apply(parse(t, text)))
			})
			x.Addr("px", "10.9.0.1/24")
			y.Addr("py", "10.9.0.2/24")
			x.Up("px")
			y.Up("py")
			h.Bridge("br0")
			if c.stp {
				h.IP("link", "set", "br0", "type", "bridge", "stp_state", "1", "forward_delay", "200", "hello_time", "100")
			}
			h.IP("link", "set", "one", "master", "br0")
			h.IP("link", "set", "two", "master", "br0")
			h.Up("one")
			h.Up("two")
			forwarding := 1
			if !c.stp {
				forwarding = 2
			}
			count := func() (n int) {
				for _, dev := range []string{"one", "two"} {
					if strings.TrimSpace(h.Run("cat", "/sys/class/net/"+dev+"/brport/state")) == "3" {
						n++
					}
				}
				return n
			}
			h.Until("the bridge forwards", func() bool { return count() == forwarding })
			events := n.Switch().Events()
			defer events.Close()
			tunnel := func() uint64 {
				for _, p := range n.Switch().Stats().Ports {
					if p.Name == "vx" {
						return p.Tx.Frames + p.TxDrops.Total()
					}
				}
				t.Fatal("no tunnel")
				return 0
			}
			start, before := time.Now(), tunnel()
			ping := func(args ...string) string {
				out, _ := x.Try(t.Context(), "ping", append([]string{"-n", "-W", "1", "10.9.0.2"}, args...)...)
				return out
			}
			x.Until("an answer", func() bool { return strings.Contains(ping("-c", "1"), " 1 received") }) // the question goes round
			const pings = 40
			answers := 0
			for tries := 0; tries < 3 && answers < pings*9/10; tries++ { // once may be the machine's fault
				answers = strings.Count(ping("-c", fmt.Sprint(pings), "-i", "0.05"), "bytes from")
			}
			if answers < pings*9/10 {
				t.Errorf("%d of %d pings answered", answers, pings)
			}
			sent, took := tunnel()-before, time.Since(start)
			most := 2 * float64(vswitch.DefaultStorm().Broadcast.Packets) * (1 + took.Seconds()) // of ports one and two
			if float64(sent) > most+1000 {
				t.Errorf("%d frames into the tunnel in %v, limit %.0f", sent, took, most)
			}
			if c.ends {
				h.Until("the loop ends", func() bool {
					was := tunnel()
					time.Sleep(200 * time.Millisecond)
					return tunnel()-was < 100
				})
			} else {
				h.Until("a warning", func() bool {
					e, err := events.Next(t.Context())
					return err != nil || e.Kind == frame.EventMACFlapping
				})
			}
			if c.stp && count() != 1 {
				t.Error("both ports of the bridge forward")
			}
			h.IP("link", "set", "br0", "down")
		})
	}
}
