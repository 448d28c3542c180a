package port

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// TAPConfig configures [OpenTAP]. The zero value works.
type TAPConfig struct {
	// MTU is set on the device: bytes behind the Ethernet header, as in "ip link set
	// mtu". 0 leaves it: 1500 on a new device. Note that [TAP.MTU] counts the header.
	MTU int

	// MAC is the address the kernel's side of the device gets. Zero leaves it: random
	// on a new device.
	MAC frame.MAC

	// Down leaves the device as it is. Without it OpenTAP brings the device up.
	Down bool
}

// A TAP is a port whose far side is the kernel's network stack: a TAP device of
// Linux, with one queue and without offloads.
//
// Once it is open the device may be renamed, its MTU changed, and it may be moved
// to another network namespace; reading and writing go on.
type TAP struct {
	name    string
	tun     *sys.Tun
	closed  atomic.Bool
	mtu     atomic.Int64 // of the device
	start   time.Time
	checked atomic.Int64 // when mtu was asked for last, in ns since start
	timer   *time.Timer  // runs update
	reader  tapReader
}

// mtuAge is how long a known MTU is believed while there is traffic; mtuDoubt, when
// a frame came that is longer.
const (
	mtuAge   = time.Second
	mtuDoubt = 50 * time.Millisecond
)

// OpenTAP attaches to the TAP device name, at most 15 bytes long, in the network
// namespace of the calling thread. A nil cfg is the zero value.
//
// If there is no such device it is created, and it is gone when the TAP is closed
// or the process ends. A persistent device ("ip tuntap add mode tap") is attached
// to and left in place, with the settings cfg gave it. With the name "" or one
// that contains "%d" the kernel picks a free one; see [TAP.Name].
//
// An error that errors.Is(err, os.ErrPermission) means CAP_NET_ADMIN is missing;
// [syscall.EBUSY], that another program is attached. On systems other than Linux
// the error is [errors.ErrUnsupported].
func OpenTAP(name string, cfg *TAPConfig) (*TAP, error) {
	var c TAPConfig
	if cfg != nil {
		c = *cfg
	}
	switch {
	case !sys.TunSupported:
		return nil, fmt.Errorf("port: TAP %q: %w", name, errors.ErrUnsupported)
	case len(name) > 15: // IFNAMSIZ - 1
		return nil, fmt.Errorf("port: TAP name %q: longer than 15 bytes", name)
	case c.MTU < 0:
		return nil, fmt.Errorf("port: TAP %q: MTU %d is negative", name, c.MTU)
	case c.MAC.IsGroup():
		return nil, fmt.Errorf("port: TAP %q: MAC %v is a group address", name, c.MAC)
	}
	tun, err := sys.OpenTAP(name)
	if err != nil {
		return nil, openError(name, err)
	}
	t := &TAP{tun: tun, start: time.Now()}
	if err := t.setup(c); err != nil {
		tun.Close()
		return nil, openError(cmp.Or(t.name, name), err)
	}
	t.timer = time.AfterFunc(time.Hour, t.update)
	t.timer.Stop()
	t.reader.t = t
	t.reader.poll = t.reader.receive
	return t, nil
}

func (t *TAP) setup(c TAPConfig) (err error) {
	if t.name, err = t.tun.Name(); err != nil {
		return err
	}
	if !c.MAC.IsZero() {
		if err := t.tun.SetMAC(c.MAC); err != nil {
			return fmt.Errorf("MAC %v: %w", c.MAC, err)
		}
	}
	mtu, err := t.tun.MTU()
	if err != nil {
		return fmt.Errorf("reading the MTU: %w", err)
	}
	if c.MTU != 0 && c.MTU != mtu {
		if err := t.tun.SetMTU(c.MTU); err != nil {
			return fmt.Errorf("MTU %d: %w", c.MTU, err)
		}
		mtu = c.MTU
	}
	t.mtu.Store(int64(mtu))
	if !c.Down {
		if err := t.tun.Up(); err != nil {
			return fmt.Errorf("bringing the device up: %w", err)
		}
	}
	return nil
}

// openError says what an errno of the tun driver means and what to do.
func openError(name string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		hint = "needs CAP_NET_ADMIN, or a persistent device that belongs to this user: "
	case errors.Is(err, syscall.EBUSY):
		hint = "another program is attached to it: "
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		hint = "is the tun module loaded? "
	case err == error(syscall.EINVAL): // of the device itself, not of a setting
		hint = "not a device name, or a device that is not a TAP with a single queue: "
	}
	return fmt.Errorf("port: TAP %q: %s%w", name, hint, err)
}

// Name returns the name the device had when it was opened.
func (t *TAP) Name() string { return t.name }

// MTU returns the longest frame the device takes: its MTU and 14 bytes of Ethernet
// header. It costs one load; a change on the device is seen within a second of
// traffic on the port. A device that was moved to another network namespace keeps
// its last known MTU if the process may not enter that namespace.
func (t *TAP) MTU(peer uint16) int { return int(t.mtu.Load()) + ethLen }

// refresh has the MTU read again when what is known is older than age. It does not
// wait for that: the ioctls of tun take the lock of the kernel's whole network
// configuration, which may be held for long.
func (t *TAP) refresh(age time.Duration) {
	now, last := int64(time.Since(t.start)), t.checked.Load()
	if now-last > int64(age) && t.checked.CompareAndSwap(last, now) {
		t.timer.Reset(0)
	}
}

func (t *TAP) update() {
	if t.closed.Load() {
		return
	}
	if mtu, err := t.tun.MTU(); err == nil {
		t.mtu.Store(int64(mtu))
	}
}

// Readers returns the one receive queue: what the kernel sends out of the device.
// When the device is deleted, Read returns an error that names it.
func (t *TAP) Readers() []frame.Reader { return []frame.Reader{&t.reader} }

// Writer returns a new transmit side: what it writes the kernel receives on the
// device. It drops with [frame.PortFull] when the kernel has no memory for the
// frame and with [frame.PortDown] while the device is down.
func (t *TAP) Writer(w int) frame.Writer {
	tw := &tapWriter{t: t}
	tw.emit = tw.send
	return tw
}

// longAgo is a deadline that is always over.
var longAgo = time.Unix(1, 0)

// Pause makes Read return [frame.ErrPaused] until Resume. Frames that arrive in
// between wait in the kernel, as many as the device's txqueuelen.
func (t *TAP) Pause() { t.tun.File.SetReadDeadline(longAgo) }

// Resume ends Pause.
func (t *TAP) Resume() { t.tun.File.SetReadDeadline(time.Time{}) }

// Close detaches from the device and makes every Read return [net.ErrClosed], one
// that waits included. A device that is not persistent disappears.
func (t *TAP) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	t.timer.Stop()
	if err := t.tun.Close(); err != nil {
		return fmt.Errorf("port: TAP %q: %w", t.name, err)
	}
	return nil
}

// over returns what the port says when the queue says err.
func (t *TAP) over(err error) error {
	if t.closed.Load() {
		return net.ErrClosed
	}
	return fmt.Errorf("port: TAP %q: %w", t.name, err)
}
