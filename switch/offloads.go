package vswitch

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// writer returns the Writer by which w sends to p.
func (p *port) writer(w *worker) frame.Writer {
	to := p.p.Writer(w.id)
	if p.takes&frame.OffloadAll == frame.OffloadAll {
		return to
	}
	if w.adapter == nil {
		w.adapter = &adapter{batch: frame.NewBatch(&w.sw.arenas)}
	}
	return &adaptingWriter{adapter: w.adapter, port: p, to: to}
}

// An adaptingWriter wraps the Writer of a port that does not take every frame as it is. It cuts, completes
// and tags frames for the port, and drops those that it cannot make fit.
type adaptingWriter struct {
	*adapter
	port *port
	to   frame.Writer
}

// An adapter is the scratch memory that the adaptingWriters of a worker share.
type adapter struct {
	cutter gso.Cutter
	pieces [][]byte     // of a superframe: headers in scratch, payload in the frame
	batch  *frame.Batch // frames made here; released after each Write
	out    []frame.Out
	of     []int // parallel to out: the index of the Out that each was made from
}

func (m *adaptingWriter) Write(out []frame.Out) error {
	for i := range out {
		if o := &out[i]; !m.takes(o) || m.unfit(o) != frame.NotDropped {
			return m.adapt(out)
		}
	}
	return m.to.Write(out)
}

// takes reports whether the port takes a frame as it is.
func (m *adaptingWriter) takes(o *frame.Out) bool {
	return m.port.takes.Take(o.F.GSO) && !m.needsTag(o)
}

// needsTag reports whether the tag must be written into the frame. The tag of a tunnel is not a VLAN.
func (m *adaptingWriter) needsTag(o *frame.Out) bool {
	return o.Tag != 0 && m.port.takes&frame.OffloadVLAN == 0 && m.port.tunnel == nil
}

// unfit returns why a frame cannot be made fit for the port, or NotDropped. Tunnels check for
// themselves, since kind and MTU depend on the peer.
func (m *adaptingWriter) unfit(o *frame.Out) frame.Reason {
	if m.port.tunnel != nil {
		return frame.NotDropped
	}
	ip, room := o.F.Kind != frame.Ethernet, m.port.p.MTU(o.Peer)
	switch n := o.F.Len(); {
	case ip != (m.port.takes&frame.IPOnly != 0), ip && o.Tag != 0:
		return frame.BadKind
	case ip:
	case n < ethLen:
		return frame.Short
	case isTag(binary.BigEndian.Uint16(o.F.Bytes()[macsLen:])):
		room += vlanLen
	}
	if o.F.SegLen() > room {
		return frame.TooBig
	}
	return frame.NotDropped
}

// adapt is Write for a batch in which some frames need work.
func (m *adaptingWriter) adapt(out []frame.Out) (err error) {
	for i := range out {
		o := &out[i]
		if o.Drop = m.unfit(o); o.Drop == frame.NotDropped {
			if m.takes(o) {
				m.put(i, o, o.F)
			} else {
				err = m.split(out, i)
			}
		}
		if err != nil {
			for k := range out[i:] {
				out[i+k].Drop = frame.PortDown
			}
			break
		}
	}
	if err == nil {
		err = m.flush(out)
	}
	m.batch.Release()
	return err
}

// split turns out[i] into frames that the port takes.
func (m *adaptingWriter) split(out []frame.Out, i int) error {
	o := &out[i]
	g := o.F.GSO
	m.cutter.Reset()
	if m.port.takes.Take(g) {
		m.pieces = append(m.pieces[:0], nil, o.F.Bytes())
	} else {
		m.pieces, _ = m.cutter.Cut(m.pieces[:0], nil, o.F)
		g = frame.GSO{}
	}
	if len(m.pieces) == 0 {
		o.Drop = frame.BadHeader
	}
	tag := 0 // its length
	if m.needsTag(o) {
		tag = vlanLen
	}
	for s := m.pieces; len(s) > 0 && o.Drop == frame.NotDropped; s = s[2:] {
		n := tag + len(s[0]) + len(s[1])
		f := m.batch.New(n)
		if f == nil {
			if err := m.flush(out); err != nil {
				return err
			}
			if f = m.batch.New(n); f == nil {
				o.Drop = frame.TooBig
				break
			}
		}
		b := f.Bytes()
		copy(b[tag+copy(b[tag:], s[0]):], s[1])
		if tag != 0 {
			copy(b, b[tag:tag+macsLen])
			binary.BigEndian.PutUint32(b[macsLen:], o.VLANTag())
		}
		f.GSO = g.Moved(f.Headroom() + tag - o.F.Headroom())
		f.Kind, f.VNI, f.From, f.Hash, f.Tunnel, f.GBP, f.Priority = o.F.Kind, o.F.VNI, o.F.From, o.F.Hash, o.F.Tunnel, o.F.GBP, o.F.Priority
		m.put(i, o, f)
		if tag != 0 {
			m.out[len(m.out)-1].Tag = 0
		}
	}
	clear(m.pieces) // borrowed
	return nil
}

// put adds f to what will be written, in place of o, the i-th Out.
func (m *adapter) put(i int, o *frame.Out, f *frame.Frame) {
	x := *o
	x.F = f
	m.out, m.of = append(m.out, x), append(m.of, i)
}

// flush writes what has been put. An Out that loses a part counts as dropped.
func (m *adaptingWriter) flush(out []frame.Out) error {
	if len(m.out) == 0 {
		return nil
	}
	err := m.to.Write(m.out)
	for k, i := range m.of {
		if r := m.out[k].Drop; r != frame.NotDropped {
			out[i].Drop = r
		}
	}
	clear(m.out) // borrowed
	m.out, m.of = m.out[:0], m.of[:0]
	m.batch.Reset()
	return err
}
