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
	Near, Far frame.Dest // the two ends: a TUN, and a peer of a tunnel for IP
	Tunnel    Tunnel     // the tunnel of Far; nil if Far is a port

	// Send sends a frame of the cross-connect's own, as VSI.Send does.
	Send func(to frame.Dest, f *frame.Frame) bool
}

// A CrossConnect joins two IP ports of one segment: packets pass from one to the other unchanged,
// TTL included. It is for a segment that is a tunnel between two hosts, like an ipip or sit device
// of Linux; the hosts route. It is the stage for the slot Gateway, its PathMTU that for the slot
// TooBig.
type CrossConnect struct {
	cfg  CrossConnectConfig
	errs icmperr.PathMTU // its errors come from the far end
}

// NewCrossConnect returns a cross-connect.
func NewCrossConnect(cfg *CrossConnectConfig) (*CrossConnect, error) {
	switch {
	case cfg == nil || cfg.Near.Port() == 0:
		return nil, errors.New("l3: CrossConnectConfig.Near: a port is required")
	case cfg.Far.Port() == 0 || cfg.Far.Port() == cfg.Near.Port():
		return nil, fmt.Errorf("l3: CrossConnectConfig.Far: %v: must be a port other than Near", cfg.Far)
	case cfg.Tunnel != nil && absent.Is(cfg.Tunnel):
		return nil, fmt.Errorf("l3: CrossConnectConfig.Tunnel: contains a nil %T", cfg.Tunnel)
	case cfg.Send == nil:
		return nil, errors.New("l3: CrossConnectConfig.Send: required")
	}
	c := &CrossConnect{cfg: *cfg}
	c.errs.Init(0, 0)
	return c, nil
}

// Process forwards f to the other end.
func (c *CrossConnect) Process(f *frame.Frame, at frame.At) frame.Verdict {
	switch {
	case f.Kind == frame.Ethernet:
		return frame.Continue
	case f.From.Port() == c.cfg.Far.Port():
		return frame.Forward(c.cfg.Near)
	case f.From.Port() != c.cfg.Near.Port():
		return frame.Continue
	}
	if t := c.cfg.Tunnel; t != nil && mayReport(f) && t.Failed(c.cfg.Far.Peer()) {
		c.report(f, at.Tick)
	}
	return frame.Forward(c.cfg.Far)
}

// mayReport reports whether the sender of a packet may get an ICMP error about it.
func mayReport(f *frame.Frame) bool {
	if f.Kind == frame.IPv4 {
		p, ok := wire.ParseIPv4(f.Bytes())
		return ok && icmperr.Tellable4(p) == icmperr.Sent4 && p.ChecksumOK()
	}
	p, ok := wire.ParseIPv6(f.Bytes())
	return ok && icmperr.Tellable6(p) == icmperr.Sent6
}

// report sends an ICMP error, host unreachable, to the sender of a packet that passed mayReport. The
// packet is still forwarded.
func (c *CrossConnect) report(f *frame.Frame, now frame.Tick) {
	g := frame.Make(make([]byte, max(f.Len(), icmperr.MinMTU6)))
	g.Kind, g.VNI = f.Kind, f.VNI
	copy(g.Bytes(), f.Bytes())
	var sent bool
	if p, _ := wire.ParseIPv4(f.Bytes()); f.Kind == frame.IPv4 {
		sent = c.errs.Forge4(&g, 0, now, icmperr.NoHost, 0, min(len(p), icmperr.MaxError4-icmperr.Head4)) == icmperr.Sent4
	} else {
		p, _ := wire.ParseIPv6(f.Bytes())
		sent = c.errs.Forge6(&g, 0, now, icmperr.NoHost, 0, min(len(p), icmperr.MinMTU6-icmperr.Head6)) == icmperr.Sent6
	}
	if sent {
		c.cfg.Send(f.From, &g)
	}
}

// A CrossConnectPathMTU is the stage of a [CrossConnect] for the slot TooBig.
type CrossConnectPathMTU struct{ c *CrossConnect }

// PathMTU returns the cross-connect's stage for the slot TooBig of its segment.
func (c *CrossConnect) PathMTU() CrossConnectPathMTU { return CrossConnectPathMTU{c} }

// Process fragments IPv4 packets without DF, and answers others as Switch.TooBig does (RFC 2003,
// section 5.1). It does not fragment a packet with a damaged header, whose fragments would have
// valid checksums.
func (s CrossConnectPathMTU) Process(f *frame.Frame, at frame.At) frame.Verdict {
	if p, ok := wire.ParseIPv4(f.Bytes()); ok && f.Kind == frame.IPv4 && !p.DF() && p.ChecksumOK() && at.MTU >= icmperr.MinMTU4 {
		return fragment4(f, p, 0, at.MTU, at.From, at.To, s.c.cfg.Send)
	}
	return s.c.errs.Process(f, at)
}
