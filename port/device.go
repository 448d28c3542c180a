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
	// MTU is set on the device, and on both ends of a veth pair, in bytes of IP packet, as by "ip link set mtu".
	// 0 leaves it as it is: 1500 on a new device. ([Device.MTU] of a TAP includes the Ethernet header.)
	MTU int `json:"mtu,omitzero"`

	// MAC is set on the kernel's side of a TAP, the guest's end of a veth pair, or the interface; a TUN has none.
	// Zero leaves it as it is: random on a new device.
	MAC frame.MAC `json:"mac,omitzero"`

	// Down leaves the device down or up as it is. By default it is brought up.
	Down bool `json:"down,omitzero"`

	// Queues is the number of queues to attach, at most 256; 0 is 1. A worker of the switch reads each of
	// them. More than one needs a new device, or one made with multi_queue.
	Queues int `json:"queues,omitzero"`

	// Namespace is the network namespace the device is in or is made in: the path of a
	// file such as /proc/1/ns/net, or a name without a slash, as "ip netns" uses, which
	// stands for a file in /run/netns. Empty is that of the calling thread: of the program.
	// It takes CAP_SYS_ADMIN. Of a veth pair it is where the guest's end is made.
	Namespace string `json:"namespace,omitzero"`

	// BusyPoll is how long a reader that finds no packet polls before it sleeps, at most 1 ms; by default
	// it does not poll. Waking up takes longer than handling a packet, so polling shortens the latency of requests
	// and answers. A reader polls only if its last wait was shorter than four times BusyPoll.
	//
	// Use it on machines with more processors (and GOMAXPROCS) than busy threads, those of guests
	// included. With fewer, everything gets slower.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// NoOffload switches all offloads off: one system call carries one frame, with complete checksums. By
	// default the port reads and writes superframes and frames with incomplete checksums (frame.GSO).
	NoOffload bool `json:"noOffload,omitzero"`

	// Home is the network namespace that the other devices of a veth pair are made in, and the guest's end if
	// Namespace is empty. Empty is that of the calling thread.
	Home string `json:"-"`

	// Persistent makes the TAP or TUN one that stays when it is closed or the program ends, with its addresses and routes.
	// Until it is opened again, packets to it are lost.
	Persistent bool `json:"-"`

	// Existing opens a persistent device or a veth only. If there is none, the error wraps [syscall.ENODEV].
	Existing bool `json:"-"`
}

// maxQueues is what the tun driver allows (Linux 6.18).
const maxQueues = 256

// A Device is a port whose far side is the kernel's network stack: a TAP device of Linux, which carries Ethernet
// frames, or a TUN device, which carries IP packets. [OpenVeth] and [OpenInterface] join another interface to a
// TAP.
//
// The device may be renamed, get another MTU, and be moved to another network namespace while it is open;
// reading and writing go on.
type Device struct {
	name   string
	queues []*queue
	link   *sys.Link
	glue   *glue // to an interface, nil without
	egress
	reset bool        // its offloads are switched off again at Close
	found bool        // it was there before
	fixed atomic.Bool // its MTU is that of its settings

	closed  atomic.Bool
	mtu     atomic.Int64 // of the device
	start   time.Time
	checked atomic.Int64 // when mtu was asked for last, in ns since start
	timer   *time.Timer  // runs update
}

// A queue is one descriptor of a Device, with its reader.
type queue struct {
	*sys.Tun
	d      *Device
	reader deviceReader
}

// mtuAge is how long the known MTU is used before it is read again.
const mtuAge = time.Second

// kind returns what the device is called in messages.
func (d *Device) kind() string {
	switch {
	case d.glue != nil && d.glue.veth:
		return "veth"
	case d.glue != nil:
		return "interface"
	case d.tun:
		return "TUN"
	}
	return "TAP"
}

// Name returns the name the device was opened by, or that the kernel has picked.
func (d *Device) Name() string { return d.name }

// MTU returns the length of the longest frame the device takes: the MTU of a TUN, or the MTU of a TAP and
// its Ethernet header, 14 bytes. It costs one load; the port notices a change within a second of traffic.
// If the device is moved to a network namespace that the process may not enter, MTU returns the last known
// value.
func (d *Device) MTU(peer uint16) int {
	if d.tun {
		return int(d.mtu.Load())
	}
	return int(d.mtu.Load()) + ethLen
}

// IP reports whether the device carries IP packets without Ethernet: a TUN.
func (d *Device) IP() bool { return d.tun }

// Existed reports whether the device was there before it was opened: a persistent device, or an interface. It is
// false after [FromFiles].
func (d *Device) Existed() bool { return d.found }

// Fit sets the device's MTU so that [Device.MTU] returns longest, unless DeviceConfig.MTU is set. It sets both
// ends of a veth pair, and leaves an interface that existed as it is.
func (d *Device) Fit(longest int) error {
	if d.closed.Load() {
		return net.ErrClosed
	}
	if !d.tun {
		longest -= ethLen
	}
	if d.fixed.Load() || d.glue != nil && d.found {
		return nil
	}
	return d.resize(longest)
}

// SetMTU sets the MTU of the device, as [DeviceConfig].MTU does when it is opened, of both ends of a veth pair. With 0 it leaves the
// device as it is, and to [Device.Fit]. A guest's end that was moved to another network namespace is out of reach: if its MTU is
// another, SetMTU changes nothing and returns an error.
func (d *Device) SetMTU(mtu int) error {
	c := DeviceConfig{MTU: mtu}
	if err := c.Check(d.tun); err != nil {
		return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, err)
	}
	if d.closed.Load() {
		return net.ErrClosed
	}
	if mtu != 0 {
		d.update()
		if err := d.resize(mtu); err != nil {
			return err
		}
	}
	d.fixed.Store(mtu != 0)
	return nil
}

func (d *Device) resize(mtu int) error {
	if int64(mtu) == d.mtu.Load() {
		return nil
	}
	set := d.link.SetMTU
	if d.glue != nil {
		set = d.setMTU
	}
	if err := set(mtu); err != nil {
		return fmt.Errorf("port: %s %q: MTU %d: %w", d.kind(), d.name, mtu, privilege(err))
	}
	d.mtu.Store(int64(mtu))
	return nil
}

// refresh has the MTU read again if it was read more than mtuAge ago. It does not wait for that: the
// ioctls of tun take the lock of the kernel's whole network configuration, which may be held for long.
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
	if d.glue != nil {
		d.look()
	} else if mtu, err := d.link.MTU(); err == nil {
		d.mtu.Store(int64(mtu))
	}
}

// Readers returns the receive queues, of the frames that the kernel sends on the device. The kernel sends a
// flow through the queue that last wrote a frame of its other direction. When that changes, new packets of
// the flow may overtake those in the old queue (Linux 6.18). After the device is deleted, each Read returns
// an error that names it.
//
// Drop of a frame that contradicts its virtio header is [frame.BadHeader]; of a packet of a TUN that is not
// IP, [frame.BadKind].
func (d *Device) Readers() []frame.Reader {
	readers := make([]frame.Reader, len(d.queues))
	for i, q := range d.queues {
		readers[i] = &q.reader
	}
	return readers
}

// Offloads returns all offloads, UDP superframes only if the kernel takes them (Linux 6.2); with NoOffload,
// VLAN tags only. It includes frame.IPOnly for a TUN.
func (d *Device) Offloads() frame.Offloads { return d.offloads() }

// Writer returns a Writer on queue w mod [DeviceConfig].Queues. The kernel receives its frames on the
// device. It drops frames with [frame.PortFull] if the kernel has no memory for them, and with
// [frame.PortDown] while the device is down. A TAP takes Ethernet frames only, a TUN only IP packets without
// a tag; others are dropped with [frame.BadKind].
//
// With offloads, consecutive frames of one flow in a Write are written as one superframe, and superframes
// as they are.
func (d *Device) Writer(w int) frame.Writer {
	x := &deviceWriter{of: d, conn: d.queues[w%len(d.queues)].Conn, egress: &d.egress}
	x.emit = x.send
	return x
}

// longAgo is a deadline that has always passed.
var longAgo = time.Unix(1, 0)

// Pause makes Read return [frame.ErrPaused] until Resume. Meanwhile the kernel queues frames, up to the
// device's txqueuelen.
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

// Close detaches from the device and makes every Read return [net.ErrClosed], one that waits included. A
// device that is not persistent disappears, unless another process has its descriptors too.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	if err := d.release(); err != nil {
		return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, err)
	}
	return nil
}

// release closes what is open.
func (d *Device) release() (err error) {
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.reset {
		// A persistent device keeps them, but a later owner may not expect them.
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
	if d.glue != nil {
		d.glue.close()
	}
	return err
}

// over returns the error of the port for an error of a queue.
func (d *Device) over(err error) error {
	errno := syscall.Errno(0)
	switch {
	case d.closed.Load():
		return net.ErrClosed
	case d.glue != nil && d.glue.over() != nil:
		return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, d.glue.over())
	case errors.As(err, &errno):
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	default:
		// The poller saw EPOLLERR, which tun reports when the device was deleted under
		// us; read(2) then says EBADFD, "file descriptor in bad state" (Linux 6.18).
		errno = sys.EBADFD
	}
	if errno == sys.EBADFD {
		return fmt.Errorf("port: %s %q: it was deleted: %w", d.kind(), d.name, errno)
	}
	return fmt.Errorf("port: %s %q: %w", d.kind(), d.name, errno)
}
