package gobgp

import (
	"net/netip"
	"testing"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A teller hears of sessions alone.
type teller struct {
	engine.Handler
	why string
}

func (x *teller) Session(_ netip.Addr, up bool, why string) { x.why = why }

// The end of a session always has a reason: the engine has none for those that end here.
func TestSessionEnds(t *testing.T) {
	peer := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name   string
		before func(b *BGP)
		end    apiutil.PeerState
		want   string
	}{
		{"by the peer", func(*BGP) {}, apiutil.PeerState{DisconnectReason: api.PeerState_DISCONNECT_REASON_READ_FAILED, DisconnectMessage: "read-failed"}, "read-failed"},
		{"over its limit", func(b *BGP) { b.ends(peer, "more routes than its limit, 1") }, apiutil.PeerState{DisconnectReason: api.PeerState_DISCONNECT_REASON_ADMIN_DOWN}, "more routes than its limit, 1"},
		{"over its limit, and lost", func(b *BGP) { b.ends(peer, "more routes than its limit, 1") }, apiutil.PeerState{DisconnectReason: api.PeerState_DISCONNECT_REASON_READ_FAILED, DisconnectMessage: "read-failed"}, "more routes than its limit, 1"},
		{"a dead path", func(b *BGP) { b.ends(peer, dead); b.forget(peer) }, apiutil.PeerState{}, dead},
		{"other settings", func(b *BGP) { b.keep(b.why, peer, "of an earlier one") }, apiutil.PeerState{}, ours},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, h := New(engine.Config{}), new(teller)
			b.session(h, &apiutil.PeerState{NeighborAddress: peer, SessionState: bgp.BGP_FSM_ESTABLISHED})
			c.before(b)
			c.end.NeighborAddress = peer
			b.session(h, &c.end)
			check.Equal(t, "reason", h.why, c.want)
		})
	}
}
