package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// With -datapath kernel, the kernel carries what p2p has decided, to the kernel's vxlan device and to another p2p: nearly all
// bytes of TCP both ways, which p2p counts as its own.
func TestDatapath(t *testing.T) {
	for _, c := range []struct {
		family
		sum    string // flags of p2p
		kernel []string
	}{
		{families[0], "", []string{"noudpcsum"}},
		{families[1], "-udpcsum off -udp6zerocsumrx", []string{"udp6zerocsumtx", "udp6zerocsumrx"}}, // over IPv6 only packets without checksum are carried
	} {
		for _, peer := range []string{"kernel", "p2p", "kernel, guest with a veth"} {
			t.Run(c.name+"-"+peer, func(t *testing.T) {
				a, b := c.hosts(t)
				g, flags := a, "-datapath kernel "+c.sum
				if strings.Contains(peer, "veth") {
					g, flags = guestOf(t, a), flags+" -kind veth"
				}
				ps := []*netns.Proc{c.start(t, a, c.mtu, flags)}
				if g != a {
					a.IP("link", "set", "vxs0", "netns", g.NS)
					g.Up("vxs0")
				}
				g.Addr("vxs0", "192.168.7.1/24")
				if peer != "p2p" {
					c.family.kernel(b, netns.VXLAN{Keep: true, Args: c.kernel})
				} else {
					r := c.family
					r.local, r.remote = c.remote, c.local
					ps = append(ps, r.start(t, b, c.mtu, "-datapath kernel "+c.sum))
					b.Addr("vxs0", "192.168.7.2/24")
				}
				g.Ready()
				b.Ready()
				g.Ping("192.168.7.2", 20)
				b.Ping("192.168.7.1", 5)
				for _, p := range ps {
					a.Until("flows", func() bool { l := ask(t, p); return l.Offload != nil && l.Offload.Flows == 2 })
				}
				const size = 300_000_000 // iperf3 leaves what is in the last buffers
				for _, way := range []string{"", "-R"} {
					r := g.IPerf(b, "192.168.7.2", strings.Fields(fmt.Sprint("-n ", size, " ", way))...)
					t.Logf("%s: %v", way, r)
				}
				for _, p := range ps {
					l := stop(t, p)
					if l.Datapath != "kernel" || l.Offload == nil {
						t.Fatalf("datapath %q, offload %v", l.Datapath, l.Offload)
					}
					t.Logf("%+v", *l.Offload)
					if all := l.Rx.Bytes + l.Tx.Bytes; all < 2*size*9/10 || float64(l.Offload.Carried.Bytes) < 0.9*float64(all) {
						t.Errorf("%d bytes carried of rx %+v, tx %+v", l.Offload.Carried.Bytes, l.Rx, l.Tx)
					}
					if len(l.Peers) != 1 || l.Peers[0].Rx != l.Rx.Frames || l.Peers[0].Tx != l.Tx.Frames {
						t.Errorf("peers %+v, rx %+v, tx %+v", l.Peers, l.Rx, l.Tx)
					}
				}
			})
		}
	}
}

// The same in VXLAN-GPE, of which the kernel's device carries IP only: between two p2p, and one whose flows stay with it.
func TestDatapathGPE(t *testing.T) {
	for _, far := range []string{"kernel", "user"} {
		t.Run(far, func(t *testing.T) {
			a, b := families[0].hosts(t)
			var ps []*netns.Proc
			for i, h := range []*netns.Host{a, b} {
				local, remote := fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("10.0.0.%d", 2-i)
				ps = append(ps, start(t, h, "ready dev=vxs0 type=gpe id=5 local="+local+":4790 mtu=1450",
					"-type", "gpe", "-id", "5", "-local", local, "-remote", remote, "-datapath", []string{"kernel", far}[i]))
				h.Addr("vxs0", fmt.Sprintf("192.168.7.%d/24", i+1))
			}
			a.Ping("192.168.7.2", 20)
			a.Until("flows", func() bool { l := ask(t, ps[0]); return l.Offload != nil && l.Offload.Flows == 2 })
			seen := b.Capture("eth0", "udp port 4790")
			a.Ping("192.168.7.2", 5)
			carried := 0
			for _, p := range seen.Stop() {
				if head, f := p.Data[42:50], p.Data[50:]; f[12] == 8 && f[13] == 0 {
					carried++
					if !bytes.Equal(head, []byte{0x0c, 0, 0, 3, 0, 0, 5, 0}) {
						t.Errorf("header % x", head)
					}
				}
			}
			if carried < 10 {
				t.Errorf("%d packets seen", carried)
			}
			const size = 100_000_000
			for _, way := range []string{"", "-R"} {
				r := a.IPerf(b, "192.168.7.2", strings.Fields(fmt.Sprint("-n ", size, " ", way))...)
				t.Logf("%s: %v", way, r)
			}
			l := stop(t, ps[0])
			t.Logf("%+v", *l.Offload)
			all, want := l.Rx.Bytes+l.Tx.Bytes, 0.9
			if far == "user" {
				want = 0.45 // what it sends with checksums or in runs is not carried
			}
			if all < 2*size*9/10 || float64(l.Offload.Carried.Bytes) < want*float64(all) {
				t.Errorf("%d bytes carried of rx %+v, tx %+v", l.Offload.Carried.Bytes, l.Rx, l.Tx)
			}
			if n := a.Nstat()["TcpInCsumErrors"] + b.Nstat()["TcpInCsumErrors"]; n != 0 {
				t.Errorf("%d wrong TCP checksums", n)
			}
		})
	}
}

// Who may not load programs is told so in one line, and what to do; with -datapath auto the tunnel is there all the same.
func TestDatapathNoPermission(t *testing.T) {
	netns.Tool(t, "setpriv")
	path, err := program()
	must(t, err)
	a, _ := families[0].peers(t, netns.VXLAN{ID: 1})
	const (
		line  = "setpriv --bounding-set=-all,+net_admin --inh-caps=-all "
		flags = " -local 10.0.0.1 -remote 10.0.0.2 -datapath "
		why   = `offload: datapath: loading: operation not permitted; the process must have CAP_BPF and CAP_NET_ADMIN`
	)
	words := strings.Fields(line + path + flags)
	wantFailure(t, inside(a, words[0], strings.Join(words[1:], " ")+" kernel"),
		"-datapath kernel: "+why+": run as root on Linux 6.6 or later, or leave it to user space with -datapath auto")

	p := a.Start(words[0], append(words[1:], "auto")...)
	p.Want("ready ")
	a.Addr("vxs0", "192.168.7.1/24")
	a.Ping("192.168.7.2", 2)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if out := p.Output(); !regexp.MustCompile(`^p2p: -datapath auto: flows stay in user space: `+why+`\nready .*\nstats .*\n$`).MatchString(out) || strings.Contains(out, `"datapath"`) {
		t.Error(out)
	}
}
