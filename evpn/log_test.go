package evpn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// A session that is lost is a warning, which vxswitchd logs; one that ends with Run is none.
func TestLogLost(t *testing.T) {
	n := check.Must(node.New(nil))(t)
	defer n.Close()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	peer := netip.MustParseAddr("192.0.2.1")
	sp := check.Must(New(n, &Config{AS: 65000, RouterID: netip.MustParseAddr("192.0.2.11"), Peers: []Peer{{Addr: peer, AS: Internal}}, Log: log}))(t)
	for _, lost := range []func(netip.Addr, error){handler{sp}.Down, handler{sp}.Stale} {
		text.Reset()
		lost(peer, fmt.Errorf("removed: %w", context.Canceled))
		check.Equal(t, "warning when Run ends", text.String(), "")
		lost(peer, errors.New("hold timer expired"))
		for _, want := range []string{"level=WARN", "peer=192.0.2.1", "hold timer expired"} {
			if !bytes.Contains(text.Bytes(), []byte(want)) {
				t.Errorf("no %s in %s", want, text.String())
			}
		}
	}
}
