package ovsdb

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/node"
)

// What BFD says of a peer is said in the words of the schema and of RFC 5880.
func TestBFDStatus(t *testing.T) {
	there, elsewhere := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	n := &fakeNode{cfg: node.Config{Tunnels: []node.Tunnel{{}}}}
	n.cfg.Tunnels[0].Name = "vx"
	s := bound(t, n)
	remotes := map[netip.Addr]bool{there: true, elsewhere: true}
	p := s.probe()
	if got := p.of(remotes)[there]; got["enabled"] != "false" || got["info"] == "" || p.local() != nil {
		t.Errorf("without BFD: %v, %v", got, p.local())
	}
	n.cfg.Tunnels[0].BFD = new(node.BFD)
	n.sessions = []node.BFDSession{{Tunnel: "other", Session: bfd.Session{Peer: bfd.Peer{Remote: elsewhere}}},
		{Tunnel: "vx", Session: bfd.Session{Peer: bfd.Peer{Remote: there}, Status: bfd.Alive, State: bfd.Up, RemoteState: bfd.AdminDown, Diag: bfd.TimeExpired, RemoteDiag: 31}}}
	p = s.probe()
	want := map[string]string{"enabled": "true", "forwarding": "true", "state": "up", "remote_state": "admin_down",
		"diagnostic": "Control Detection Time Expired", "remote_diagnostic": "Reserved for future use"}
	if got := p.of(remotes); !maps.Equal(got[there], want) || got[elsewhere] != nil || p.local()["bfd_dst_mac"] != "00:00:5e:00:52:02" {
		t.Errorf("%v, %v", got, p.local())
	}
}
