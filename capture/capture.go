// Package capture writes what passes through ports and underlays into one pcapng file, which
// Wireshark and tshark read: the device side and the tunnel side of a switch next to each other.
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

// A Capture captures ports and underlays. It is started and stopped while traffic flows.
//
//	vswitch.Port --- Capture.Port -----+
//	vswitch.Port --- Capture.Port -----+--> buffer --goroutine--> file
//	vtep.Underlay -- Capture.Underlay -+
//
// While it is off it costs one atomic load a batch. While it is on, packets are
// copied into a bounded buffer; one that finds it full is missing in the file and
// counted, and traffic never waits.
//
// Each port and underlay is an interface of the file, which appears with its first
// packet and has the port's name, or the underlay's address. Time stamps are of the
// copying, once a batch. Packets of one reader, writer or sender are in their order.
//
// # The side of a port
//
// The link type is Ethernet, or raw IP for frames without Ethernet header. Frames
// coming in are captured as the port's reader made them, those it refused
// (frame.Frame.Drop) with the bytes it has of them. Frames going out are captured when
// they are handed to the port, before it is known whether it takes them, and with the
// VLAN tag they get there. The file does not say which way a frame went.
//
// A superframe is captured whole, on an interface of its own that is called after the
// port, "tap0 superframes"; so is a frame whose transport checksum is yet to be
// completed. Checksums there are those of the pseudo header, and lengths those of the
// whole: a decoder that checks them reports errors that no wire will show.
//
// # The side of an underlay
//
// The link type is raw IP. The payload is captured, of packets the reader refused too;
// the outer IP and UDP headers are made again from what is known of them; in IP-in-IP there
// is no UDP. Of a received packet that is addresses,
// ports, TOS and TTL; DF is shown clear. Of a sent one the source port is the sockets'
// secret: shown is 49152 + flow mod 16384, the same for all packets of a flow. A TTL
// that is left to the underlay is shown as 64, for a group as 1, and an address that
// is not known as 0.0.0.0 or ::. The UDP checksum is zero over IPv4 and computed over
// IPv6; the IPv4 identification is 0.
//
// Captured is what is handed to the underlay, before it is known whether it is lost: a
// datagram to several endpoints once for each, a run once for each of its segments.
// Payloads of more than 65,507 bytes, which IPv4 has no room for, are left out.
type Capture struct {
	on      atomic.Pointer[fileWriter] // nil while off
	packets atomic.Uint64
	dropped atomic.Uint64
	cfg     atomic.Pointer[Config] // as it was set; not under mu, which Stop holds for as long as a writer takes

	mu     sync.Mutex
	file   *fileWriter // from Start to Stop
	closed bool
}

// New returns a capture that is off. A nil cfg is the zero value.
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

// Start begins a new file on w, which one goroutine writes to until Stop. The buffer
// is there from Start to Stop, and a sixth of its size for notes. It is an error if the
// capture is on, and [net.ErrClosed] after Close.
func (c *Capture) Start(w io.Writer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("capture: Start: %w", net.ErrClosed)
	case absent.Is(w):
		return errors.New("capture: Start: there is no writer")
	case c.file != nil:
		return errors.New("capture: Start: it is on already; call Stop first")
	}
	c.file = newFileWriter(c)
	go c.file.run(w)
	c.on.Store(c.file)
	return nil
}

// Stop ends the file: it waits until all that was captured is written and returns the
// first error of the writer, after which nothing more was captured. A batch that is
// under way may be in the file in part. It does not close the writer. A capture that
// is off is no error.
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

// Close is Stop for good. The ports and underlays that were wrapped go on.
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

// now is the time stamp of a batch.
func now() int64 { return time.Now().UnixNano() }
