package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// DeviceConfig configures a [Device]. The zero value works.
type DeviceConfig struct {
	// MTU is set on the device: bytes of an IP packet, as in "ip link set mtu". 0
	// leaves it: 1500 on a new device. ([Device.MTU] of a TAP counts the Ethernet header too.)
	MTU int `json:"mtu,omitzero"`

	// MAC is the address the kernel's side of a TAP gets; a TUN has none. Zero leaves it:
	// random on a new device.
	MAC frame.MAC `json:"mac,omitzero"`

	// Down leaves the device as it is. Without it the device is brought up.
	Down bool `json:"down,omitzero"`

	// Queues is the number of queues to attach, at most 256; 0 is 1. Each is read by a worker
	// of the switch. More than one needs a device that is new, or was made with
	// multi_queue.
	Queues int `json:"queues,omitzero"`

	// Namespace is the network namespace the device is in or is made in: the path of a
	// file such as /proc/1/ns/net, or a name without a slash, as "ip netns" uses, which
	// stands for a file in /run/netns. Empty is that of the calling thread: of the program.
	// It takes CAP_SYS_ADMIN.
	Namespace string `json:"namespace,omitzero"`

	// BusyPoll is for how long who found no packet asks again before it sleeps, at most
	// 1 ms; by default it does not. To be woken up takes longer than to handle
	// a packet, and a request and its answer wake up both ends. It asks again only if its
	// last wait was shorter than four times as long, so one with little to do does not.
	//
	// It is for machines with more processors (also: GOMAXPROCS) than threads that are
	// busy, the guests' included. With fewer everything gets slower.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// NoOffload switches all offloads off: one system call carries one frame, whose
	// checksums are complete. Without it the kernel may hand over superframes and
	// frames with unfinished checksums, and gets such (frame.GSO).
	NoOffload bool `json:"noOffload,omitzero"`
}

// maxQueues is what the tun driver allows (Linux 6.18).
const maxQueues = 256

// A Device is a port whose far side is the kernel's network stack: a TAP device of
// Linux, which carries Ethernet frames, or a TUN device, which carries IP packets.
//
// Once it is open the device may be renamed, its MTU changed, and it may be moved
// to another network namespace; reading and writing go on.
type Device struct {
	name   string
	queues []*queue
	link   *sys.Link
	egress
	reset bool // its offloads are switched off again at Close
	fixed bool // its MTU is that of its settings

	closed  atomic.Bool
	mtu     atomic.Int64 // of the device
	start   time.Time
	checked atomic.Int64 // when mtu was asked for last, in ns since start
	timer   *time.Timer  // runs update
}

// A queue is one descriptor of a Device, and who reads it.
type queue struct {
	*sys.Tun
	d      *Device
	reader deviceReader
}

// mtuAge is how long a known MTU is believed while there is traffic.
const mtuAge = time.Second

// kind returns what the device is called in messages.
func (d *Device) kind() string {
	if d.tun {
		return "TUN"
	}
	return "TAP"
}

// Name returns the name the device had when it was opened.
func (d *Device) Name() string { return d.name }

// MTU returns the longest frame the device takes: on a TAP its MTU and 14 bytes of
// Ethernet header, on a TUN its MTU. It costs one load; a change on the device is
// seen within a second of traffic on the port. A device that was moved to another
// network namespace keeps its last known MTU if the process may not enter that
// namespace.
func (d *Device) MTU(peer uint16) int {
	if d.tun {
		return int(d.mtu.Load())
	}
	return int(d.mtu.Load()) + ethLen
}

// IP reports whether the device carries IP packets without Ethernet: a TUN.
func (d *Device) IP() bool { return d.tun }

// Fit sets the device's MTU so that its longest frame is of so many bytes, as [Device.MTU] counts
// them, unless DeviceConfig.MTU has said what it is to be.
func (d *Device) Fit(longest int) error {
	if !d.tun {
		longest -= ethLen
	}
	if d.fixed || int64(longest) == d.mtu.Load() {
		return nil
	}
	if err := d.link.SetMTU(longest); err != nil {
		return fmt.Errorf("port: %s %q: MTU %d: %w", d.kind(), d.name, longest, privilege(err))
	}
	d.mtu.Store(int64(longest))
	return nil
}

// refresh has the MTU read again when what is known is old. It does not wait for
// that: the ioctls of tun take the lock of the kernel's whole network configuration,
// which may be held for long.
func (d *Device) refresh() {
	now, last := int64(time.Since(d.start)), d.checked.Load()
	if now-last > int64(mtuAge) && d.checked.CompareAndSwap(last, now) {
		d.timer.Reset(0)
	}
}

func (d *Device) update() {
	if d.closed.Load() {
		return
	}
	if mtu, err := d.link.MTU(); err == nil {
		d.mtu.Store(int64(mtu))
	}
}

// Readers returns the receive queues: what the kernel sends out of the device, a
// flow always through the queue that last wrote to the flow's other direction. A flow
// that changes its queue, as it may when its other direction is heard for the first time,
// overtakes those of its packets that wait in the old one (Linux 6.18). When the device is
// deleted, each Read returns an error that names it.
//
// A frame whose virtio header contradicts it has Drop set to [frame.BadHeader], a
// packet of a TUN that is not IP to [frame.BadKind].
func (d *Device) Readers() []frame.Reader {
	readers := make([]frame.Reader, len(d.queues))
	for i, q := range d.queues {
		readers[i] = &q.reader
	}
	return readers
}

// Offloads returns all with offloads, UDP superframes if the kernel takes them (Linux 6.2), and
// without them VLAN tags only. A TUN is for IP only.
func (d *Device) Offloads() frame.Offloads { return d.offloads() }

// Writer returns a new transmit side on queue w mod [DeviceConfig].Queues: what it
// writes the kernel receives on the device. It drops with [frame.PortFull] when the
// kernel has no memory for the frame and with [frame.PortDown] while the device is
// down. A TAP takes Ethernet frames only, a TUN IP packets only, without a tag; the
// others are dropped with [frame.BadKind].
//
// With offloads, frames of one flow that follow each other in a Write are written as
// one superframe, and superframes as they are.
func (d *Device) Writer(w int) frame.Writer {
	x := &deviceWriter{of: d, conn: d.queues[w%len(d.queues)].Conn, egress: &d.egress}
	x.emit = x.send
	return x
}

// longAgo is a deadline that is always over.
var longAgo = time.Unix(1, 0)

// Pause makes Read return [frame.ErrPaused] until Resume. Frames that arrive in
// between wait in the kernel, as many as the device's txqueuelen.
func (d *Device) Pause() {
	for _, q := range d.queues {
		q.File.SetReadDeadline(longAgo)
	}
}

// Resume ends Pause.
func (d *Device) Resume() {
	for _, q := range d.queues {
		q.File.SetReadDeadline(time.Time{})
	}
}

// Close detaches from the device and makes every Read return [net.ErrClosed], one
// that waits included. A device that is not persistent disappears, unless another
// process has its descriptors too.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	if err := d.release(); err != nil {
		return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, err)
	}
	return nil
}

// release gives up what is open.
func (d *Device) release() (err error) {
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.reset {
		// A persistent device keeps them, and a later owner may know nothing of them.
		if info, err := d.queues[0].Info(); err == nil && info.Persist {
			d.queues[0].SetOffload(false)
		}
	}
	for _, q := range d.queues {
		err = errors.Join(err, q.Close())
	}
	if d.link != nil {
		d.link.Close()
	}
	return err
}

// over returns what the port says when a queue says err.
func (d *Device) over(err error) error {
	errno := syscall.Errno(0)
	switch {
	case d.closed.Load():
		return net.ErrClosed
	case errors.As(err, &errno):
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	default:
		// The poller saw EPOLLERR, which tun reports when the device was deleted under
		// us; read(2) then says EBADFD, "file descriptor in bad state" (Linux 6.18).
		errno = sys.EBADFD
	}
	return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, errno)
}
