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
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	ln := netns.Open(t, b, func() (net.Listener, error) { return net.Listen("tcp", "10.0.0.2:7777") })
	sender := netns.Open(t, a, func() (net.Conn, error) { return net.Dial("tcp", "10.0.0.2:7777") })
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
	after := one.Tunnels()["gnv"].Stats().Tx
	if frames := after.Frames - before.Frames; frames > uint64(len(data)/2000) {
		t.Errorf("%d frames for %d bytes: no superframes", frames, len(data))
	}
}
