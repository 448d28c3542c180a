package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// ipipLab is p2p and a Linux guest whose kernel has the tunnel devices, with a router
// between them:
//
//	a 10.0.1.1 ---- r ---- guest 10.0.2.2
//	  fd01::1                fd02::2
type ipipLab struct {
	t    *testing.T
	a, r *netns.Host
	g    *qemu.Guest
}

func newIPIPLab(t *testing.T) *ipipLab {
	n := netns.New(t)
	l := &ipipLab{t: t, a: n.Host("a"), r: n.Router("r")}
	n.Link(l.a, "10.0.1.1/24,fd01::1/64", l.r, "10.0.1.9/24,fd01::9/64")
	l.a.IP("route", "add", "default", "via", "10.0.1.9")
	l.a.IP("-6", "route", "add", "default", "via", "fd01::9")
	l.g = qemu.Boot(t, l.r, qemu.Config{Link: "guest0", Addr: "10.0.2.2/24,fd02::2/64", Setup: []string{
		"ip route add default via 10.0.2.9",
		"ip -6 route add default via fd02::9",
		"echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter",
		"ip link add ipip0 type ipip local 10.0.2.2 remote 10.0.1.1",
		"ip addr add 192.168.7.2/24 dev ipip0; ip link set ipip0 up",
		"ip link add sit1 type sit local 10.0.2.2 remote 10.0.1.1",
		"ip addr add fd07::2/64 dev sit1 nodad; ip link set sit1 up",
		"ip link add six type ip6tnl mode any local fd02::2 remote fd01::1", // with the option of RFC 2473, section 4.1.1
		"ip addr add 192.168.6.2/24 dev six; ip addr add fd06::2/64 dev six nodad; ip link set six up",
	}})
	l.r.Addr("guest0", "10.0.2.9/24,fd02::9/64")
	l.a.Ping("10.0.2.2", 1)
	l.a.Ping("fd02::2", 1)
	return l
}

func (l *ipipLab) start(t *testing.T, args string) *netns.Proc {
	t.Helper()
	p := start(t, l.a, "ready dev=vxs0 type=ipip local=10.0.1.1 mtu=1480",
		strings.Fields("-type ipip -local 10.0.1.1 -remote 10.0.2.2 "+args)...)
	l.a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
	return p
}

// The kernel's own ipip, sit and ip6tnl devices are the other end.
func TestKernelIPIP(t *testing.T) {
	t.Parallel()
	l := newIPIPLab(t)
	a, r, g := l.a, l.r, l.g

	t.Run("IPv4 and IPv6 in IPv4", func(t *testing.T) {
		p := l.start(t, "")
		seen := r.Capture("guest0", "ip proto 4 or ip proto 41")
		a.Ping("192.168.7.2", 5)
		a.Ping("fd07::2", 5)
		g.Run("ping -c 3 192.168.7.1")
		g.Run("ping6 -c 3 fd07::1")
		decodes(t, seen.Stop(), layers.LayerTypeIPv4)
		a.Run("ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1452", "192.168.7.2")
		if out, err := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "1453", "192.168.7.2"); err == nil || !strings.Contains(out, "mtu=1480") {
			t.Errorf("1481 bytes with DF: %s", out)
		}
		l.tcp(t, "192.168.7.1", "192.168.7.2")
		last := stop(t, p)
		if last.Rx.Bytes < 4<<20 || last.Tx.Bytes < 4<<20 || len(last.Peers) != 1 || last.Peers[0].Addr != "10.0.2.2" {
			t.Errorf("%+v", last)
		}
		last.wantDrops(t, "port-full")
	})

	t.Run("outer header", func(t *testing.T) {
		cases := []struct {
			args, ping string
			want       map[string]string
			counts     bool // the outer identification
		}{
			{"", "-M do -t 33 -Q 0xba", map[string]string{"ip.proto": "4,1", "ip.len": "104,84", "ip.flags.df": "1,1", "ip.ttl": "64,33", "ip.dsfield": "0xba,0xba"}, false},
			{"", "-M dont", map[string]string{"ip.flags.df": "1,0", "ip.dsfield": "0x00,0x00"}, false},
			{"-df unset", "-M dont", map[string]string{"ip.flags.df": "0,0"}, true},
			{"-df unset", "-M do", map[string]string{"ip.flags.df": "1,1"}, false}, // never lost
			{"-df inherit", "-M dont", map[string]string{"ip.flags.df": "0,0"}, true},
			{"-ttl inherit -tos 0x28", "-t 33 -Q 3", map[string]string{"ip.ttl": "33,33", "ip.dsfield": "0x2b,0x03"}, false},
			{"-tos 0 -ecn compat", "-Q 0xba", map[string]string{"ip.dsfield": "0x00,0xba"}, false},
		}
		// tshark shows the outer field and the inner, with a comma between them. It starts
		// slowly, and looks at all of them at once: at two pings of each case.
		fields := []string{"ip.proto", "ip.len", "ip.flags.df", "ip.ttl", "ip.dsfield", "ip.id"}
		seen := r.Capture("eth0", "src host 10.0.1.1")
		for _, c := range cases {
			p := l.start(t, c.args)
			for range 2 {
				a.Run("ping", append(strings.Fields("-n -c 1 -W 2 "+c.ping), "192.168.7.2")...)
			}
			stop(t, p)
		}
		rows := netns.Fields(t, seen.Stop(), "icmp.type==8", fields...)
		if len(rows) != 2*len(cases) {
			t.Fatalf("%d packets of %d pings", len(rows), 2*len(cases))
		}
		for i, c := range cases {
			first, again := rows[2*i], rows[2*i+1]
			for k, f := range fields {
				want, is := c.want[f]
				if got := strings.NewReplacer("True", "1", "False", "0").Replace(first[k]); is && got != want {
					t.Errorf("p2p %s, ping %s: %s is %q, want %q", c.args, c.ping, f, got, want)
				}
			}
			id := func(row []string) string { s, _, _ := strings.Cut(row[len(fields)-1], ","); return s }
			if c.counts && (id(first) == id(again) || id(first) == "0x0000") {
				t.Errorf("p2p %s: packets that may be cut have identifications %s and %s", c.args, id(first), id(again))
			}
		}
	})

	t.Run("ECN on the way in", func(t *testing.T) {
		p := l.start(t, "")
		defer stop(t, p)
		a.Ping("192.168.7.2", 1)
		r.Run("nft", "add table ip congested; add chain ip congested way { type filter hook forward priority 0; }; add rule ip congested way ip saddr 10.0.2.2 ip protocol 4 ip ecn set ce")
		defer r.Run("nft", "delete table ip congested")
		seen := a.Capture("vxs0", "")
		a.Run("ping", "-n", "-c", "1", "-W", "2", "-Q", "2", "192.168.7.2") // the answer's ECN field is the request's
		arrived := 0
		for _, p := range seen.Stop() {
			ip, ok := gopacket.NewPacket(p.Data, layers.LayerTypeIPv4, gopacket.Default).NetworkLayer().(*layers.IPv4)
			if !ok || ip.SrcIP.String() != "192.168.7.2" {
				continue
			}
			if arrived++; ip.TOS != 3 || wire.Checksum(wire.Sum(ip.Contents, 0)) != 0 {
				t.Errorf("ECT(0) that met congestion arrives with TOS %#x, header % x", ip.TOS, ip.Contents)
			}
		}
		if arrived != 1 {
			t.Errorf("%d answers", arrived)
		}
		if out, err := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "-Q", "0", "192.168.7.2"); err == nil {
			t.Errorf("Not-ECT that met congestion arrives:\n%s", out)
		}
		if got := ask(t, p).Drops["ecn"]; got != 1 {
			t.Errorf("%d drops as ecn", got)
		}
	})

	t.Run("path MTU", func(t *testing.T) {
		p := l.start(t, "")
		defer stop(t, p)
		r.MTU("guest0", 1400)
		defer r.MTU("guest0", 1500)
		for _, c := range []struct {
			to, form   string
			head, want int
		}{
			{"192.168.7.2", "From 192.168.7.2 icmp_seq=1 Frag needed and DF set (mtu = %d)", 28, 1380},
			{"fd07::2", "From fd07::2 icmp_seq=1 Packet too big: mtu=%d", 48, 1380},
		} {
			got := 0
			for end := time.Now().Add(10 * time.Second); got == 0 && time.Now().Before(end); {
				out, _ := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.2", "-M", "do", "-s", fmt.Sprint(1480-c.head), c.to)
				for line := range strings.Lines(out) {
					fmt.Sscanf(line, c.form, &got)
				}
			}
			if got != c.want {
				t.Errorf("%s: an MTU of %d, want %d", c.to, got, c.want)
			}
			if got := mtuOf(t, a, c.to, c.want-c.head); got != 0 {
				t.Errorf("%s: %d bytes: an MTU of %d", c.to, c.want, got)
			}
		}
		a.IP("route", "flush", "cache")
		a.Run("ping", "-n", "-c", "2", "-W", "2", "-M", "dont", "-s", "1452", "192.168.7.2") // in pieces
	})

	t.Run("unreachable", func(t *testing.T) {
		p := l.start(t, "")
		defer stop(t, p)
		a.Ping("192.168.7.2", 1)
		r.IP("route", "add", "unreachable", "10.0.2.2/32")
		told := false
		for end := time.Now().Add(10 * time.Second); !told && time.Now().Before(end); {
			out, _ := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "192.168.7.2")
			told = strings.Contains(out, "From 192.168.7.2 icmp_seq=1 Destination Host Unreachable")
		}
		if !told {
			t.Error("nobody said that the other end is unreachable")
		}
		r.IP("route", "del", "unreachable", "10.0.2.2/32")
		a.Run("ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", "192.168.7.2") // it may hear of another one that was lost
	})

	t.Run("source filter", func(t *testing.T) {
		p := l.start(t, "")
		defer stop(t, p)
		g.Run("ip addr add 10.0.2.3/24 dev eth0; ip link add other type ipip local 10.0.2.3 remote 10.0.1.1; ip link set other up; ip addr add 192.168.8.2/24 dev other")
		defer g.Run("ip link del other; ip addr del 10.0.2.3/24 dev eth0")
		if _, status := g.Try("ping -c 2 -W 1 192.168.8.1"); status == 0 {
			t.Error("a stranger is answered")
		}
		if got := ask(t, p).Drops["unknown-peer"]; got != 2 {
			t.Errorf("%d drops as unknown-peer, want 2", got)
		}
	})

	t.Run("IPv4 and IPv6 in IPv6", func(t *testing.T) {
		p := start(t, a, "ready dev=vxs0 type=ipip local=fd01::1 mtu=1460", "-type", "ipip", "-local", "fd01::1", "-remote", "fd02::2")
		a.Addr("vxs0", "192.168.6.1/24,fd06::1/64")
		seen := r.Capture("guest0", "ip6 proto 4 or ip6 proto 41 or ip6 proto 60")
		a.Ping("192.168.6.2", 5)
		a.Ping("fd06::2", 5)
		g.Run("ping -c 3 192.168.6.1")
		g.Run("ping6 -c 3 fd06::1")
		decodes(t, seen.Stop(), layers.LayerTypeIPv6)
		l.tcp(t, "192.168.6.1", "192.168.6.2")
		last := stop(t, p)
		last.wantDrops(t, "port-full")
	})
}

// decodes has gopacket read packets of a tunnel: an outer header, an IP packet inside, and
// lengths that agree.
func decodes(t *testing.T, ps []netns.Packet, outer gopacket.LayerType) {
	t.Helper()
	inner := map[gopacket.LayerType]int{}
	for _, p := range ps {
		d := gopacket.NewPacket(p.Data, layers.LayerTypeEthernet, gopacket.Default)
		ls := d.Layers()
		if len(ls) < 4 || ls[1].LayerType() != outer || d.ErrorLayer() != nil {
			t.Fatalf("%v: %v", d, d.ErrorLayer())
		}
		head, in := len(ls[1].LayerContents()), ls[2]
		if in.LayerType() == layers.LayerTypeIPv6Destination { // the guest's encapsulation limit
			head, in = head+len(in.LayerContents()), ls[3]
		}
		if packet := len(in.LayerContents()) + len(in.LayerPayload()); len(p.Data) != 14+head+packet {
			t.Errorf("%d bytes of %d in a tunnel header of %d", packet, len(p.Data), head)
		}
		inner[in.LayerType()]++
	}
	if inner[layers.LayerTypeIPv4] < 10 || inner[layers.LayerTypeIPv6] < 10 || len(inner) != 2 {
		t.Errorf("inside: %v", inner)
	}
}

// tcp sends 4 MiB from the guest and to it.
func (l *ipipLab) tcp(t *testing.T, local, remote string) {
	t.Helper()
	const size = 4 << 20
	l.g.SendTCP(l.a, local, size)
	l.g.Run("nc -l -p 9001 >/tmp/got 2>/dev/null </dev/null &" + listening(9001))
	c := netns.Open(t, l.a, func() (net.Conn, error) { return net.DialTimeout("tcp", remote+":9001", netns.Timeout) })
	c.SetDeadline(time.Now().Add(netns.Timeout))
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, c) // until the guest has read all and closes
	l.a.Until("all has arrived", func() bool { return strings.TrimSpace(l.g.Run("wc -c </tmp/got")) == fmt.Sprint(size) })
	l.g.Run("rm /tmp/got")
}

// listening waits, in a guest, until somebody listens to a TCP port.
func listening(port int) string {
	return fmt.Sprintf("\nuntil cat /proc/net/tcp /proc/net/tcp6 | grep -q ':%04X 0*:0000 0A '; do sleep 0.05; done", port)
}
