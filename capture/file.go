package capture

import (
	"cmp"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// A fileWriter is one file of a Capture, from Start to Stop. A worker that still
// holds it afterwards finds its ring closed.
type fileWriter struct {
	c    *Capture
	ring *ring
	snap int
	done chan struct{}
	err  error // of the writer; read it when done

	// Of the goroutine that writes.
	out     *pcapgo.NgWriter
	ids     map[iface]int
	scratch []byte
}

// An iface is an interface of the file. Two ports of one name are two interfaces.
type iface struct {
	name  *string
	flags flags
}

// flags tells the interfaces of one port or underlay apart.
type flags uint8

const (
	rawIP flags = 1 << iota // else Ethernet
	superframes
	outerHeaders
)

// newFileWriter makes one with the settings that c has now.
func newFileWriter(c *Capture) *fileWriter {
	cfg := c.Config()
	return &fileWriter{
		c:    c,
		ring: newRing(cmp.Or(cfg.Buffer, DefaultBuffer)),
		snap: cmp.Or(cfg.SnapLen, DefaultSnapLen),
		done: make(chan struct{}),
		ids:  map[iface]int{},
	}
}

// put captures a packet of length bytes that consists of parts.
func (f *fileWriter) put(i iface, time int64, length int, parts [][]byte) {
	p := packet{iface: i, time: time, length: int32(length), kept: int32(min(length, f.snap))}
	if !f.ring.put(&p, parts) {
		f.c.dropped.Add(1)
	}
}

// run writes the ring to w until it is closed and empty.
func (f *fileWriter) run(w io.Writer) {
	defer close(f.done)
	for {
		n, over := f.ring.first()
		switch {
		case n != nil:
			f.try(func() error { return f.write(w, n) })
			if f.err != nil {
				f.c.dropped.Add(1)
			} else {
				f.c.packets.Add(1)
			}
			f.ring.drop(n)
		case over:
			f.try(func() error { return f.finish(w) })
			return
		default:
			f.try(f.flush)
			f.ring.wait()
		}
	}
}

// try does step unless one before has failed. With the first that does, the capture is
// off.
func (f *fileWriter) try(step func() error) {
	if f.err != nil {
		return
	}
	if f.err = step(); f.err != nil {
		f.c.on.CompareAndSwap(f, nil)
	}
}

// write writes one packet, before it its interface if it is the first there.
func (f *fileWriter) write(w io.Writer, n *packet) error {
	id, err := f.intf(w, n.iface)
	if err != nil {
		return err
	}
	var data []byte
	data, f.scratch = f.ring.bytes(n, f.scratch)
	return f.out.WritePacket(gopacket.CaptureInfo{
		Timestamp:      time.Unix(0, n.time),
		CaptureLength:  int(n.kept),
		Length:         int(n.length),
		InterfaceIndex: id,
	}, data)
}

// intf returns the number of an interface in the file. The first one comes with the
// file's head.
func (f *fileWriter) intf(w io.Writer, k iface) (id int, err error) {
	id, ok := f.ids[k]
	if ok {
		return id, nil
	}
	i := pcapgo.NgInterface{Name: *k.name, LinkType: layers.LinkTypeEthernet, SnapLength: uint32(f.snap)}
	if k.flags&rawIP != 0 {
		i.LinkType = layers.LinkTypeRaw
	}
	if k.flags&superframes != 0 {
		i.Name += " superframes"
		i.Description = "not yet cut into segments, checksums not complete"
	}
	if k.flags&outerHeaders != 0 {
		i.Description = "rebuilt outer headers; source ports of sent packets are not those on the wire"
	}
	if f.out == nil {
		err = f.begin(w, i)
	} else {
		id, err = f.out.AddInterface(i)
	}
	f.ids[k] = id
	return id, err
}

func (f *fileWriter) begin(w io.Writer, i pcapgo.NgInterface) (err error) {
	f.out, err = pcapgo.NewNgWriterInterface(w, i, pcapgo.NgWriterOptions{
		SectionInfo: pcapgo.NgSectionInfo{Application: "vxswitch"},
	})
	return err
}

func (f *fileWriter) flush() error {
	if f.out == nil {
		return nil
	}
	return f.out.Flush()
}

// finish ends the file. One without packets has an interface too, or it would be
// empty, which is no pcapng file.
func (f *fileWriter) finish(w io.Writer) error {
	if f.out == nil {
		err := f.begin(w, pcapgo.NgInterface{Name: "none", LinkType: layers.LinkTypeEthernet, SnapLength: uint32(f.snap)})
		if err != nil {
			return err
		}
	}
	return f.flush()
}
