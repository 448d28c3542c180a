package main

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
)

// peer is the one that all frames from the tunnel come from.
func peer() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.2:4789") }

// A wire is an underlay that counts the copies of frames that are sent. With gather it
// makes each, as system calls do.
type wire struct {
	*rig.Wire
	gather bool
	buf    [8 << 10]byte
	last   frame.Endpoint
}

func newWire() *wire { return &wire{Wire: rig.NewWire(peer())} }

// Sender returns the wire.
func (w *wire) Sender(int) frame.Sender { return w }

// Send counts ds.
func (w *wire) Send(ds []frame.Datagram) error {
	for i := range ds {
		for _, to := range ds[i].To {
			if !w.gather {
				break
			}
			n := 0
			for _, part := range ds[i].Parts {
				n += copy(w.buf[n:], part)
			}
			w.last = to
		}
	}
	return w.Wire.Send(ds)
}
