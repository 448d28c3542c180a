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

// ErrFull is returned by [Pipe.Send] if the queue is full because the switch has not read it yet. The
// frame is lost, as on a network card.
var ErrFull = errors.New("port: queue is full")

// DefaultMTU is the default length of the longest frame: 1500 bytes and an Ethernet header.
const DefaultMTU = 1500 + ethLen

// PipeConfig configures a [Pipe]. The zero value works.
type PipeConfig struct {
	Name  string // for messages and dumps; default "pipe"
	MTU   int    // longest frame in bytes from the destination MAC on, a VLAN tag not counted; 0 = DefaultMTU
	Queue int    // frames that may wait in each direction; 0 = 256
}

// A Pipe is a port whose far side is a Go program: the program calls Send and Recv.
//
// Both queues are bounded. Frames are copied. An idle Pipe holds no packet memory. Under testing/synctest
// a goroutine that waits in Recv or in Read is durably blocked.
type Pipe struct {
	name string
	mtu  int
	in   *ring.Ring[struct{}] // host to switch
	out  *ring.Ring[struct{}] // switch to host
}

// NewPipe returns a Pipe. A nil cfg is the zero value.
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

// Send sends a copy of an Ethernet frame to the switch. It never waits: it returns [ErrFull] if the queue
// is full, and [net.ErrClosed] after Close. It fails if the frame is longer than the MTU and one VLAN tag.
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

// Recv waits for the next frame from the switch and returns a copy. The error is that of ctx if ctx ends
// first, and [net.ErrClosed] after Close.
func (p *Pipe) Recv(ctx context.Context) ([]byte, error) {
	b, _, err := p.out.Take(ctx)
	return b, err
}

// Name returns the configured name.
func (p *Pipe) Name() string { return p.name }

// MTU returns the configured length of the longest frame.
func (p *Pipe) MTU(peer uint16) int { return p.mtu }

// Readers returns the one receive queue, of the frames sent by Send.
func (p *Pipe) Readers() []frame.Reader {
	if p.in == nil {
		return nil // a zero Pipe: the switch refuses it
	}
	return []frame.Reader{pipeReader{p}}
}

// Writer returns a Writer. If the queue of Recv is full it drops frames with [frame.PortFull]; after Close
// Write returns [net.ErrClosed].
func (p *Pipe) Writer(w int) frame.Writer { return pipeWriter{p} }

// Pause makes Read return [frame.ErrPaused] until Resume. Send works until the queue is full.
func (p *Pipe) Pause() { p.in.Pause(true) }

// Resume ends Pause.
func (p *Pipe) Resume() { p.in.Pause(false) }

// Close makes every call return [net.ErrClosed], calls that wait included, and discards the queues.
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
