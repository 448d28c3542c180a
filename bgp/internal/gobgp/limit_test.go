package gobgp

import (
	"net/netip"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The routes of a peer are not counted with each message, and one with too many has no session.
func TestLoads(t *testing.T) {
	const limit, message = 1600, 10
	peer := netip.MustParseAddr("192.0.2.1")
	has, counted, ended := 0, 0, 0
	l := &loads{
		limit: func(netip.Addr) int { return limit },
		count: func(loadKey) int { counted++; return has },
		end:   func(netip.Addr, string) { ended++ },
		of:    map[loadKey]*load{},
	}
	send := func(paths int, withdrawn bool) {
		for ; paths > 0; paths -= message {
			var list []*apiutil.Path
			for range message {
				list = append(list, &apiutil.Path{Family: bgp.RF_IPv4_UC, PeerAddress: peer, Withdrawal: withdrawn})
			}
			l.heard(list)
		}
	}
	want := func(what string, counts, ends int) {
		t.Helper()
		check.Equal(t, what+": counted", counted, counts)
		check.Equal(t, what+": ended", ended, ends)
		counted = 0
	}
	has = limit
	send(limit, false)
	want("as many as it may", 0, 0)
	send(limit, true)
	want("withdrawn", 0, 0)
	send(10*limit, false)
	want("the same again, ten times", 10*limit/(limit/16+1)+1, 0)
	has = limit + 1
	send(limit/8, false)
	want("one more", 1, 1)
	l.down(peer)
	send(limit, false)
	want("again", 0, 1)
	send(message, false)
	want("too many again", 1, 2)
}
