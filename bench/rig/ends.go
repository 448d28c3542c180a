package rig

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A Sink counts what is written to a port.
type Sink struct{ Frames int }

// Write counts out.
func (s *Sink) Write(out []frame.Out) error { s.Frames += len(out); return nil }

// A Port is a local port made of a source and a sink.
type Port struct {
	*Source
	*Sink
}

// NewPort returns a port without packets.
func NewPort() *Port { return &Port{NewSource(), &Sink{}} }

// Readers returns the source.
func (p *Port) Readers() []frame.Reader { return []frame.Reader{p.Source} }

// Writer returns the sink, the same for every worker: only one may run at a time.
func (p *Port) Writer(int) frame.Writer { return p.Sink }

// Offloads returns all, so that nothing is done for the sink.
func (p *Port) Offloads() frame.Offloads { return frame.OffloadAll }

// MTU returns that of an ordinary Ethernet.
func (p *Port) MTU(uint16) int { return 1514 }

// A Wire is an underlay made of a source and a counter of what is sent.
type Wire struct {
	fake.Underlay
	*Source
	Sends, Datagrams int
	Copies           int // packets, also those of runs: two frames of one flow hash are one datagram
}

// NewWire returns an underlay whose packets come from a peer.
func NewWire(peer netip.AddrPort) *Wire {
	u := &Wire{Source: NewSource()}
	u.Tunnel = true
	u.Outer.Src, _ = frame.EndpointFrom(peer)
	return u
}

// Readers returns the source.
func (u *Wire) Readers() []frame.Reader { return []frame.Reader{u.Source} }

// Sender returns the wire, the same for every worker: only one may run at a time.
func (u *Wire) Sender(int) frame.Sender { return u }

// LocalAddr returns an address for documentation (RFC 5737).
func (u *Wire) LocalAddr() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:4789") }

// Send counts ds.
func (u *Wire) Send(ds []frame.Datagram) error {
	u.Sends++
	u.Datagrams += len(ds)
	for i := range ds {
		u.Copies += packets(&ds[i]) * len(ds[i].To)
	}
	return nil
}

// packets returns how many a datagram is on the wire.
func packets(d *frame.Datagram) int {
	if d.Seg == 0 {
		return 1
	}
	n := 0
	for _, p := range d.Parts {
		n += len(p)
	}
	return (n + int(d.Seg) - 1) / int(d.Seg)
}
