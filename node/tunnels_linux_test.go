package node

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A node joins a network of the kernel's over IPv4 and another one over IPv6, which numbers
// it otherwise: hosts of both reach each other, and the node's guest.
func TestSegmentInTwoTunnels(t *testing.T) {
	l := newLab(t)
	far := func(name, addr, local, remote, inside string, id int) *netns.Host {
		s := l.plug(name, addr)
		s.h.VXLAN("vx0", netns.VXLAN{ID: id, Local: local, Remote: remote, Dev: "eth0", Addr: inside})
		return s.h
	}
	four := far("four", "192.0.2.2", "192.0.2.2", "192.0.2.1", "10.0.10.2/24", 10)
	six := far("six", "192.0.2.3", "2001:db8::3", "2001:db8::1", "10.0.10.3/24", 7010)
	const text = `{
	  "tunnels": [{"name": "a", "local": "192.0.2.1", "peers": "listed-per-vni", "reserved": "strict"}, {"name": "b", "local": "2001:db8::1"}],
	  "ports": [{"name": "tap0", "mtu": 1430}],
	  "segments": [{"vni": 10, "members": [{"port": "tap0"}], "tunnels": [
	    {"tunnel": "a", "flood": ["192.0.2.2"]}, {"tunnel": "b", "vni": 7010, "flood": ["2001:db8::3"], "group": 2}]}]
	}`
	s := l.start("node", "192.0.2.1", parse(t, text))
	guest := s.guest("tap0", "10.0.10.1/24", "")
	four.Ping("10.0.10.3", 2)
	six.Ping("10.0.10.2", 2)
	guest.Ping("10.0.10.2", 2)
	guest.Ping("10.0.10.3", 2)
	if got := s.dest(10, four.MAC("vx0")); got != "192.0.2.2:4789" {
		t.Errorf("the first is at %q", got)
	}
	if got := s.dest(10, six.MAC("vx0")); got != "[2001:db8::3]:4789" {
		t.Errorf("the second is at %q", got)
	}
}

// Members of a segment in mode access let in nothing but IP, and nothing to others than the
// gateway; a member's group goes with what comes in.
func TestAccessOnlyAndGroup(t *testing.T) {
	l := newLab(t)
	s := l.start("node", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "a", "local": "192.0.2.1", "gbp": true}],
	  "ports": [{"name": "tap0", "mtu": 1450}, {"name": "tap1", "mtu": 1450}],
	  "segments": [
	    {"vni": 10, "tunnel": "a", "flood": ["192.0.2.2"], "members": [{"port": "tap0", "gbp": 4660}]},
	    {"vni": 11, "tunnel": "a", "flood": ["192.0.2.2"], "neighbours": {"mode": "access"}, "members": [{"port": "tap1"}]}
	  ]
	}`))
	l.plug("far", "192.0.2.2")
	w := l.watch()
	guest := s.guest("tap0", "10.0.10.1/24", "")
	eth := func(typ ...byte) []byte {
		b := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1}, typ...)
		return append(b, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 10, 1, 10, 0, 10, 9)
	}
	member := s.guest("tap1", "10.0.11.1/24", "")
	member.Inject("tap1", eth(0x88, 0xb5), eth(8, 0))
	member.Until("both are dropped", func() bool {
		drops := s.stats("tap1").RxDrops
		return drops[frame.EtherType] == 1 && drops[frame.NotGateway] > 0 // beside what the guest's kernel says
	})
	guest.Inject("tap0", eth(8, 0))
	w.caps[0].Want(1, func(p netns.Packet) bool { return p.Out && bytes.Contains(p.Data, eth(8, 0)) })
	w.want("vxlan && !icmp && eth.dst == 02:00:00:00:00:09", []string{"vxlan.flag_g", "vxlan.gbp", "vxlan.vni", "ip.dst"}, "1 4660 10 192.0.2.2")
}
