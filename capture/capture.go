// Package capture writes what passes through ports, underlays and segments into pcapng files, which
// Wireshark and tshark read: the device side and the tunnel side of a switch next to each other.
// tcpdump takes one link type in a file: it reads files of one port, one tunnel or one segment.
package capture

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
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

// A Capture writes the packets of ports and underlays to files. Start and Stop, and Open for more files, work while traffic
// flows.
//
//	vswitch.Port --- Capture.Port ------+
//	vswitch.Port --- Capture.Port ------+         +--> buffer --goroutine--> file
//	vtep.Underlay -- Capture.Underlay --+-- each: +--> buffer --goroutine--> file
//	Switch --------- Capture.Segments --+
//
// A stopped capture costs one atomic load per batch. A running one copies what its [Selection] takes into the bounded buffer
// of the file. If the buffer is full, the packet is missing in this file and counted; traffic and other files never wait.
//
// Each port and underlay is an interface in the file, with the port's name or the underlay's address,
// and appears with its first packet. Time stamps are taken once per batch, when it is copied. Packets of
// one reader, writer or sender keep their order. IP packets of a file of one port, tunnel or segment are all on one interface.
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
// # Segments
//
// A Selection with a VNI takes the frames of the segment from the switch, as a [vswitch.Tap] sees them: where they come in and
// where they go out, so that a frame that is forwarded is there twice, and without the VLAN of the port. The interfaces have
// the names of ports and tunnels. Time stamps are taken for each frame.
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
	on      atomic.Pointer[[]*File] // nil while off
	packets atomic.Uint64
	dropped atomic.Uint64
	cfg     atomic.Pointer[Config] // as it was set; not under mu, which Stop holds while the writer works

	mu     sync.Mutex
	file   *File // from Start to Stop
	closed bool

	list sync.Mutex // guards changes of on, and of the Tap; not held while a file ends
	sw   *vswitch.Switch
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

// Segments makes sw the switch that has the segments of Selection.VNI. It uses the [vswitch.Tap] of sw while such a file is
// open, and [vswitch.Switch.SetWatched] while any is: without Segments no Offload carries frames past the ports of the capture.
func (c *Capture) Segments(sw *vswitch.Switch) {
	c.list.Lock()
	defer c.list.Unlock()
	old, on := c.sw, c.on.Load() != nil
	if c.sw = sw; sw == old {
		return
	}
	if on && sw != nil {
		sw.SetWatched(true)
	}
	if old != nil {
		if !on {
			old.SetWatched(true) // ends its flows past the ports
		}
		old.SetWatched(false)
	}
}

// Open begins a file with what s selects, nil = all. One goroutine writes to w until the file ends. Files are independent:
// each has a buffer, which exists from Open to the end and takes a sixth more memory than its size. Open fails with
// [net.ErrClosed] after Close.
func (c *Capture) Open(w io.Writer, s *Selection) (*File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open("Open", w, s)
}

func (c *Capture) open(what string, w io.Writer, s *Selection) (*File, error) {
	var sel Selection
	if s != nil {
		sel = *s
	}
	if err := sel.Check(); err != nil {
		return nil, err
	}
	switch {
	case c.closed:
		return nil, fmt.Errorf("capture: %s: %w", what, net.ErrClosed)
	case absent.Is(w):
		return nil, fmt.Errorf("capture: %s: the writer is nil", what)
	}
	f := newFile(c, sel)
	c.list.Lock()
	defer c.list.Unlock()
	if sel.VNI != nil && c.sw == nil {
		return nil, fmt.Errorf("capture: %s: Selection.VNI: there is no switch; call Segments first", what)
	}
	go f.run(w)
	c.change(func(files []*File) []*File { return append(files, f) })
	return f, nil
}

// change replaces the list of files. c.list is held.
func (c *Capture) change(by func([]*File) []*File) {
	var files []*File
	if old := c.on.Load(); old != nil {
		files = slices.Clone(*old)
	}
	bySegment := func(f *File) bool { return f.sel.VNI != nil }
	was, some := slices.ContainsFunc(files, bySegment), len(files) > 0
	files = by(files)
	if len(files) == 0 {
		c.on.Store(nil)
	} else {
		c.on.Store(&files)
	}
	if now := len(files) > 0; now != some && c.sw != nil {
		c.sw.SetWatched(now)
	}
	switch is := slices.ContainsFunc(files, bySegment); {
	case is && !was:
		c.sw.SetTap((*tap)(c))
	case was && !is:
		c.sw.SetTap(nil)
	}
}

// look returns what is inside one of the ports and underlays around others, if the switch knows when there is a file.
func (c *Capture) look(x any) any {
	c.list.Lock()
	defer c.list.Unlock()
	if c.sw == nil {
		return nil
	}
	return x
}

// forget removes a file from the list.
func (c *Capture) forget(f *File) {
	c.list.Lock()
	defer c.list.Unlock()
	if on := c.on.Load(); on != nil && slices.Contains(*on, f) {
		c.change(func(files []*File) []*File { return slices.DeleteFunc(files, func(x *File) bool { return x == f }) })
	}
}

// Start is Open for a file with everything, which Stop ends. It fails if there is one.
func (c *Capture) Start(w io.Writer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil && !c.closed {
		return errors.New("capture: Start: the capture is on; call Stop first")
	}
	f, err := c.open("Start", w, nil)
	if err == nil {
		c.file = f
	}
	return err
}

// Stop is [File.Stop] for the file of Start. It does nothing if there is none.
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
	return f.Stop()
}

// Close ends all files, and returns the error of that of Start. Start and Open fail from then on. The wrapped ports and
// underlays go on.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	err := c.stop()
	for on := c.on.Load(); on != nil; on = c.on.Load() {
		(*on)[0].Stop()
	}
	return err
}

// Stats returns a snapshot of the counters.
func (c *Capture) Stats() Stats {
	return Stats{Packets: c.packets.Load(), Dropped: c.dropped.Load()}
}

// now returns the time stamp of a batch.
func now() int64 { return time.Now().UnixNano() }
