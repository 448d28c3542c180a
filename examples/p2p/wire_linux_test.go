package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// What the flags say about outer headers is on the wire, as tshark reads it.
func TestOuterHeaderFlags(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, b := f.peers(t, netns.VXLAN{Dev: "eth0", Args: []string{"udp6zerocsumrx"}})
			fields := []string{"ip.ttl", "ip.dsfield", "udp.checksum", "udp.srcport", "vxlan.flags", "ip.flags.df"}
			from, auto := "ip.src=="+f.local, true
			if f.name == "IPv6" {
				fields = []string{"ipv6.hlim", "ipv6.tclass", "udp.checksum", "udp.srcport", "vxlan.flags"}
				from, auto = "ipv6.src=="+f.local, false
			}
			for _, c := range []struct {
				args, ping string
				ttl, tos   uint64
				df, noSum  bool
				lo, hi     uint64
			}{
				{"", "-t 33 -Q 0xba -M do", 64, 0x02, true, auto, 49152, 65535},
				{"-ttl inherit -tos inherit -df inherit -ecn compat -udpcsum on -srcport 5000-5999", "-t 33 -Q 0xba -M dont", 33, 0xb8, false, false, 5000, 5999},
				{"-ttl 7 -tos 0x28 -df unset -ecn rfc3168 -udpcsum off -srcport 5000-5000", "-t 33 -Q 3 -M do", 7, 0x2a, false, true, 5000, 5000},
			} {
				p := f.start(t, a, f.mtu, c.args)
				a.Addr("vxs0", "192.168.7.1/24")
				a.Ping("192.168.7.2", 1)
				capture := b.Capture("eth0", "udp dst port 4789")
				a.Run("ping", strings.Fields("-n -c 1 -W 2 192.168.7.2 "+c.ping)...)
				seen := capture.Stop()
				stop(t, p)
				rows := netns.Fields(t, seen, from+" && icmp.type==8 && vxlan.vni==9", fields...)
				if len(rows) != 1 {
					t.Fatalf("p2p %s: %v of\n%s", c.args, rows, netns.Dump(seen))
				}
				v := make([]uint64, len(fields))
				for i, text := range rows[0] {
					outer, _, _ := strings.Cut(text, ",") // the outer header's is the first
					v[i], _ = strconv.ParseUint(outer, 0, 64)
				}
				if v[0] != c.ttl || v[1] != c.tos || (v[2] == 0) != c.noSum || v[3] < c.lo || v[3] > c.hi || v[4] != 0x0800 ||
					len(v) > 5 && (v[5] == 1) != c.df {
					t.Errorf("p2p %s: %v are %v, want %+v", c.args, fields, rows[0], c)
				}
			}
		})
	}
}

// The flags about the MAC table and about peers.
func TestTableFlags(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b, c, sw := n.Host("a"), n.Host("b"), n.Host("c"), n.Switch("sw")
	for _, h := range []*netns.Host{a, b, c} {
		h.Quiet()
	}
	n.Plug(a, "10.0.0.1/24", sw)
	n.Plug(b, "10.0.0.2/24", sw)
	n.Plug(c, "10.0.0.3/24", sw)
	b.VXLAN("vx0", netns.VXLAN{ID: 9, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
	c.VXLAN("vx0", netns.VXLAN{ID: 9, Local: "10.0.0.3", Remote: "10.0.0.1", Addr: "192.168.7.3/24"})
	f := families[0]
	run := func(args string) *netns.Proc {
		p := start(t, a, f.ready("vxs0", 9, f.mtu), strings.Fields("-local 10.0.0.1 -id 9 "+args)...)
		a.Addr("vxs0", "192.168.7.1/24")
		return p
	}

	// Nothing is learned and nobody floods: b is reached by its static entry alone.
	p := run("-learning=false -fdb " + b.MAC("vx0") + "=10.0.0.2")
	a.Neighbour("vxs0", "192.168.7.2", b.MAC("vx0"))
	b.Neighbour("vx0", "192.168.7.1", a.MAC("vxs0"))
	a.Ping("192.168.7.2", 2)
	l := ask(t, p)
	if len(l.FDB) != 1 || l.FDB[0].Origin != "static" || l.dest(b.MAC("vx0")) != "10.0.0.2:4789" {
		t.Errorf("fdb %+v", l.FDB)
	}
	stop(t, p)
	b.IP("neigh", "del", "192.168.7.1", "dev", "vx0") // of the device that has gone

	// c is nobody's peer, and may not speak.
	p = run("-remote 10.0.0.2 -peers listed")
	a.Ping("192.168.7.2", 2)
	c.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "192.168.7.1")
	if l := ask(t, p); l.Drops["unknown-peer"] == 0 || len(l.Peers) != 1 {
		t.Errorf("drops %v, peers %+v", l.Drops, l.Peers)
	}
	stop(t, p)

	// One MAC, and no more. What is not learned is still forwarded.
	p = run("-remote 10.0.0.2,10.0.0.3 -maxaddress 2")
	for _, addr := range []string{"192.168.7.2", "192.168.7.3"} {
		a.Ping(addr, 2)
	}
	if l := ask(t, p); len(l.FDB) != 2 {
		t.Errorf("fdb %+v", l.FDB)
	}
	stop(t, p)

	// An entry that is not heard goes.
	mac := b.MAC("vx0")
	p = run("-remote 10.0.0.2 -ageing 2")
	a.Ping("192.168.7.2", 1)
	if l := ask(t, p); l.dest(mac) == "" {
		t.Errorf("fdb %+v", l.FDB)
	}
	a.Until("the entry has aged", func() bool { l := ask(t, p); return l.dest(mac) == "" })
	stop(t, p)
}

func TestQueuesAndIntervals(t *testing.T) {
	f := families[0]
	a, _ := f.peers(t, netns.VXLAN{})
	p := f.start(t, a, 1400, "-mtu 1400 -queues 4 -bind eth0 -mark 7 -stats 50ms")
	a.Addr("vxs0", "192.168.7.1/24")
	a.Ping("192.168.7.2", 3)
	if out := a.Run("ls", "/sys/class/net/vxs0/queues"); strings.Count(out, "rx-") != 4 {
		t.Errorf("queues of the device: %s", out)
	}
	out := a.Run("ss", "-Hulnep")
	if k := strings.Count(out, "10.0.0.1%eth0:4789"); k != 4 || !strings.Contains(out, "fwmark:0x7") {
		t.Errorf("%d sockets: %s", k, out)
	}
	before := strings.Count(p.Output(), "\nstats {")
	time.Sleep(500 * time.Millisecond)
	if k := strings.Count(p.Output(), "\nstats {") - before; k < 4 || k > 11 {
		t.Errorf("%d stats lines in half a second", k)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// What the system refuses is one line that names what to change.
func TestUnderlayErrors(t *testing.T) {
	n := netns.New(t)
	path, err := program()
	must(t, err)
	a := n.Host("a")
	a.Addr("lo", "10.0.0.1/32")
	wantFailure(t, inside(a, path, "-local 10.0.0.1 -bind nowhere"), `underlay: UDPConfig.Device: .*no such device: -bind must be an interface of this host`)
	a.MTU("lo", 100)
	wantFailure(t, inside(a, path, "-local 10.0.0.1"), `the underlay MTU of 10.0.0.1, 100, leaves an inner MTU of 50: raise it by at least 18`)
	a.MTU("lo", 68)
	wantFailure(t, inside(a, path, "-local 10.0.0.1"), `the underlay MTU of 10.0.0.1, 68, leaves an inner MTU of 18: raise it by at least 50`)
}

// inside prepares p2p inside a host.
func inside(h *netns.Host, path, args string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", h.NS, path}, strings.Fields(args)...)...)
}

// The capture has both sides, each packet in the tunnel as tshark decodes it.
func TestCapture(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, _ := f.peers(t, netns.VXLAN{Dev: "eth0"})
			file := filepath.Join(t.TempDir(), "p2p.pcapng")
			p := f.start(t, a, f.mtu, "-pcap "+file)
			a.Addr("vxs0", "192.168.7.1/24")
			a.Ping("192.168.7.2", 3)
			stop(t, p)
			decode := func(filter string) int {
				out := a.Run("tshark", "-n", "-r", file, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
					"-Y", filter, "-T", "fields", "-e", "frame.number")
				return len(regexp.MustCompile(`(?m)^\d+$`).FindAllString(out, -1)) // beside remarks of tshark
			}
			for filter, want := range map[string]int{
				"icmp && !vxlan":                                6, // requests and answers on the device
				"icmp && vxlan && vxlan.vni == 9":               6, // and in the tunnel
				"arp && vxlan && !_ws.malformed":                decode("arp && !vxlan"),
				"_ws.malformed || _ws.expert.severity == error": 0,
				"ip.checksum.status == Bad || udp.checksum.status == Bad || icmp.checksum.status == Bad": 0,
			} {
				if got := decode(filter); got != want {
					t.Errorf("%s: %d packets, want %d\n%s", filter, got, want, a.Run("tshark", "-n", "-r", file))
				}
			}
		})
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), strings.Fields("-local 127.0.0.1 -dstport 47891 -dev vxs78 -pcap /nowhere/at/all"), &stdout, &stderr); code != 1 ||
		stderr.String() != "p2p: -pcap: open /nowhere/at/all: no such file or directory\n" {
		t.Errorf("status %d, %q", code, &stderr)
	}
}
