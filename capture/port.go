package capture

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/internal/wrap"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Port returns a port to attach in place of p, whose frames it captures. It has the name and the
// offloads of p, and can be paused if p can. Closing it closes p. Port fails if p is nil or a tunnel: the
// packets of a tunnel are captured at its underlay.
func (c *Capture) Port(p vswitch.Port) (vswitch.Port, error) {
	if err := wrap.Check(p); err != nil {
		return nil, fmt.Errorf("capture: Port: %w", err)
	}
	name := wrap.Name(p)
	return wrap.Around(&port{Port: p, c: c, name: &name}, p), nil
}

type port struct {
	vswitch.Port
	c    *Capture
	name *string
}

func (p *port) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, r := range p.Port.Readers() {
		rs = append(rs, &portReader{p: p, in: r})
	}
	return rs
}

func (p *port) Writer(w int) frame.Writer { return &portWriter{p: p, to: p.Port.Writer(w)} }

// put captures a frame of n bytes that consists of parts.
func (p *port) put(file *fileWriter, f *frame.Frame, at int64, n int, parts [][]byte) {
	i := iface{name: p.name}
	if f.Kind != frame.Ethernet {
		i.flags |= rawIP
	}
	if f.GSO != (frame.GSO{}) {
		i.flags |= superframes
	}
	file.put(i, at, n, parts)
}

type portReader struct {
	p     *port
	in    frame.Reader
	parts [1][]byte
}

func (r *portReader) Read(b *frame.Batch) error {
	err := r.in.Read(b)
	if file := r.p.c.on.Load(); file != nil && err == nil {
		r.capture(file, b.Frames)
	}
	return err
}

func (r *portReader) capture(file *fileWriter, frames []frame.Frame) {
	at := now()
	for i := range frames {
		f := &frames[i]
		r.parts[0] = f.Bytes()
		r.p.put(file, f, at, f.Len(), r.parts[:])
	}
	r.parts[0] = nil // borrowed
}

type portWriter struct {
	p     *port
	to    frame.Writer
	head  wire.TagHead
	parts [][]byte
}

func (w *portWriter) Write(out []frame.Out) error {
	if file := w.p.c.on.Load(); file != nil {
		w.capture(file, out)
	}
	return w.to.Write(out)
}

func (w *portWriter) capture(file *fileWriter, out []frame.Out) {
	at := now()
	for i := range out {
		f, tag := out[i].F, out[i].Tag
		n := f.Len()
		if f.Kind != frame.Ethernet || n < wire.MACsLen {
			tag = 0
		}
		if tag != 0 {
			n += wire.VLANLen
		}
		w.parts = w.head.Gather(w.parts[:0], tag, f.Bytes())
		w.p.put(file, f, at, n, w.parts)
	}
	clear(w.parts) // borrowed
}
