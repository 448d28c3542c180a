package node

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A tunnel over packet sockets in a VLAN. Its peer is a vxlan device of the kernel, whose network is an access VLAN of Open vSwitch:
// hosts ping each other with the longest packets that fit, and all have the tag. It takes nothing of the MTU.
func TestTunnelInVLAN(t *testing.T) {
	for _, c := range []struct{ local, far, bits, size string }{
		{"10.7.0.1", "10.7.0.2", "/24", "1422"},
		{"fd07::1", "fd07::2", "/64", "1402"},
	} {
		t.Run(c.local, func(t *testing.T) {
			l := newLab(t)
			far := l.plug("far", "192.0.2.2").h
			s := l.start("node", "192.0.2.1", parse(t, `{"tunnels": [{"name": "vx", "local": "`+c.local+`", "underlay": "packet", "bind": "eth0", "vlan": 7, "prefix": "`+c.local+c.bits+`"}],
			  "ports": [{"name": "tap10"}], "segments": [{"vni": 10, "tunnel": "vx", "flood": ["`+c.far+`"], "members": [{"port": "tap10"}]}]}`))
			near := s.guest("tap10", "10.0.10.1/24", "")
			far.IP("link", "add", "unused", "type", "veth", "peer", "name", "inside")
			ovs := far.OVS(netns.OVS{Local: c.far + c.bits, Under: "eth0", Inside: "inside", MTU: 1500})
			ovs.Set("set", "port", "phy", "tag=7")
			far.TxOff("phy")
			far.Ready()
			far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: c.far, Remote: c.local, Dev: "phy", Addr: "10.0.10.2/24"})
			near.Until("the tunnel works", func() bool {
				_, err := near.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", "10.0.10.2")
				return err == nil
			})
			seen := far.Capture("eth0", "")
			near.Run("ping", "-c1", "-W5", "-Mdo", "-s"+c.size, "10.0.10.2")
			far.Run("ping", "-c1", "-W5", "-Mdo", "-s"+c.size, "10.0.10.1")
			n := 0
			for _, p := range seen.Stop() {
				if binary.BigEndian.Uint16(p.Data[12:]) == 0x8100 && binary.BigEndian.Uint16(p.Data[14:]) == 7 && len(p.Data) == 1518 {
					n++
				}
			}
			if n < 4 {
				t.Errorf("%d packets of 1518 bytes with the tag, want 4: two pings and their answers", n)
			}
		})
	}
}

// A provider's edge: members by service tag, at an interface whose other end is a trunk of Open vSwitch with a customer at a port of
// mode dot1q-tunnel. Frames with and without the customer's tag arrive as they were, and the service tag has the priority of that. What is
// in the service VLAN is not in the VLAN of the same number.
func TestServiceTag(t *testing.T) {
	for typ, more := range map[string]string{"packet": `, "promiscuous": true`, "interface": ""} {
		t.Run(typ, func(t *testing.T) {
			l := newLab(t)
			far := l.plug("far", "192.0.2.2").h
			s := l.start("node", "192.0.2.1", parse(t, `{"ports": [{"name": "eth0", "type": "`+typ+`"`+more+`}, {"name": "tap1", "mtu": 1500}, {"name": "tap2"}],
			  "segments": [
			    {"vni": 10, "innerVLAN": "pass", "members": [{"port": "eth0", "vlan": 100, "service": true}, {"port": "tap1"}]},
			    {"vni": 20, "members": [{"port": "eth0", "vlan": 100}, {"port": "tap2"}]}]}`))
			near, other := s.guest("tap1", "", ""), s.guest("tap2", "", "")
			far.IP("link", "add", "customer", "type", "veth", "peer", "name", "inside")
			far.Up("customer")
			far.Up("inside")
			for _, h := range []*netns.Host{far, s.h} { // packet sockets have room for an 802.1Q tag beside the MTU, but for no service tag
				h.MTU("eth0", 1504)
			}
			ovs := far.OVS(netns.OVS{Under: "eth0", Inside: "inside", MTU: 1500})
			ovs.Set("set", "Open_vSwitch", ".", "other_config:vlan-limit=2")
			ovs.Set("del-port", "br0", "inside", "--", "add-port", "phy", "inside", "vlan_mode=dot1q-tunnel", "tag=100")

			frame := func(text string, n int) []byte {
				b := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 9, text[0], 0x88, 0xb5}, text...)
				return append(b, make([]byte, n-len(b))...)
			}
			tag := func(tpid, tci uint16, b []byte) []byte {
				h := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(slices.Clone(b[:12]), tpid), tci)
				return append(h, b[12:]...)
			}
			has := func(ps []netns.Packet, b []byte) bool {
				return slices.ContainsFunc(ps, func(p netns.Packet) bool { return bytes.Equal(p.Data, b) })
			}
			plain, long, customer := frame("plain", 60), frame("long", 1514), tag(0x8100, 5<<13|7, frame("customer", 1510))
			all := [][]byte{plain, long, customer}

			far.Until("frames pass", func() bool {
				c := near.Capture("tap1", "")
				far.Inject("customer", plain)
				return has(c.Stop(), plain)
			})
			in, away := near.Capture("tap1", ""), other.Capture("tap2", "")
			far.Inject("customer", all...)
			ps := in.Want(len(all), func(p netns.Packet) bool {
				return has([]netns.Packet{p}, plain) || has([]netns.Packet{p}, long) || has([]netns.Packet{p}, customer)
			})
			for i, b := range all {
				if !has(ps, b) {
					t.Errorf("from the customer: frame %d has not arrived as it was", i)
				}
			}
			got := far.Capture("customer", "")
			wire := far.Capture("eth0", "")
			near.Inject("tap1", all...)
			ps = got.Want(len(all), func(p netns.Packet) bool {
				return has([]netns.Packet{p}, plain) || has([]netns.Packet{p}, long) || has([]netns.Packet{p}, customer)
			})
			for i, b := range all {
				if !has(ps, b) {
					t.Errorf("to the customer: frame %d has not arrived as it was", i)
				}
			}
			if !has(wire.Stop(), tag(0x88a8, 5<<13|100, customer)) {
				t.Errorf("the customer's frame has no service tag with its priority on the wire")
			}
			for _, p := range away.Stop() {
				if bytes.HasPrefix(p.Data[6:], plain[6:11]) { // not what the kernel says by itself
					t.Errorf("in the VLAN of the same number: % x", p.Data)
				}
			}
		})
	}
}
