package vtep

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Peers are addresses of one host, however they come.
func TestPeerAddresses(t *testing.T) {
	v := newVTEP(t, &Config{Peers: ListedPerVNI}, fake4(), fake6())
	for _, s := range []string{"255.255.255.255", "0.1.2.3", "0.0.0.0", "::", "::ffff:255.255.255.255", "::ffff:0.0.0.1"} {
		to := netip.AddrPortFrom(netip.MustParseAddr(s), 4789)
		_, peer := v.AddPeer(to)
		_, hop := v.NextHop(to, 7)
		for what, err := range map[string]error{
			"AddPeer": peer, "NextHop": hop, "SetFlood": v.SetFlood(vni, to), "Allow": v.Allow(vni, to),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "vtep: peer "+to.Addr().Unmap().String()+": is ") || !strings.Contains(err.Error(), "must be the address of one host") {
				t.Errorf("%s %v: %v", what, to, err)
			}
		}
	}
	if st := v.Stats(); len(st.Peers) != 0 {
		t.Errorf("%v", st.Peers)
	}
}

// The port of peers is that of the settings, or else of the underlays; IP-in-IP has none.
func TestPeerPort(t *testing.T) {
	check.Equal(t, "of the underlay", newVTEP(t, nil, fake6()).PeerPort(), 4789)
	check.Equal(t, "of the settings", newVTEP(t, &Config{Port: 4444}, fake4()).PeerPort(), 4444)
	check.Equal(t, "of IP-in-IP", newVTEP(t, &Config{Type: encap.TypeIPIP}, fakeAt(netip.AddrPortFrom(local4.Addr(), 0))).PeerPort(), 0)
}

// What comes from an address that is no host's makes no peer.
func TestSourceAddresses(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	r := v.Readers()[0]
	for _, s := range []string{"255.255.255.255", "0.0.0.1", "0.0.0.0", "224.0.0.1"} {
		f := u.hear(t, r, netip.AddrPortFrom(netip.MustParseAddr(s), 4789), vx(vni, inner(1)))
		check.Equal(t, s, f[0].Drop, frame.Martian)
	}
	if f := u.hear(t, r, at(1), vx(vni, inner(1))); f[0].Drop != frame.NotDropped || len(v.Stats().Peers) != 1 {
		t.Errorf("%v: %v", f[0].Drop, v.Stats().Peers)
	}
}
