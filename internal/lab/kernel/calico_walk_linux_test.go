package kernel

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
)

// Pods reach each other between nodes: by IP-in-IP, and once the mode is another one,
// directly, under a ping that loses one packet at most each time. Nobody's ARP leaves its
// node.
func TestCalico(t *testing.T) {
	c := newCluster(t, 1, l3.Always)
	a, b := c.nodes[0], c.nodes[1]
	p5, p6, near := a.pod(5), b.pod(6), a.pod(7)
	seen := b.h.Capture("eth0", "")
	wantTTL(t, p5, podIP(2, 6), 62)
	wantTTL(t, p5, podIP(1, 7), 63)
	_ = near
	tunnelled := func(ps []netns.Packet) (ipip, bare, arp int) {
		for _, p := range ps {
			switch e := p.Data[12:]; {
			case e[0] == 8 && e[1] == 6:
				for _, ip := range [][]byte{p.Data[28:32], p.Data[38:42]} {
					if ip[0] == 10 && ip[1] == 65 {
						arp++
					}
				}
			case e[0] == 8 && e[1] == 0 && p.Data[23] == 4:
				ipip++
			case e[0] == 8 && e[1] == 0 && p.Data[26+1] == 65:
				bare++
			}
		}
		return ipip, bare, arp
	}
	ipip, bare, arp := tunnelled(seen.Stop())
	check.True(t, ipip == 2 && bare == 0 && arp == 0,
		"on the underlay: %d in IP, %d bare, %d ARP of pods; want 2, 0, 0", ipip, bare, arp)

	ping := p5.Start("ping", "-n", "-i", "0.02", "-W", "1", podIP(2, 6))
	for _, m := range []l3.Encapsulation{l3.CrossSubnet, l3.Always, l3.Never, l3.Always} {
		seen := b.h.Capture("eth0", "")
		for _, n := range c.nodes {
			time.Sleep(250 * time.Millisecond)
			n.setPool(func(p *node.Pool) { p.Mode = m })
		}
		time.Sleep(250 * time.Millisecond)
		ipip, bare, arp := tunnelled(seen.Stop())
		check.True(t, ipip != 0 && bare != 0 && arp == 0, "to %v: %d in IP, %d bare, %d ARP of pods", m, ipip, bare, arp)
	}
	p5.Until("a hundred answers", func() bool { return strings.Count(ping.Output(), "bytes from") >= 100 })
	ping.Signal(2)
	ping.Wait()
	lost := regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`).FindStringSubmatch(ping.Output())
	if lost == nil {
		t.Fatal(ping.Output())
	}
	sent, _ := strconv.Atoi(lost[1])
	got, _ := strconv.Atoi(lost[2])
	// One may be on its way when the program ends.
	t.Logf("%d pings, %d answered, over 8 changes", sent, got)
	check.True(t, sent >= 100 && sent-got <= 1+8, "more than one lost ping for a change")
	if strings.Contains(ping.Output(), "ttl=") && strings.Count(ping.Output(), "ttl=62") != got {
		t.Errorf("TTLs other than 62:\n%s", ping.Output())
	}
	// Directly, and no larger than the pods' own MTU says.
	a.setPool(func(p *node.Pool) { p.Mode = l3.Never })
	p5.Run("ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1452", podIP(2, 6))
	r := p5.IPerf(p6, podIP(2, 6), "-t", "1")
	t.Logf("TCP, there directly and back by IP-in-IP: %v", r)
	check.True(t, r.BitsPerSecond >= 5e6, "TCP hardly moves")
	// An address of the other node's block that no pod has.
	out, err := p5.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", podIP(2, 33))
	check.True(t, err != nil && !strings.Contains(out, "bytes from"), "an answer from nobody:\n%s", out)
}

// Flows share four planes, each flow one. When a plane is cut, nothing is lost after three detection times, and no flow of
// another plane moves. When it is back, so are its flows.
func TestCalicoPlanes(t *testing.T) {
	for _, mode := range []l3.Encapsulation{l3.Always, l3.Never} {
		t.Run(mode.String(), func(t *testing.T) {
			const flows, planes, cut = 1000, 4, 2
			c := newCluster(t, planes, mode)
			a, b := c.nodes[0], c.nodes[1]
			p5, p6 := a.pod(5), b.pod(6)
			p5.PingTTL(podIP(2, 6))
			all := newFlows(t, p5, p6, podIP(2, 6), flows)
			events := a.Switch().Events(frame.EventNextHopDown, frame.EventNextHopUp)
			defer events.Close()
			heard := func(kind frame.EventKind) time.Time {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				e, err := events.Next(ctx)
				check.True(t, err == nil && e.Kind == kind, "%v, %v; want %v", e.Kind, err, kind)
				return time.Now()
			}

			all.arrive() // finds the next hops of all planes, for which three packets wait
			before := all.planes(b.h, planes, mode)
			var count [planes]int
			for _, p := range before {
				count[p]++
			}
			t.Logf("flows of planes: %v", count)
			for p, n := range count {
				check.True(t, n >= flows/planes*7/10 && n <= flows/planes*13/10, "plane %d has %d of %d flows", p, n, flows)
			}
			got := all.arrive()
			check.True(t, len(got) == flows, "%d of %d flows arrive", len(got), flows)

			alive(t, b.Node, planes) // else nobody knows that it can be dead
			alive(t, a.Node, planes)
			b.h.IP("link", "set", fmt.Sprintf("eth%d", cut), "down")
			since := time.Now()
			t.Logf("%v after the cut: %v", heard(frame.EventNextHopDown).Sub(since), frame.EventNextHopDown)
			time.Sleep(max(0, 3*detection-time.Since(since)))
			got = all.arrive()
			check.True(t, len(got) == flows, "plane %d is cut: %d of %d flows arrive after %v", cut, len(got), flows, 3*detection)
			for f, p := range all.planes(b.h, planes, mode) {
				if p == cut || before[f] != cut && before[f] != p {
					t.Fatalf("flow %d has moved from plane %d to %d", f, before[f], p)
				}
			}

			b.h.IP("link", "set", fmt.Sprintf("eth%d", cut), "up")
			heard(frame.EventNextHopUp)
			alive(t, b.Node, planes)
			for f, p := range all.planes(b.h, planes, mode) {
				if before[f] != p {
					t.Fatalf("the plane is back: flow %d is on plane %d, not %d", f, p, before[f])
				}
			}
		})
	}
}

// flows are UDP flows between two pods.
type flows struct {
	t       *testing.T
	from    []net.Conn
	to      *net.UDPConn
	byPort  map[int]int // source port to number
	arrived chan int
}

func newFlows(t *testing.T, from, to *netns.Host, addr string, n int) *flows {
	t.Helper()
	f := &flows{t: t, byPort: map[int]int{}, arrived: make(chan int, 2*n)}
	var err error
	to.Do(func() { f.to, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(addr), Port: 9000}) })
	check.OK(t, err)
	t.Cleanup(func() { f.to.Close() })
	from.Do(func() {
		for i := range n {
			var c net.Conn
			if c, err = net.Dial("udp4", addr+":9000"); err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			f.from = append(f.from, c)
			f.byPort[c.LocalAddr().(*net.UDPAddr).Port] = i
		}
	})
	check.OK(t, err)
	go func() {
		b := make([]byte, 64)
		for {
			_, src, err := f.to.ReadFromUDP(b)
			if err != nil {
				return
			}
			f.arrived <- src.Port
		}
	}()
	return f
}

// send sends a packet of each flow, not faster than sockets read them.
func (f *flows) send() {
	for i, c := range f.from {
		check.Must(c.Write([]byte("flow")))(f.t)
		if i%20 == 19 {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// arrive sends a packet of each flow and returns which arrived.
func (f *flows) arrive() map[int]bool {
	f.send()
	got := map[int]bool{}
	for {
		select {
		case port := <-f.arrived:
			got[f.byPort[port]] = true
		case <-time.After(300 * time.Millisecond):
			return got
		}
	}
}

// planes sends a packet of each flow and returns which plane carried it to a node.
func (f *flows) planes(h *netns.Host, n int, mode l3.Encapsulation) map[int]int {
	f.t.Helper()
	var devs []string
	for p := range n {
		devs = append(devs, fmt.Sprintf("eth%d", p))
	}
	if mode == l3.Never {
		return f.ways(h, devs, "udp dst port 9000", 14)
	}
	return f.ways(h, devs, "proto 4", 34)
}

// ways sends a packet of each flow and returns by which device it came to a host: the filter passes it, and its IP header
// is at inner.
func (f *flows) ways(h *netns.Host, devs []string, filter string, inner int) map[int]int {
	f.t.Helper()
	var seen []*netns.Capture
	for _, dev := range devs {
		seen = append(seen, h.Capture(dev, filter))
	}
	f.arrive()
	on := map[int]int{}
	for p, c := range seen {
		for _, x := range c.Stop() {
			if b := x.Data[inner:]; !x.Out && b[9] == 17 {
				flow, ok := f.byPort[int(b[20])<<8|int(b[21])]
				if old, twice := on[flow]; !ok || twice {
					f.t.Fatalf("plane %d has a packet of flow %d, plane %d too", p, flow, old)
				}
				on[flow] = p
			}
		}
	}
	return on
}
