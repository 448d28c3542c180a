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

// RWCConfig configures [FromReadWriteCloser]. The zero value works.
type RWCConfig struct {
	Name string // for messages and dumps; default "rwc"
	MTU  int    // longest frame in bytes from the destination MAC on, a VLAN tag not counted; 0 = DefaultMTU
	IP   bool   // frames are IP packets, as those of a TUN, and the MTU is theirs; 0 = 1500
}

// An RWC is a port made of an [io.ReadWriteCloser] that carries one Ethernet frame, or
// one IP packet, in each Read and each Write: a water.Interface, a connected Unix
// datagram or seqpacket socket, a QUIC datagram stream.
//
// It costs more than the ports that know their descriptor: one frame a batch, and
// a goroutine that waits in Write when the other side does. A Writer of the
// switch must not wait, so put a bounded queue in front of a ReadWriteCloser that
// can block in Write, or it holds up the worker that sends to it. An RWC is no
// Pauser: a Read of an unknown kind cannot be called back without closing it.
type RWC struct {
	name   string
	mtu    int
	ip     bool
	rwc    io.ReadWriteCloser
	closed atomic.Bool
	reader rwcReader

	mu sync.Mutex // held during Write: an io.Writer may not be safe for concurrent use
}

// FromReadWriteCloser makes a port of rwc, which belongs to the port from here on.
// A nil cfg is the zero value. It must be safe to call rwc's Read, Write and Close
// at once, as it is for a [net.Conn] and an [os.File], and Close must make a Read
// that waits return. Of nil it makes a port whose Read fails.
func FromReadWriteCloser(rwc io.ReadWriteCloser, cfg *RWCConfig) *RWC {
	var c RWCConfig
	if cfg != nil {
		c = *cfg
	}
	mtu := DefaultMTU
	if c.IP {
		mtu -= ethLen
	}
	r := &RWC{
		name: cmp.Or(c.Name, "rwc"),
		mtu:  cmp.Or(max(c.MTU, 0), mtu),
		ip:   c.IP,
		rwc:  rwc,
	}
	if absent.Is(rwc) {
		r.rwc = noRWC{}
	}
	r.reader.r = r
	return r
}

// Name returns the configured name.
func (r *RWC) Name() string { return r.name }

// MTU returns the configured length of the longest frame, in bytes from the
// destination MAC on, a VLAN tag not counted, or of the longest IP packet.
func (r *RWC) MTU(peer uint16) int { return r.mtu }

// Readers returns the one receive queue. It hands over a frame longer than the MTU
// and a VLAN tag with Drop set to [frame.TooBig], and what should be an IP packet and
// is none with [frame.BadKind]. When the other side ends, Read returns an error that
// wraps [io.EOF].
func (r *RWC) Readers() []frame.Reader {
	if r.rwc == nil {
		return nil // not made by FromReadWriteCloser: the switch refuses it
	}
	return []frame.Reader{&r.reader}
}

// Offloads returns none.
func (r *RWC) Offloads() frame.Offloads {
	if r.ip {
		return frame.IPOnly
	}
	return 0
}

// Writer returns a new transmit side. A frame that rwc refuses is dropped with
// [frame.SendFailed], or [frame.PortDown] when rwc is closed.
func (r *RWC) Writer(w int) frame.Writer { return rwcWriter{r} }

// Close closes rwc and returns its error.
func (r *RWC) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.rwc.Close()
}

// over returns what the port says when rwc says err.
func (r *RWC) over(err error) error {
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

// noRWC stands for an io.ReadWriteCloser that is none.
type noRWC struct{}

var errNoRWC = errors.New("there is no ReadWriteCloser")

func (noRWC) Read([]byte) (int, error)  { return 0, errNoRWC }
func (noRWC) Write([]byte) (int, error) { return 0, errNoRWC }
func (noRWC) Close() error              { return nil }

type rwcReader struct {
	r   *RWC
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

type rwcWriter struct{ r *RWC }

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
