package gobgp

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// An ear hears in gobgp's log why there is no session with a peer: no event says that a connection could not be made, or that an OPEN which came
// by a connection of ours was refused. It hears nothing of a peer with a session.
type ear struct {
	b    *BGP
	peer netip.Addr // none for the log of the whole server
}

// Enabled implements [slog.Handler].
func (e *ear) Enabled(context.Context, slog.Level) bool {
	if !e.peer.IsValid() {
		return false
	}
	_, up := e.b.up.Load(e.peer)
	return !up
}

// Handle implements [slog.Handler].
func (e *ear) Handle(_ context.Context, r slog.Record) error {
	has := func(key string) (v slog.Value) {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == key {
				v = a.Value
			}
			return a.Key != key
		})
		return v
	}
	switch r.Message {
	case "failed to connect":
		e.b.keep(e.b.tried, e.peer, has("Error").String())
	case "sent notification":
		code, sub := has("Code"), has("Subcode")
		if code.Kind() != slog.KindInt64 || sub.Kind() != slog.KindInt64 {
			break
		}
		if code.Int64() == bgp.BGP_ERROR_FSM_ERROR { // what came in place of OPEN is a notification
			e.b.keep(e.b.tried, e.peer, "the peer refuses OPEN, such as for our AS or router ID")
		} else {
			e.b.keep(e.b.tried, e.peer, sent(uint8(code.Int64()), uint8(sub.Int64())))
		}
	}
	return nil
}

// WithAttrs implements [slog.Handler]: the log of a peer has its address.
func (e *ear) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if addr, err := netip.ParseAddr(a.Value.String()); a.Key == "Key" && err == nil {
			return &ear{e.b, addr}
		}
	}
	return e
}

// WithGroup implements [slog.Handler].
func (e *ear) WithGroup(string) slog.Handler { return e }

// sent is what gobgp says of a session that a notification of ours ends.
func sent(code, sub uint8) string {
	return "notification-sent " + bgp.NewNotificationErrorCode(code, sub).String()
}
