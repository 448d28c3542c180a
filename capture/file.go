package capture

import (
	"cmp"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Selection says what a file takes. The zero value takes the packets of all ports and tunnels. Port, Tunnel and VNI exclude
// each other.
type Selection struct {
	Port   string     // the frames of the port with this name
	Tunnel string     // the packets of the tunnel with this name, from Capture.Tunnel
	VNI    *frame.VNI // the frames of the segment, at all its attachments; needs Capture.Segments

	// Match reports whether to take a packet, before it is copied; nil takes all. Workers call it with whole packets. It must
	// not block, allocate, change the packet or keep it.
	Match func(kind frame.Kind, packet []byte) bool

	SnapLen int    // bytes kept of each packet, 1 to 262144; 0 = Config.SnapLen
	Count   int    // end the file after so many packets; 0 = no limit
	Filter  string // what Match does, to be written into the file
}

// Check returns what [Capture.Open] refuses.
func (s *Selection) Check() error {
	w := setting.Of("capture: Selection")
	w.Number("SnapLen", s.SnapLen, 1, DefaultSnapLen, DefaultSnapLen)
	w.Limit("Count", s.Count)
	if some := []bool{s.Port != "", s.Tunnel != "", s.VNI != nil}; some[0] && some[1] || some[2] && (some[0] || some[1]) {
		w.Wrong("Port", nil, "only one of Port, Tunnel and VNI may be set")
	}
	return w.Err()
}

// place names the only port, tunnel or segment of a file.
func (s *Selection) place() string {
	if s.VNI != nil {
		return fmt.Sprintf("vni %d", *s.VNI)
	}
	return cmp.Or(s.Port, s.Tunnel)
}

// Counts is what a file has counted.
type Counts struct {
	Packets uint64 // written
	Matched uint64 // selected, written or not
	Dropped uint64 // selected and not written: no room in the buffer, or the writer failed
}

// A File is one file of a Capture. A worker that still holds it after its end finds its ring closed.
type File struct {
	c     *Capture
	sel   Selection
	place string // of sel
	ring  *ring
	snap  int
	done  chan struct{}
	err   error // of the writer; read it when done

	packets, matched, dropped atomic.Uint64

	// Of the goroutine that writes.
	begun   time.Time
	out     *pcapng
	ids     map[iface]int
	scratch []byte
}

// An iface is an interface of the file.
type iface struct {
	name  string
	flags flags
}

// flags tells the interfaces of one port or underlay apart.
type flags uint8

const (
	rawIP flags = 1 << iota // else Ethernet
	superframes
	outerHeaders
)

// newFile makes a file with the settings that c has now.
func newFile(c *Capture, s Selection) *File {
	cfg := c.Config()
	return &File{
		c:     c,
		sel:   s,
		place: s.place(),
		ring:  newRing(cmp.Or(cfg.Buffer, DefaultBuffer)),
		snap:  cmp.Or(s.SnapLen, cfg.SnapLen, DefaultSnapLen),
		begun: time.Now(),
		done:  make(chan struct{}),
		ids:   map[iface]int{},
	}
}

// ofPort reports whether the file takes the frames of a port.
func (f *File) ofPort(name string) bool {
	return f.sel.VNI == nil && f.sel.Tunnel == "" && (f.sel.Port == "" || f.sel.Port == name)
}

// ofTunnel reports whether the file takes the packets of a tunnel.
func (f *File) ofTunnel(name string) bool {
	return f.sel.VNI == nil && f.sel.Port == "" && (f.sel.Tunnel == "" || f.sel.Tunnel == name)
}

// Stop ends the file: it waits until everything captured is written and returns the writer's first error, after which nothing
// was captured. A batch in progress may be in the file in part. Stop does not close the writer. It is idempotent.
func (f *File) Stop() error {
	f.c.forget(f)
	f.ring.close()
	<-f.done
	if f.err != nil {
		return fmt.Errorf("capture: %w", f.err)
	}
	return nil
}

// Done is closed when the file has ended: after Stop, after Selection.Count packets, or because the writer failed.
func (f *File) Done() <-chan struct{} { return f.done }

// Counts returns a snapshot of the counters.
func (f *File) Counts() Counts {
	c := Counts{Packets: f.packets.Load(), Dropped: f.dropped.Load()}
	c.Matched = f.matched.Load() // counted first, read last: never less than the others
	return c
}

// put captures a packet of length bytes that consists of parts, if the file takes it. If there are several, join is scratch
// memory that puts them together for Match.
func (f *File) put(i iface, kind frame.Kind, time int64, length int, parts [][]byte, join *[]byte) {
	if f.sel.Match != nil {
		whole := parts[0]
		if len(parts) > 1 {
			*join = (*join)[:0]
			for _, p := range parts {
				*join = append(*join, p...)
			}
			whole = *join
		}
		if !f.sel.Match(kind, whole) {
			return
		}
	}
	f.matched.Add(1)
	p := packet{iface: i, time: time, length: int32(length), kept: int32(min(length, f.snap))}
	switch {
	case f.ring.put(&p, parts):
	case f.ring.isClosed(): // the file has ended a moment ago
		f.matched.Add(^uint64(0))
	default:
		f.lost()
	}
}

// lost counts a packet that is not written.
func (f *File) lost() {
	f.dropped.Add(1)
	f.c.dropped.Add(1)
}

// run writes the ring to w until it is closed and empty, or there are enough packets.
func (f *File) run(w io.Writer) {
	defer close(f.done)
	for {
		n, over := f.ring.first()
		switch {
		case n != nil:
			f.try(func() error { return f.write(w, n) })
			if f.err != nil {
				f.lost()
			} else {
				f.packets.Add(1)
				f.c.packets.Add(1)
			}
			f.ring.drop(n)
			if f.err == nil && f.sel.Count > 0 && f.packets.Load() == uint64(f.sel.Count) {
				f.c.forget(f)
				f.ring.close()
				f.try(func() error { return f.finish(w) })
				return
			}
		case over:
			f.try(func() error { return f.finish(w) })
			return
		default:
			f.try(f.flush)
			f.ring.wait()
		}
	}
}

// try does step unless one before has failed. With the first that does, the file takes nothing more.
func (f *File) try(step func() error) {
	if f.err != nil {
		return
	}
	if f.err = step(); f.err != nil {
		f.c.forget(f)
		f.ring.close()
	}
}

// write writes one packet, before it its interface if it is the first there.
func (f *File) write(w io.Writer, n *packet) error {
	id, err := f.intf(w, n.iface)
	if err != nil {
		return err
	}
	var data []byte
	data, f.scratch = f.ring.bytes(n, f.scratch)
	return f.out.packet(id, n.time, data, int(n.length))
}

// intf returns the number of an interface in the file. The first one comes with the
// file's head.
func (f *File) intf(w io.Writer, k iface) (id int, err error) {
	if f.place != "" && k.flags&rawIP != 0 {
		k = iface{f.place, k.flags &^ superframes} // libpcap 1.10 reads files with several interfaces only if they are Ethernet
	}
	id, ok := f.ids[k]
	if ok {
		return id, nil
	}
	i := ngInterface{name: k.name, filter: f.sel.Filter, link: linkEthernet, snap: f.snap}
	if k.flags&rawIP != 0 {
		i.link = linkRaw
	}
	if k.flags&superframes != 0 {
		i.name += " superframes"
		i.description = "not yet cut into segments, checksums not complete"
	}
	if k.flags&outerHeaders != 0 {
		i.description = "rebuilt outer headers; source ports of sent packets are not those on the wire"
	}
	if f.out == nil {
		err = f.begin(w, i)
	} else {
		id, err = f.out.addInterface(i)
	}
	f.ids[k] = id
	return id, err
}

func (f *File) begin(w io.Writer, i ngInterface) (err error) {
	if f.out, err = newPcapng(w); err == nil {
		_, err = f.out.addInterface(i)
	}
	return err
}

func (f *File) flush() error {
	if f.out == nil {
		return nil
	}
	return f.out.flush()
}

// finish ends the file with statistics, which are those of all interfaces and stand at the first. A file without packets has
// an interface too, or it would be empty, which is no pcapng file.
func (f *File) finish(w io.Writer) error {
	if f.out == nil {
		err := f.begin(w, ngInterface{name: "none", link: linkEthernet, snap: f.snap})
		if err != nil {
			return err
		}
	}
	n := f.Counts()
	if err := f.out.statistics(0, f.begun, time.Now(), n.Matched, n.Dropped); err != nil {
		return err
	}
	return f.flush()
}
