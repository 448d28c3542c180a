package port

import "github.com/vxswitch/vxswitch/frame"

// Port returns p with its frames captured. Attach what is returned in place of p. It
// is an error if p is a tunnel.
func (c *Capture) Port(p Port) (Port, error) {
	if err := wrappable("Capture", p); err != nil {
		return nil, err
	}
	return withPauser(&capturePort{Port: p, c: c, source: &captureSource{nameOf(p)}}, p), nil
}

type capturePort struct {
	Port
	c      *Capture
	source *captureSource
}

func (p *capturePort) Name() string { return p.source.name }

func (p *capturePort) Offloads() frame.Offloads { return offloadsOf(p.Port) }

func (p *capturePort) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, r := range p.Port.Readers() {
		rs = append(rs, &captureReader{p: p, in: r})
	}
	return rs
}

func (p *capturePort) Writer(w int) frame.Writer {
	return &captureWriter{p: p, to: p.Port.Writer(w)}
}

// kindOf returns which interface of a port a frame belongs to.
func kindOf(f *frame.Frame) (k captureKind) {
	if f.Kind != frame.Ethernet {
		k |= rawIP
	}
	if f.GSO != (frame.GSO{}) {
		k |= superframes
	}
	return k
}

type captureReader struct {
	p     *capturePort
	in    frame.Reader
	parts [1][]byte
}

func (r *captureReader) Read(b *frame.Batch) error {
	err := r.in.Read(b)
	if file := r.p.c.on.Load(); file != nil && err == nil {
		r.capture(file, b.Frames)
	}
	return err
}

func (r *captureReader) capture(file *captureFile, frames []frame.Frame) {
	at := now()
	for i := range frames {
		f := &frames[i]
		r.parts[0] = f.Bytes()
		file.put(r.p.source, kindOf(f), at, f.Len(), r.parts[:])
	}
	r.parts[0] = nil // borrowed
}

type captureWriter struct {
	p     *capturePort
	to    frame.Writer
	head  tagHead
	parts [][]byte
}

func (w *captureWriter) Write(out []frame.Out) error {
	if file := w.p.c.on.Load(); file != nil {
		w.capture(file, out)
	}
	return w.to.Write(out)
}

func (w *captureWriter) capture(file *captureFile, out []frame.Out) {
	at := now()
	for i := range out {
		f, tag := out[i].F, out[i].Tag
		n := f.Len()
		if f.Kind != frame.Ethernet || n < macLen {
			tag = 0
		}
		if tag != 0 {
			n += vlanLen
		}
		w.parts = w.head.gather(w.parts[:0], tag, f.Bytes())
		file.put(w.p.source, kindOf(f), at, n, w.parts)
	}
	clear(w.parts) // borrowed
}
