package evpn

import (
	"net/netip"
	"testing"
)

// Settings with which a session can never come up are errors, as are addresses that are no host's, and an RD of two segments or VRFs, whose routes would be one.
func TestCheck(t *testing.T) {
	addr, at := netip.MustParseAddr, netip.MustParseAddrPort
	config := func(listen []netip.AddrPort, peers ...Peer) *Config {
		return &Config{AS: 65000, RouterID: addr("192.0.2.11"), Listen: listen, Peers: peers}
	}
	v4, v6 := addr("192.0.2.1"), addr("2001:db8::1")
	multicast := config(nil)
	multicast.VTEP = addr("224.0.0.1")
	twice := config(nil)
	twice.Segments = []Segment{{VNI: 10, RD: "65000:1"}, {VNI: 20, RD: "65000:2"}, {VNI: 30, RD: "65000:1"}}
	vrfs := config(nil)
	vrfs.VRFs = []VRF{{Name: "red", RD: "65000:1"}, {Name: "blue", RD: "65000:1"}}
	for want, c := range map[string]*Config{
		"evpn: Config: AS and RouterID are required":                                                                                 nil,
		"evpn: Config.VTEP: 224.0.0.1: must be the address of a host":                                                                multicast,
		"evpn: Config.Segments[2].RD: \"65000:1\": segments[0] has it already":                                                       twice,
		"evpn: Config.VRFs[1].RD: \"65000:1\": vrfs[0] has it already":                                                               vrfs,
		"evpn: Config.Listen[0]: 192.0.2.11:0: must be an address and a port such as 10.0.0.1:179, 0.0.0.0:179 or [::]:179":          config([]netip.AddrPort{at("192.0.2.11:0")}),
		"evpn: Config.Listen[0]: invalid AddrPort: must be an address and a port such as 10.0.0.1:179, 0.0.0.0:179 or [::]:179":      config([]netip.AddrPort{{}}),
		"evpn: Config.Listen[0]: [::ffff:10.0.0.1]:179: must be an address and a port such as 10.0.0.1:179, 0.0.0.0:179 or [::]:179": config([]netip.AddrPort{at("[::ffff:10.0.0.1]:179")}),
		"evpn: Config.Listen[1]: 0.0.0.0:179: listen[0] has it already":                                                              config([]netip.AddrPort{at("0.0.0.0:179"), at("0.0.0.0:179")}),
		"evpn: Config.Peers[0].Passive: true: the peer cannot connect: an address of its family is required in listen":               config(nil, Peer{Addr: v4, AS: 65000, Passive: true}),
		"evpn: Config.Peers[1].Passive: true: the peer cannot connect: an address of its family is required in listen":               config([]netip.AddrPort{at("0.0.0.0:179")}, Peer{Addr: v4, AS: 65000, Passive: true}, Peer{Interface: "eth0", AS: External, Passive: true}),
		"evpn: Config.Peers[0].Local: 0.0.0.0: must be an address of this host":                                                      config(nil, Peer{Addr: v4, AS: 65000, Local: addr("0.0.0.0")}),
		"evpn: Config.Peers[0].Local: 192.0.2.1: is the address of the peer":                                                         config(nil, Peer{Addr: v4, AS: 65000, Local: v4}),
		"evpn: Config.Peers[0].Local: 2001:db8::1: must be an address of the family of 192.0.2.1":                                    config(nil, Peer{Addr: v4, AS: 65000, Local: v6}),
	} {
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant\n%s", err, want)
		}
		if _, err := New(nil, c); err == nil || err.Error() != want {
			t.Errorf("New: %v\nwant\n%s", err, want)
		}
	}
	c := config([]netip.AddrPort{at("0.0.0.0:179"), at("[::]:179")}, Peer{Addr: v4, AS: 65000, Passive: true}, Peer{Addr: v6, AS: 65000, Passive: true}, Peer{Interface: "eth0", AS: External, Passive: true})
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
