package node

import (
	"encoding/binary"
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
