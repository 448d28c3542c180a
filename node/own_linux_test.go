package node

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/geneve"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two nodes whose tunnel has an encapsulation of the program's own, over UDP sockets: hosts behind them ping each other with packets as
// long as fit, in several segments, send a TCP stream, which leaves in superframes, and tshark reads what is on the wire.
func TestOwnEncapsulation(t *testing.T) {
	l := newLab(t)
	start := func(name, addr, peer string) *site {
		cfg := parse(t, `{"tunnels": [{"name": "gnv", "local": "`+addr+`", "port": 6081}], "ports": [{"name": "tap1"}],
		  "segments": [{"vni": 70000, "tunnel": "gnv", "flood": ["`+peer+`"], "members": [{"port": "tap1"}]}]}`)
		cfg.Tunnels[0].Own = geneve.Geneve{}
		return l.start(name, addr, cfg)
	}
	one, two := start("one", "192.0.2.1", "192.0.2.2"), start("two", "192.0.2.2", "192.0.2.1")
	a, b := one.guest("tap1", "10.0.0.1/24", ""), two.guest("tap1", "10.0.0.2/24", "")
	if got := a.IP("link", "show", "tap1"); !strings.Contains(got, " mtu 1442 ") { // 1500 - 20 - 8 - 16 - 14
		t.Error(got)
	}
	w := l.watch()
	a.Run("ping", "-n", "-c1", "-W5", "-Mdo", "-s1414", "10.0.0.2")
	b.Run("ping", "-n", "-c1", "-W5", "-Mdo", "-s1414", "10.0.0.1")
	lines := w.lines("geneve && icmp", "geneve.version", "geneve.vni", "geneve.proto_type", "geneve.option.class", "udp.dstport", "ip.len")
	if len(lines) < 4 {
		t.Errorf("%q", lines)
	}
	for _, x := range lines {
		if x != "0 0x011170 0x6558 0xffff 6081 1500" {
			t.Errorf("%q", x)
		}
	}
	before := one.Tunnels()["gnv"].Stats().Tx
	const n = 8 << 20
	sendTCP(t, a, b, "10.0.0.2:7777", n)
	after := one.Tunnels()["gnv"].Stats().Tx
	if frames := after.Frames - before.Frames; frames > n/2000 {
		t.Errorf("%d frames for %d bytes: no superframes", frames, n)
	}
}

// Open vSwitch sends Geneve with two options in each ICMP packet, and without in all others; the node has one in what it sends. Hosts ping
// each other and send a TCP stream, from UDP sockets and from packet sockets, over IPv4 and IPv6.
func TestOwnEncapsulationOVS(t *testing.T) {
	for _, c := range []struct{ local, far, bits, underlay string }{
		{"10.7.0.1", "10.7.0.2", "/24", "udp"},
		{"fd07::1", "fd07::2", "/64", "packet"},
	} {
		t.Run(c.underlay, func(t *testing.T) {
			l := newLab(t)
			far, s := l.plug("far", "192.0.2.2").h, l.plug("node", "192.0.2.1")
			more := `, "underlay": "packet", "bind": "eth0", "prefix": "` + c.local + c.bits + `"`
			if c.underlay == "udp" {
				s.h.Addr("eth0", c.local+c.bits)
				more = ""
			}
			cfg := parse(t, `{"tunnels": [{"name": "gnv", "local": "`+c.local+`", "port": 6081`+more+`}], "ports": [{"name": "tap1"}],
			  "segments": [{"vni": 70000, "tunnel": "gnv", "flood": ["`+c.far+`"], "members": [{"port": "tap1"}]}]}`)
			cfg.Tunnels[0].Own = geneve.Geneve{}
			s.run(cfg)
			near, guest := s.guest("tap1", "10.0.0.1/24", ""), l.n.Host("guest")
			dev, inside := l.n.Link(guest, "10.0.0.2/24", far, "")
			guest.MTU(dev, 1400)
			guest.TxOff(dev)
			far.Up(inside)
			ovs := far.OVS(netns.OVS{Local: c.far + c.bits, Under: "eth0", Inside: inside, MTU: 1500})
			far.TxOff("phy")
			far.Ready()
			ovs.Set("add-port", "br0", "gnv", "--", "set", "interface", "gnv", "type=geneve", `options:remote_ip="`+c.local+`"`, "options:key=70000", "options:csum=true")
			ovs.Flows("add-tlv-map", "br0", "{class=0xffff,type=2,len=4}->tun_metadata0,{class=0xffff,type=3,len=12}->tun_metadata1")
			ovs.Flows("add-flow", "br0", "priority=9,icmp,in_port="+inside+",actions=set_field:1->tun_metadata0,set_field:2->tun_metadata1,NORMAL")
			near.Until("the tunnel works", func() bool {
				_, err := near.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "10.0.0.2")
				return err == nil
			})
			seen := s.h.Capture("eth0", "")
			near.Run("ping", "-c1", "-W5", "-Mdo", "-s1372", "10.0.0.2")
			guest.Run("ping", "-c1", "-W5", "-Mdo", "-s1372", "10.0.0.1")
			lengths := map[string]int{} // of UDP: 8 of its own, 8 of the fixed header, options, and 1414 of the frame
			for _, r := range netns.Fields(t, seen.Stop(), "geneve && icmp", "udp.length") {
				lengths[r[0]]++
			}
			if lengths["1438"] < 2 || lengths["1454"] < 2 {
				t.Errorf("packets by length: %v, want 1438 with 8 bytes of options, and 1454 with 24", lengths)
			}
			sendTCP(t, near, guest, "10.0.0.2:7777", 1<<21)
			sendTCP(t, guest, near, "10.0.0.1:7777", 1<<21)
			if st := s.Tunnels()["gnv"].Stats(); len(st.Peers) != 1 || st.Peers[0].Rx.Frames < 1000 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// sendTCP sends n bytes from one host to another, by TCP.
func sendTCP(t *testing.T, from, to *netns.Host, at string, n int) {
	t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), n/16)
	ln := netns.Open(t, to, func() (net.Listener, error) { return net.Listen("tcp", at) })
	defer ln.Close()
	sender := netns.Open(t, from, func() (net.Conn, error) { return net.Dial("tcp", at) })
	go func() {
		sender.Write(data)
		sender.Close()
	}()
	c, err := ln.Accept()
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	got, err := io.ReadAll(c)
	must(t, err)
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes arrived, of %d, or others", len(got), len(data))
	}
}
