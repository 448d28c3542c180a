package l3

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// CrossConnectConfig holds the settings of a [CrossConnect].
type CrossConnectConfig struct {
	Near, Far frame.Dest // the two ends: a TUN, and a tunnel for IP with its peer
	Tunnel    Tunnel     // what Far is; nil if it is none

	// Send has the switch send a frame that the wire has made: VSI.Send.
	Send func(to frame.Dest, f *frame.Frame) bool
}

// A CrossConnect joins two IP ports of one segment: what comes in at one end goes out at the other,
// as it is, its TTL included. It is for a segment that is a tunnel between two hosts, as
// ipip and sit devices of Linux are; the hosts route. It fills two slots: the CrossConnect itself is
// for Gateway, and its TooBig for the other.
type CrossConnect struct {
	cfg  CrossConnectConfig
	errs icmperr.PathMTU // says errors in the name of the far end
}

// NewCrossConnect returns a wire.
func NewCrossConnect(cfg CrossConnectConfig) (*CrossConnect, error) {
	switch {
	case cfg.Near.Port() == 0:
		return nil, errors.New("l3: WireConfig.Near: needed")
	case cfg.Far.Port() == 0 || cfg.Far.Port() == cfg.Near.Port():
		return nil, errors.New("l3: WireConfig.Far: a port other than Near is needed")
	case cfg.Tunnel != nil && absent.Is(cfg.Tunnel):
		return nil, fmt.Errorf("l3: WireConfig.Tunnel: is a %T that is nil", cfg.Tunnel)
	case cfg.Send == nil:
		return nil, errors.New("l3: WireConfig.Send: needed")
	}
	w := &CrossConnect{cfg: cfg}
	w.errs.Init(0, 0)
	return w, nil
}

// Process sends f out at the other end: frame.Forward.
func (w *CrossConnect) Process(f *frame.Frame, at frame.At) frame.Verdict {
	switch {
	case f.Kind == frame.Ethernet:
		return frame.Continue
	case f.From.Port() == w.cfg.Far.Port():
		return frame.Forward(w.cfg.Near)
	case f.From.Port() != w.cfg.Near.Port():
		return frame.Continue
	}
	if t := w.cfg.Tunnel; t != nil && mayReport(f) && t.Failed(w.cfg.Far.Peer()) {
		w.report(f, at.Tick)
	}
	return frame.Forward(w.cfg.Far)
}

// mayReport reports whether the sender of a packet may be told of an error about it.
func mayReport(f *frame.Frame) bool {
	if f.Kind == frame.IPv4 {
		p, ok := wire.ParseIPv4(f.Bytes())
		return ok && icmperr.Tellable4(p) == icmperr.Sent4 && p.ChecksumOK()
	}
	p, ok := wire.ParseIPv6(f.Bytes())
	return ok && icmperr.Tellable6(p) == icmperr.Sent6
}

// report tells the sender of a packet that its host is not reached, by a frame of its own: the
// packet goes on.
func (w *CrossConnect) report(f *frame.Frame, now frame.Tick) {
	g := frame.Make(make([]byte, max(f.Len(), icmperr.MinMTU6)))
	g.Kind, g.VNI = f.Kind, f.VNI
	copy(g.Bytes(), f.Bytes())
	o := icmperr.Malformed
	if p, ok := wire.ParseIPv4(f.Bytes()); ok && f.Kind == frame.IPv4 && p.ChecksumOK() {
		o = w.errs.Forge4(&g, 0, now, icmperr.NoHost, 0, min(len(p), icmperr.MaxError4-icmperr.Head4))
	} else if p, ok := wire.ParseIPv6(f.Bytes()); ok && f.Kind == frame.IPv6 {
		o = w.errs.Forge6(&g, 0, now, icmperr.NoHost, 0, min(len(p), icmperr.MinMTU6-icmperr.Head6))
	}
	if o == icmperr.Sent4 || o == icmperr.Sent6 {
		w.cfg.Send(f.From, &g)
	}
}

// A CrossConnectPathMTU is the stage of a [CrossConnect] for the slot TooBig.
type CrossConnectPathMTU struct{ w *CrossConnect }

// PathMTU returns the wire's stage for the slot PathMTU of its segment.
func (w *CrossConnect) PathMTU() CrossConnectPathMTU { return CrossConnectPathMTU{w} }

// Process cuts IPv4 packets without DF, and answers others as Switch.TooBig does (RFC 2003,
// section 5.1). A packet whose header is damaged is dropped: each piece would have a right checksum.
func (s CrossConnectPathMTU) Process(f *frame.Frame, at frame.At) frame.Verdict {
	if p, ok := wire.ParseIPv4(f.Bytes()); ok && f.Kind == frame.IPv4 && !p.DF() && p.ChecksumOK() && at.MTU >= icmperr.MinMTU4 {
		return fragment4(f, p, 0, at.MTU, at.From, at.To, s.w.cfg.Send)
	}
	return s.w.errs.Process(f, at)
}
