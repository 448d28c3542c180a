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
	return wrap.Around(&port{Port: p, c: c, name: name}, p), nil
}

type port struct {
	vswitch.Port
	c    *Capture
	name string
}

func (p *port) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, r := range p.Port.Readers() {
		rs = append(rs, &portReader{p: p, in: r})
	}
	return rs
}

// Inside returns the port that this one is around, nil if frames may pass here only.
func (p *port) Inside() any { return p.c.look(p.Port) }

func (p *port) Writer(w int) frame.Writer { return &portWriter{p: p, to: p.Port.Writer(w)} }

// of returns the interface of a frame from a port.
func of(name string, f *frame.Frame) iface {
	i := iface{name: name}
	if f.Kind != frame.Ethernet {
		i.flags |= rawIP
	}
	if f.GSO != (frame.GSO{}) {
		i.flags |= superframes
	}
	return i
}

type portReader struct {
	p     *port
	in    frame.Reader
	parts [1][]byte
}

func (r *portReader) Read(b *frame.Batch) error {
	err := r.in.Read(b)
	if files := r.p.c.on.Load(); files != nil && err == nil {
		r.capture(*files, b.Frames)
	}
	return err
}

func (r *portReader) capture(files []*File, frames []frame.Frame) {
	at := now()
	for _, file := range files {
		if !file.ofPort(r.p.name) {
			continue
		}
		for i := range frames {
			f := &frames[i]
			r.parts[0] = f.Bytes()
			file.put(of(r.p.name, f), f.Kind, at, f.Len(), r.parts[:], nil)
		}
	}
	r.parts[0] = nil // borrowed
}

type portWriter struct {
	p     *port
	to    frame.Writer
	head  wire.TagHead
	parts [][]byte
	join  []byte
}

func (w *portWriter) Write(out []frame.Out) error {
	if files := w.p.c.on.Load(); files != nil {
		w.capture(*files, out)
	}
	return w.to.Write(out)
}

func (w *portWriter) capture(files []*File, out []frame.Out) {
	at := now()
	for _, file := range files {
		if !file.ofPort(w.p.name) {
			continue
		}
		for i := range out {
			f, tag := out[i].F, out[i].VLANTag()
			n := f.Len()
			if f.Kind != frame.Ethernet || n < wire.MACsLen {
				tag = 0
			}
			if tag != 0 {
				n += wire.VLANLen
			}
			w.parts = w.head.Gather(w.parts[:0], tag, f.Bytes())
			file.put(of(w.p.name, f), f.Kind, at, n, w.parts, &w.join)
		}
	}
	clear(w.parts) // borrowed
}
