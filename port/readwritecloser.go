package port

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// ReadWriteCloserConfig configures [FromReadWriteCloser]. The zero value works.
type ReadWriteCloserConfig struct {
	Name string // for messages and dumps; default "rwc"
	MTU  int    // longest frame in bytes from the destination MAC on, a VLAN tag not counted; 0 = DefaultMTU
	IP   bool   // frames are IP packets, as on a TUN, and MTU is the longest packet; 0 = 1500
}

// A ReadWriteCloser is a port made of an [io.ReadWriteCloser] that carries one Ethernet frame, or
// one IP packet, in each Read and each Write: a water.Interface, a connected Unix
// datagram or seqpacket socket, a QUIC datagram stream.
//
// It is slower than ports that use their descriptor: one frame per batch. A Writer of the switch must
// not wait: if Write of the ReadWriteCloser may block, put a [Buffered] in front. A ReadWriteCloser cannot be paused,
// since only Close ends a Read that waits.
type ReadWriteCloser struct {
	name   string
	mtu    int
	ip     bool
	rwc    io.ReadWriteCloser
	closed atomic.Bool
	reader rwcReader

	mu sync.Mutex // held during Write: an io.Writer may not be safe for concurrent use
}

// FromReadWriteCloser returns a port that reads and writes rwc, and closes it when it is closed. A nil
// cfg is the zero value. It must be safe to call Read, Write and Close of rwc at once, as for a [net.Conn]
// and an [os.File], and Close must end a Read that waits. If rwc is nil, every Read of the port fails.
func FromReadWriteCloser(rwc io.ReadWriteCloser, cfg *ReadWriteCloserConfig) *ReadWriteCloser {
	var c ReadWriteCloserConfig
	if cfg != nil {
		c = *cfg
	}
	mtu := DefaultMTU
	if c.IP {
		mtu -= ethLen
	}
	r := &ReadWriteCloser{
		name: cmp.Or(c.Name, "rwc"),
		mtu:  cmp.Or(max(c.MTU, 0), mtu),
		ip:   c.IP,
		rwc:  rwc,
	}
	if absent.Is(rwc) {
		r.rwc = nilReadWriteCloser{}
	}
	r.reader.r = r
	return r
}

// Name returns the configured name.
func (r *ReadWriteCloser) Name() string { return r.name }

// MTU returns the configured length of the longest frame, in bytes from the
// destination MAC on, a VLAN tag not counted, or of the longest IP packet.
func (r *ReadWriteCloser) MTU(peer uint16) int { return r.mtu }

// Readers returns the one receive queue. Drop of a frame longer than the MTU and a VLAN tag is
// [frame.TooBig], and of a packet that is not IP, on a port of IP packets, [frame.BadKind]. At the end of
// the stream Read returns an error that wraps [io.EOF].
func (r *ReadWriteCloser) Readers() []frame.Reader {
	if r.rwc == nil {
		return nil // a zero ReadWriteCloser: the switch refuses it
	}
	return []frame.Reader{&r.reader}
}

// Offloads returns frame.IPOnly for a port of IP packets, else 0.
func (r *ReadWriteCloser) Offloads() frame.Offloads {
	if r.ip {
		return frame.IPOnly
	}
	return 0
}

// Writer returns a new transmit side. A frame that rwc refuses is dropped with
// [frame.SendFailed], or [frame.PortDown] when rwc is closed.
func (r *ReadWriteCloser) Writer(w int) frame.Writer { return rwcWriter{r} }

// Close closes rwc and returns its error.
func (r *ReadWriteCloser) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.rwc.Close()
}

// over returns the error of the port for an error of rwc.
func (r *ReadWriteCloser) over(err error) error {
	if r.closed.Load() {
		return net.ErrClosed
	}
	for _, closed := range []error{net.ErrClosed, os.ErrClosed, io.ErrClosedPipe} {
		if errors.Is(err, closed) {
			return fmt.Errorf("port: %s: %w", r.name, net.ErrClosed)
		}
	}
	return fmt.Errorf("port: %s: %w", r.name, err)
}

// nilReadWriteCloser stands for a nil io.ReadWriteCloser.
type nilReadWriteCloser struct{}

var errNilReadWriteCloser = errors.New("the ReadWriteCloser is nil")

func (nilReadWriteCloser) Read([]byte) (int, error)  { return 0, errNilReadWriteCloser }
func (nilReadWriteCloser) Write([]byte) (int, error) { return 0, errNilReadWriteCloser }
func (nilReadWriteCloser) Close() error              { return nil }

type rwcReader struct {
	r   *ReadWriteCloser
	buf []byte
	err error // came with the frame before
}

func (r *rwcReader) Read(b *frame.Batch) error {
	b.Release() // nothing says whether rwc.Read will wait
	if r.r.closed.Load() {
		return net.ErrClosed
	}
	if err := r.err; err != nil {
		r.err = nil
		return r.r.over(err)
	}
	// One byte more than the longest frame: a longer one is seen, not cut short.
	longest := r.r.mtu
	if !r.r.ip {
		longest += vlanLen
	}
	if r.buf == nil {
		r.buf = make([]byte, frame.Headroom+longest+1)
	}
	n, err := r.r.rwc.Read(r.buf[frame.Headroom:])
	if n == 0 && err != nil {
		return r.r.over(err)
	}
	r.err = err
	f := b.Borrow(r.buf, frame.Headroom, frame.Headroom+n)
	if r.r.ip {
		ipKind(f)
	}
	if n > longest {
		f.Drop = frame.TooBig
	}
	return nil
}

type rwcWriter struct{ r *ReadWriteCloser }

func (w rwcWriter) Write(out []frame.Out) error {
	r, takes := w.r, w.r.Offloads()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		o := &out[i]
		if o.Drop = unfit(o, takes); o.Drop != frame.NotDropped {
			continue
		}
		n, err := r.rwc.Write(o.F.Bytes())
		if err != nil {
			if err = r.over(err); errors.Is(err, net.ErrClosed) {
				dropAll(out[i:], frame.PortDown)
				return err
			}
		}
		if err != nil || n < o.F.Len() {
			o.Drop = frame.SendFailed
		}
	}
	return nil
}
