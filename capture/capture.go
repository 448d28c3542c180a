// Package capture writes what passes through ports and underlays into one pcapng file, which
// Wireshark and tshark read: the device side and the tunnel side of a switch next to each other.
// tcpdump reads files of ports alone or of underlays alone, since it takes one link type in a file.
package capture

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
)

// Config holds the settings of a [Capture]. The zero value works. All can be changed, for the next
// file.
type Config struct {
	Buffer  int `json:"buffer,omitzero"`  // bytes of packets that may wait to be written, 128 KiB to 1 GiB; 0 = 4 MiB
	SnapLen int `json:"snapLen,omitzero"` // bytes kept of each packet, 1 to 262144; 0 = 262144, which is all of any
}

// Defaults of [Config].
const (
	DefaultBuffer  = 4 << 20
	DefaultSnapLen = 256 << 10 // more than any packet has
)

const (
	minBuffer = 128 << 10
	maxBuffer = 1 << 30
)

// Check returns what [New] and [Capture.Configure] refuse.
func (c *Config) Check() error {
	w := setting.Of("capture: Config")
	w.Number("Buffer", c.Buffer, minBuffer, maxBuffer, DefaultBuffer)
	w.Number("SnapLen", c.SnapLen, 1, DefaultSnapLen, DefaultSnapLen)
	return w.Err()
}

// Stats is a snapshot of a capture's counters, over all its files.
type Stats struct {
	Packets uint64 `json:"packets"` // written
	Dropped uint64 `json:"dropped"` // not written: no room in the buffer, or the file failed
}

// A Capture writes the packets of ports and underlays to a file. Start and Stop work while traffic
// flows.
//
//	vswitch.Port --- Capture.Port -----+
//	vswitch.Port --- Capture.Port -----+--> buffer --goroutine--> file
//	vtep.Underlay -- Capture.Underlay -+
//
// A stopped capture costs one atomic load per batch. A running one copies packets into a bounded
// buffer. If the buffer is full, the packet is missing in the file and counted; traffic never waits.
//
// Each port and underlay is an interface in the file, with the port's name or the underlay's address,
// and appears with its first packet. Time stamps are taken once per batch, when it is copied. Packets of
// one reader, writer or sender keep their order.
//
// # Ports
//
// The link type is Ethernet, or raw IP for frames without an Ethernet header. The file does not say
// which way a frame went. Received frames are captured as the port's reader delivers them, including those
// it refuses (frame.Frame.Drop). Sent frames are captured when they are handed to the port, with their
// VLAN tag; the port may still drop them.
//
// Superframes, and frames with an incomplete transport checksum, are captured whole, on an interface of
// their own, such as "tap0 superframes". Decoders that verify lengths and checksums report errors there:
// the lengths are those of the whole superframe, and the checksums cover only the pseudo header.
//
// # Underlays
//
// The link type is raw IP. The payload is captured, also of packets that the reader refuses. The outer IP
// and UDP headers are rebuilt from what is known (IP-in-IP has no UDP header):
//
//   - received: addresses, ports, TOS and TTL are those of the packet; DF is clear
//   - sent: the source port is 49152 + flow mod 16384, not the socket's; a TTL left to the underlay is
//     shown as 64, or 1 to a multicast group; an unknown address as 0.0.0.0 or ::
//   - the UDP checksum is 0 over IPv4 and correct over IPv6; the IPv4 identification is 0
//
// Packets are captured when they are handed to the underlay, which may still lose them: once for each
// endpoint of a datagram, and once for each segment of a run. Payloads over 65,507 bytes, the limit of
// UDP over IPv4, are left out.
type Capture struct {
	on      atomic.Pointer[fileWriter] // nil while off
	packets atomic.Uint64
	dropped atomic.Uint64
	cfg     atomic.Pointer[Config] // as it was set; not under mu, which Stop holds while the writer works

	mu     sync.Mutex
	file   *fileWriter // from Start to Stop
	closed bool
}

// New returns a capture that is off. A nil cfg is the zero value. Close it when done.
func New(cfg *Config) (*Capture, error) {
	c := new(Capture)
	var set Config
	if cfg != nil {
		set = *cfg
	}
	if err := c.Configure(set); err != nil {
		return nil, err
	}
	return c, nil
}

// Configure changes the settings, from the next Start on.
func (c *Capture) Configure(cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	c.cfg.Store(&cfg)
	return nil
}

// Config returns the settings that were last set.
func (c *Capture) Config() Config { return *c.cfg.Load() }

// Start begins a new file on w. One goroutine writes to w until Stop. The buffer exists from Start to
// Stop and takes a sixth more memory than its size. Start fails if the capture is on, and with
// [net.ErrClosed] after Close.
func (c *Capture) Start(w io.Writer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("capture: Start: %w", net.ErrClosed)
	case absent.Is(w):
		return errors.New("capture: Start: the writer is nil")
	case c.file != nil:
		return errors.New("capture: Start: the capture is on; call Stop first")
	}
	c.file = newFileWriter(c)
	go c.file.run(w)
	c.on.Store(c.file)
	return nil
}

// Stop ends the file: it waits until everything captured is written and returns the writer's first
// error, after which nothing was captured. A batch in progress may be in the file in part. Stop does not
// close the writer, and does nothing if the capture is off.
func (c *Capture) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop()
}

func (c *Capture) stop() error {
	f := c.file
	if f == nil {
		return nil
	}
	c.file = nil
	c.on.Store(nil)
	f.ring.close()
	<-f.done
	if f.err != nil {
		return fmt.Errorf("capture: %w", f.err)
	}
	return nil
}

// Close is Stop, and Start fails from then on. The wrapped ports and underlays go on.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.stop()
}

// Stats returns a snapshot of the counters.
func (c *Capture) Stats() Stats {
	return Stats{Packets: c.packets.Load(), Dropped: c.dropped.Load()}
}

// now returns the time stamp of a batch.
func now() int64 { return time.Now().UnixNano() }
