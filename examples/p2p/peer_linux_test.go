package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The kernel's VTEP is the other end, over both address families: ping and TCP both
// ways, what each end has learned of the other, and the end of the program.
func TestKernelPeer(t *testing.T) {
	t.Parallel()
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) {
			a, b := c.peers(t, netns.VXLAN{ID: 4100, Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
			mtu := c.mtu
			if out := b.IP("link", "show", "vx0"); !strings.Contains(out, fmt.Sprintf("mtu %d ", mtu)) {
				t.Errorf("the kernel does another sum: %s", out)
			}
			p := start(t, a, c.ready("vxs0", 4100, mtu), "-local", c.local, "-remote", c.remote, "-id", "4100")
			if out := a.IP("link", "show", "vxs0"); !strings.Contains(out, fmt.Sprintf("mtu %d ", mtu)) {
				t.Errorf("our device: %s", out)
			}
			a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")

			a.Ping("192.168.7.2", 5)
			b.Ping("192.168.7.1", 5)
			a.Ping("fd07::2", 5)
			a.Run("ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(mtu-28), "192.168.7.2")
			throughput(t, a, b, "192.168.7.2")

			local, remote := fmt.Sprintf(c.brackets+":4789", c.local), fmt.Sprintf(c.brackets+":4789", c.remote)
			if out := b.Run("bridge", "fdb", "show", "dev", "vx0"); !strings.Contains(out, a.MAC("vxs0")+" dst "+c.local+" ") {
				t.Errorf("the kernel did not learn %s at %s:\n%s", a.MAC("vxs0"), local, out)
			}
			l := ask(t, p)
			if got := l.dest(b.MAC("vx0")); got != remote {
				t.Errorf("MAC of vx0 at %q, want %q", got, remote)
			}
			if got := l.dest(a.MAC("vxs0")); got != "vxs0" {
				t.Errorf("MAC of vxs0 at %q", got)
			}
			for _, e := range l.FDB {
				if e.VNI != 4100 || e.Origin != "learned" || e.Age < 0 || e.Age > 60 {
					t.Errorf("%+v", e)
				}
			}
			if len(l.Peers) != 1 || l.Peers[0].Addr != remote || l.Peers[0].Rx < 1000 || l.Peers[0].Tx < 1000 {
				t.Errorf("peers %+v", l.Peers)
			}
			if l.Rx.Frames < 1000 || l.Tx.Frames < 1000 || l.Rx.Bytes < 1e6 || l.Tx.Bytes < 1e6 || l.Flood.Broadcast == 0 {
				t.Errorf("rx %+v, tx %+v, flood %+v", l.Rx, l.Tx, l.Flood)
			}
			l.wantDrops(t, "port-full") // TCP fills the queues

			if last := stop(t, p); last.Rx.Frames < l.Rx.Frames || last.Tx.Frames < l.Tx.Frames || len(last.FDB) == 0 {
				t.Errorf("at exit %+v, before %+v", last, l)
			}
			if !gone(t, a, "vxs0") {
				t.Error("the device is left")
			}
		})
	}
}

// throughput runs TCP from a to b and back, 1 s each.
func throughput(t *testing.T, a, b *netns.Host, addr string) {
	t.Helper()
	for _, way := range []struct{ name, flag string }{{"to the kernel", ""}, {"from the kernel", "-R"}} {
		r := a.IPerf(b, addr, strings.Fields("-t 1 "+way.flag)...)
		t.Logf("iperf3 %s: %.2f Gbit/s", way.name, r.BitsPerSecond/1e9)
		if r.BitsPerSecond < 5e6 {
			t.Errorf("iperf3 %s: %.0f bit/s", way.name, r.BitsPerSecond)
		}
	}
}

// A broadcast reaches every peer of the flood list, once. The counters are those of
// the kernels: copies to each peer, frames from each.
func TestFloodList(t *testing.T) {
	n := netns.New(t)
	a, b, c, sw := n.Host("a"), n.Host("b"), n.Host("c"), n.Host("sw")
	for _, h := range []*netns.Host{a, b, c, sw} {
		h.Quiet()
	}
	for _, h := range []*netns.Host{b, c} {
		h.Sysctl("net.ipv4.icmp_echo_ignore_broadcasts", "0")
	}
	n.Link(a, "10.0.0.1/24", sw, "")
	n.Link(b, "10.0.0.2/24", sw, "")
	n.Link(c, "10.0.0.3/24", sw, "")
	sw.Bridge("br0", "eth0", "eth1", "eth2")
	b.VXLAN("vx0", netns.VXLAN{ID: 7, Port: 8472, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
	c.VXLAN("vx0", netns.VXLAN{ID: 7, Port: 8472, Local: "10.0.0.3", Remote: "10.0.0.1", Addr: "192.168.7.3/24"})
	p := start(t, a, "ready dev=blue type=vxlan id=7 local=10.0.0.1:8472 mtu=1450",
		"-local", "10.0.0.1", "-remote", "10.0.0.2,10.0.0.3", "-id", "7", "-dstport", "8472", "-dev", "blue")
	a.Addr("blue", "192.168.7.1/24")

	out := a.Run("ping", "-n", "-b", "-c", "4", "-i", "0.2", "-W", "1", "192.168.7.255")
	for _, from := range []string{"192.168.7.2", "192.168.7.3"} { // ping does not wait for the second answer to the last
		if k := strings.Count(out, "bytes from "+from); k < 3 || k > 4 {
			t.Errorf("%d answers from %s:\n%s", k, from, out)
		}
	}
	a.Ping("192.168.7.2", 2)
	a.Ping("192.168.7.3", 2)

	peers := []*netns.Host{b, c}
	l := settle(t, p, peers...)
	if l.dest(b.MAC("vx0")) != "10.0.0.2:8472" || l.dest(c.MAC("vx0")) != "10.0.0.3:8472" || l.dest(a.MAC("blue")) != "blue" {
		t.Errorf("fdb %+v", l.FDB)
	}
	if len(l.Peers) != 2 {
		t.Fatalf("peers %+v", l.Peers)
	}
	counts := func(l line) (ours, kernels []int) {
		var rx, tx int
		for i, h := range peers {
			ours, kernels = append(ours, l.Peers[i].Tx, l.Peers[i].Rx), append(kernels, h.Counter("vx0", "rx_packets"), h.Counter("vx0", "tx_packets"))
			rx, tx = rx+h.Counter("vx0", "tx_bytes"), tx+h.Counter("vx0", "rx_bytes")
		}
		// The kernel's device counts bytes without the Ethernet header (Linux 6.18).
		return append(ours, l.Rx.Bytes, l.Tx.Bytes), append(kernels, rx+14*l.Rx.Frames, tx+14*l.Tx.Frames)
	}
	ours, kernels := counts(l)
	for range 5 { // now and then a kernel asks for a neighbour meanwhile
		if slices.Equal(ours, kernels) {
			break
		}
		l = settle(t, p, peers...)
		ours, kernels = counts(l)
	}
	if !slices.Equal(ours, kernels) {
		t.Errorf("frames to and from each peer, bytes in and out: %d, but the kernels have %d", ours, kernels)
	}
	if l.Flood.Broadcast < 3 {
		t.Errorf("flood %+v", l.Flood)
	}
	l.wantDrops(t)
	stop(t, p)
}

// A frame that is no VXLAN, or of another network, is dropped under its name and not
// counted as received; a peer that is not in the list is learned.
func TestDropsAndLearnedPeers(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	a.Quiet()
	b.Quiet()
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	b.VXLAN("vx0", netns.VXLAN{ID: 5, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
	p := start(t, a, "ready dev=vxs0 type=vxlan id=5 local=10.0.0.1:4789 mtu=1450", "-local", "10.0.0.1", "-id", "5")
	a.Addr("vxs0", "192.168.7.1/24")

	b.Do(func() {
		send(t, "10.0.0.1:4789", "\x00\x00\x00\x00\x00\x00\x05\x00"+frameText)
		send(t, "10.0.0.1:4789", "\x08\x00\x00\x00\x00\x00\x06\x00"+frameText)
	})
	b.Ping("192.168.7.1", 2) // nobody is in the flood list: b speaks first
	l := settle(t, p, b)
	if l.Drops["no-vni-flag"] != 1 || l.Drops["unknown-vni"] != 1 {
		t.Errorf("drops %v", l.Drops)
	}
	if len(l.Peers) != 1 || l.Peers[0].Addr != "10.0.0.2:4789" || l.Peers[0].Rx != l.Rx.Frames || l.Peers[0].Tx != l.Tx.Frames {
		t.Errorf("peers %+v, rx %+v, tx %+v", l.Peers, l.Rx, l.Tx)
	}
	stop(t, p)
}

// A persistent device is used and left, with as many queues as it was made for.
func TestPersistentDevice(t *testing.T) {
	a, _ := families[0].peers(t, netns.VXLAN{ID: 1})
	for dev, queues := range map[string]string{"kept1": "", "kept2": "multi_queue"} {
		a.IP(strings.Fields("tuntap add dev " + dev + " mode tap " + queues)...)
		a.Addr(dev, "192.168.7.1/24")
		for range 2 {
			p := start(t, a, "ready dev="+dev+" type=vxlan id=1 local=10.0.0.1:4789 mtu=1450",
				"-local", "10.0.0.1", "-remote", "10.0.0.2", "-dev", dev)
			a.Ping("192.168.7.2", 2)
			stop(t, p)
			if gone(t, a, dev) {
				t.Fatal("the device is gone")
			}
		}
		a.IP("link", "del", dev)
	}
}

// The same inside the test process, where the race detector sees it.
func TestInProcess(t *testing.T) {
	a, b := families[0].peers(t, netns.VXLAN{ID: 1})

	ctx, cancel := context.WithTimeout(t.Context(), netns.Timeout)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	stdout, stderr := &notify{ready: make(chan struct{})}, &bytes.Buffer{}
	wg.Go(func() {
		defer cancel()
		select {
		case <-stdout.ready:
		case <-ctx.Done():
			return
		}
		if _, err := a.Try(ctx, "ip", "addr", "add", "192.168.7.1/24", "dev", "vxs0"); err != nil {
			t.Error(err)
		}
		if _, err := b.Try(ctx, "ping", "-n", "-c", "20", "-i", "0.02", "-W", "2", "192.168.7.1"); err != nil {
			t.Error(err)
		}
	})
	code := -1
	a.Do(func() { code = run(ctx, []string{"-local", "10.0.0.1", "-remote", "10.0.0.2"}, stdout, stderr) })
	cancel()
	if out := stdout.String(); code != 0 || stderr.Len() != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, "\nstats {") {
		t.Errorf("status %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	if !gone(t, a, "vxs0") {
		t.Error("the device is left")
	}
}

// notify closes ready at the first write. The writes are of one goroutine.
type notify struct {
	bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

func (n *notify) Write(p []byte) (int, error) {
	defer n.once.Do(func() { close(n.ready) })
	return n.Buffer.Write(p)
}
