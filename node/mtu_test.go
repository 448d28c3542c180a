package node

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// narrowed is an underlay whose interface has an MTU of its own.
type narrowed struct {
	*memory.Underlay
	mtu int
}

func (u *narrowed) MTU() int { return u.mtu }

// An MTU that is too small for a tunnel is logged once, until another comes. The tunnel keeps the MTU that it has.
func TestNarrowUnderlayLoggedOnce(t *testing.T) {
	net, u, log := memory.NewNetwork(nil), &narrowed{mtu: 1500}, bytes.Buffer{}
	t.Cleanup(func() { net.Close() })
	n, err := New(&Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Listen: func(c *Tunnel) (_ vtep.Underlay, err error) {
			u.Underlay, err = net.Listen(c.AddrPort(), nil)
			return u, err
		},
	})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
	was, bad := v.MTU(0), map[string]string{}
	for i, x := range []struct{ mtu, logged int }{{40, 1}, {40, 1}, {1500, 1}, {40, 2}, {41, 3}, {41, 3}} {
		u.mtu = x.mtu
		n.followMTU(bad)
		if got := strings.Count(log.String(), "does not follow"); got != x.logged || v.MTU(0) != was {
			t.Errorf("%d: MTU %d is logged %d times, want %d; that of the tunnel is %d, was %d", i, x.mtu, got, x.logged, v.MTU(0), was)
		}
	}
}
