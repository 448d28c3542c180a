package port

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/ring"
)

// ErrFull is returned by [Pipe.Send] when the switch has not yet read what was
// sent before. The frame is lost, as on a full network card; send it again later
// or not at all.
var ErrFull = errors.New("port: queue is full")

// DefaultMTU is the longest frame of a port that is not told otherwise: 1500
// bytes behind an Ethernet header.
const DefaultMTU = 1500 + ethLen

// PipeConfig configures a [Pipe]. The zero value works.
type PipeConfig struct {
	Name  string // for messages and dumps; default "pipe"
	MTU   int    // longest frame in bytes from the destination MAC on, a VLAN tag not counted; 0 = DefaultMTU
	Queue int    // frames that may wait in each direction; 0 = 256
}

// A Pipe is a port whose far side is a Go program: what the program Sends comes
// into the switch, and what the switch sends to the port is Received.
//
// Both directions are bounded. Frames are copied, so both sides keep theirs. An
// idle Pipe holds no packet memory. A Pipe blocks only on a sync.Cond: under
// testing/synctest a goroutine that waits in Recv or in the port's Read is durably
// blocked.
type Pipe struct {
	name string
	mtu  int
	in   *ring.Ring[struct{}] // host to switch
	out  *ring.Ring[struct{}] // switch to host
}

// NewPipe makes a Pipe. A nil cfg is the zero value.
func NewPipe(cfg *PipeConfig) *Pipe {
	var c PipeConfig
	if cfg != nil {
		c = *cfg
	}
	queue := cmp.Or(max(c.Queue, 0), 256)
	return &Pipe{
		name: cmp.Or(c.Name, "pipe"),
		mtu:  cmp.Or(max(c.MTU, 0), DefaultMTU),
		in:   ring.New[struct{}](queue),
		out:  ring.New[struct{}](queue),
	}
}

// Send hands the switch a copy of an Ethernet frame. It never waits: with a full
// queue it returns [ErrFull], after Close [net.ErrClosed]. A frame longer than the
// MTU and one VLAN tag is an error too, as it is on a kernel device.
func (p *Pipe) Send(packet []byte) error {
	if len(packet) > p.mtu+vlanLen {
		return fmt.Errorf("port: %s: frame of %d bytes, longer than %d and a VLAN tag", p.name, len(packet), p.mtu)
	}
	switch p.in.Put(struct{}{}, packet) {
	case frame.PortFull:
		return ErrFull
	case frame.PortDown:
		return net.ErrClosed
	}
	return nil
}

// Recv waits for the next frame the switch sends to this port and returns a copy
// that is the caller's. The error is that of ctx when ctx ends first, and
// [net.ErrClosed] after Close.
func (p *Pipe) Recv(ctx context.Context) ([]byte, error) {
	b, _, err := p.out.Take(ctx)
	return b, err
}

// Name returns the configured name.
func (p *Pipe) Name() string { return p.name }

// MTU returns the longest frame the Pipe takes, in bytes from the destination MAC
// on, a VLAN tag not counted.
func (p *Pipe) MTU(peer uint16) int { return p.mtu }

// Readers returns the one receive queue: what the host side sent.
func (p *Pipe) Readers() []frame.Reader {
	if p.in == nil {
		return nil // not made by NewPipe: the switch refuses it
	}
	return []frame.Reader{pipeReader{p}}
}

// Writer returns a new transmit side. With the host side's queue full it drops
// with [frame.PortFull]; after Close Write returns [net.ErrClosed].
func (p *Pipe) Writer(w int) frame.Writer { return pipeWriter{p} }

// Pause makes Read return [frame.ErrPaused] until Resume. The host side is not
// affected: it may Send until the queue is full.
func (p *Pipe) Pause() { p.in.Pause(true) }

// Resume ends Pause.
func (p *Pipe) Resume() { p.in.Pause(false) }

// Close makes every call return [net.ErrClosed], calls that wait included, and
// forgets the frames on the way.
func (p *Pipe) Close() error {
	p.in.Close()
	p.out.Close()
	return nil
}

type pipeReader struct{ p *Pipe }

func (r pipeReader) Read(b *frame.Batch) error { return r.p.in.Fill(b, nil) }

type pipeWriter struct{ p *Pipe }

func (w pipeWriter) Write(out []frame.Out) error {
	for i := range out {
		o := &out[i]
		switch o.Drop = unfit(o, 0); {
		case o.Drop != frame.NotDropped:
		case o.F.Len() > w.p.mtu+vlanLen:
			o.Drop = frame.TooBig
		default:
			o.Drop = w.p.out.Put(struct{}{}, o.F.Bytes())
		}
		if o.Drop == frame.PortDown {
			dropAll(out[i:], frame.PortDown)
			return net.ErrClosed
		}
	}
	return nil
}
