package port

import (
	"cmp"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/ring"
	"github.com/vxswitch/vxswitch/internal/wrap"
	"github.com/vxswitch/vxswitch/setting"
)

// BufferedConfig configures [NewBuffered]. The zero value works.
type BufferedConfig struct {
	Queue int // frames that may wait, 1 to 65536; 0 = 256
}

// maxQueue bounds the queue, in frames.
const maxQueue = 1 << 16

// BufferedStats is a snapshot of a queue's counters.
type BufferedStats struct {
	Waiting int         `json:"waiting"` // frames in the queue
	Sent    uint64      `json:"sent"`    // frames the port took
	Full    uint64      `json:"full"`    // frames dropped because the queue was full
	Drops   frame.Drops `json:"drops"`   // frames the port dropped, after the queue
}

// A Buffered puts a bounded queue and one goroutine in front of a port whose Write
// may wait, such as a [ReadWriteCloser] over a blocking connection. The workers of a switch
// copy frames into the queue and go on; with the queue full they drop with
// [frame.PortFull].
//
//	workers --Write--> queue --goroutine--> Write of the port
//	        <----------------Read---------- port
//
// Frames stay in order and keep Kind, GSO, VNI, From and Hash, and Peer, Skip and Tag of the
// [frame.Out]. Frames that the port drops are counted in Stats; the worker does not learn of them. Reading
// is not buffered. The queue takes the memory of the frames in it, and 256 KiB.
type Buffered struct {
	p    Port // behind the queue
	port Port // what is attached
	ring *ring.Ring[outMeta]

	sent, full atomic.Uint64
	drops      [frame.NumReasons]atomic.Uint64
	broken     atomic.Pointer[error] // what Write of the port said
	done       chan struct{}         // the goroutine has ended
	closeOnce  sync.Once
	closeErr   error
}

// outMeta is kept with a packet in the queue.
type outMeta struct {
	gso        frame.GSO // offsets from the start of the packet
	kind       frame.Kind
	tunnel     bool
	vni        frame.VNI
	from       frame.Dest
	hash       uint32
	peer, skip uint16
	tag        uint32
	priority   uint8
}

func metaOf(o *frame.Out) outMeta {
	f := o.F
	return outMeta{
		gso: f.GSO.Moved(-f.Headroom()), kind: f.Kind, tunnel: f.Tunnel, vni: f.VNI, from: f.From, hash: f.Hash,
		peer: o.Peer, skip: o.Skip, tag: o.Tag, priority: f.Priority,
	}
}

// out restores what went with f's bytes.
func (m *outMeta) out(f *frame.Frame) frame.Out {
	f.GSO, f.Kind, f.Tunnel = m.gso.Moved(f.Headroom()), m.kind, m.tunnel
	f.VNI, f.From, f.Hash, f.Priority = m.vni, m.from, m.hash, m.priority
	return frame.Out{F: f, Peer: m.peer, Skip: m.skip, Tag: m.tag}
}

// NewBuffered puts a queue in front of p. Attach what [Buffered.Port] returns; closing that closes p. A
// nil cfg is the zero value. NewBuffered fails if p is nil or a tunnel. On an error p stays open.
func NewBuffered(p Port, cfg *BufferedConfig) (*Buffered, error) {
	var c BufferedConfig
	if cfg != nil {
		c = *cfg
	}
	if err := wrap.Check(p); err != nil {
		return nil, fmt.Errorf("port: Buffered: %w", err)
	}
	w := setting.Of("port: BufferedConfig")
	w.Number("Queue", c.Queue, 1, maxQueue, 256)
	if err := w.Err(); err != nil {
		return nil, err
	}
	b := &Buffered{p: p, ring: ring.New[outMeta](cmp.Or(c.Queue, 256)), done: make(chan struct{})}
	b.port = wrap.Around(bufferedPort{b}, p)
	go b.run(p.Writer(0))
	return b, nil
}

// Port returns the port to attach. It has the name and the offloads of the wrapped port, and can be
// paused if that can. Its Close discards the queue, closes the wrapped port, and waits for the goroutine to
// end; so closing the wrapped port must end a Write that waits.
func (b *Buffered) Port() Port { return b.port }

// Stats returns a snapshot of the counters.
func (b *Buffered) Stats() BufferedStats {
	s := BufferedStats{Waiting: b.ring.Len(), Sent: b.sent.Load(), Full: b.full.Load()}
	for r := range b.drops {
		s.Drops[r] = b.drops[r].Load()
	}
	return s
}

// run writes the queue to the port until the queue is closed.
func (b *Buffered) run(w frame.Writer) {
	defer close(b.done)
	batch := frame.NewBatch(nil)
	var out [frame.MaxBatch]frame.Out
	restore := func(batch *frame.Batch, i int, m outMeta) { out[i] = m.out(&batch.Frames[i]) }
	for b.ring.Fill(batch, restore) == nil {
		sent := out[:len(batch.Frames)]
		err := w.Write(sent)
		for i := range sent {
			if r := sent[i].Drop; r != frame.NotDropped {
				b.drops[r].Add(1)
			} else {
				b.sent.Add(1)
			}
		}
		if err != nil {
			b.fail(err)
		}
	}
}

// fail ends the queue of a port whose Write has failed.
func (b *Buffered) fail(err error) {
	b.broken.Store(&err)
	b.ring.Close()
}

type bufferedPort struct{ b *Buffered }

func (p bufferedPort) Readers() []frame.Reader   { return p.b.p.Readers() }
func (p bufferedPort) Writer(w int) frame.Writer { return p }

func (p bufferedPort) Close() error {
	b := p.b
	b.closeOnce.Do(func() {
		b.ring.Close()
		b.closeErr = b.p.Close()
		<-b.done
	})
	return b.closeErr
}

func (p bufferedPort) Write(out []frame.Out) error {
	for i := range out {
		o := &out[i]
		switch o.Drop = p.b.ring.Put(metaOf(o), o.F.Bytes()); o.Drop {
		case frame.PortFull:
			p.b.full.Add(1)
		case frame.PortDown:
			dropAll(out[i:], frame.PortDown)
			if err := p.b.broken.Load(); err != nil {
				return *err
			}
			return net.ErrClosed
		}
	}
	return nil
}
