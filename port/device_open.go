package port

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/setting"
)

// OpenTAP attaches to the TAP device name, at most 15 bytes long. A nil cfg is the zero value. The caller
// closes the Device, or attaches it to a switch.
//
// If the device does not exist it is created, and disappears when the Device is closed or the process
// ends. A persistent device, of cfg or of "ip tuntap add mode tap", stays, with the settings of cfg; name may be an alternative
// name of it ("ip link property add altname"). If name is empty or contains "%d", the kernel picks a free name; see
// [Device.Name].
//
// The error wraps
//   - [os.ErrPermission] if CAP_NET_ADMIN is missing
//   - [syscall.EBUSY] if another program is attached to the device or has created it. Programs can share a
//     persistent device with several queues, or pass files; see [FromFiles].
//   - [syscall.EINVAL] if the device is of another kind, or was made for one queue and not for several, or
//     the other way round
//   - [errors.ErrUnsupported] on systems other than Linux
func OpenTAP(name string, cfg *DeviceConfig) (*Device, error) { return open(name, false, cfg) }

// OpenTUN attaches to the TUN device name, as [OpenTAP] does to a TAP. The Kind of its frames is
// [frame.IPv4] or [frame.IPv6]: attach it to a VSI with a gateway.
func OpenTUN(name string, cfg *DeviceConfig) (*Device, error) { return open(name, true, cfg) }

func open(name string, tun bool, cfg *DeviceConfig) (*Device, error) {
	d := &Device{egress: egress{tun: tun}, start: time.Now()}
	var c DeviceConfig
	if cfg != nil {
		c = *cfg
	}
	err := c.Check(tun)
	switch {
	case !sys.TunSupported:
		err = errors.ErrUnsupported
	case len(name) > 15: // IFNAMSIZ - 1
		return nil, fmt.Errorf("port: %s name %q: longer than 15 bytes", d.kind(), name)
	case err == nil:
		err = inNamespace("DeviceConfig", c.Namespace, func() error { return d.attach(name, c) })
	}
	if err == nil {
		err = d.setup(c, false)
	}
	if err == nil && c.Persistent {
		if err = d.queues[0].SetPersist(); err != nil {
			err = fmt.Errorf("making it persistent: %w", privilege(err))
		}
	}
	if err != nil {
		d.release()
		return nil, fmt.Errorf("port: %s %q: %w", d.kind(), cmp.Or(d.name, name), err)
	}
	if d.found {
		d.name = name // may be an alternative name of the device
	}
	return d, nil
}

// FromFiles returns a Device for files that another program opened, such as a privileged parent. Each
// file is an attached queue of one TUN or TAP device, opened with IFF_NO_PI. A nil cfg is the zero value.
// The offloads of the files stay as they are, unless NoOffload switches them off.
//
// Closing the Device closes the files; if FromFiles fails it closes them too. The open files become
// non-blocking for every process that has them.
//
// MTU and MAC of cfg are set on the device, which may need CAP_NET_ADMIN. If the device is in a network
// namespace that the process may not enter, FromFiles assumes that the device is up and has the MTU of cfg,
// or 1500.
func FromFiles(files []*os.File, cfg *DeviceConfig) (*Device, error) {
	var c DeviceConfig
	if cfg != nil {
		c = *cfg
	}
	d := &Device{start: time.Now()}
	err := d.take(files, c)
	for _, f := range files {
		f.Close()
	}
	if err == nil {
		err = d.setup(c, true)
	}
	if err != nil {
		d.release()
		if d.name == "" {
			return nil, fmt.Errorf("port: device from a file: %w", err)
		}
		return nil, fmt.Errorf("port: %s %q: %w", d.kind(), d.name, err)
	}
	return d, nil
}

// Check returns the errors for which [OpenTAP] refuses the settings, or [OpenTUN] if tun is set.
func (c *DeviceConfig) Check(tun bool) error {
	w := setting.Of("DeviceConfig")
	longest := maxMTU
	if !tun {
		longest -= ethLen
	}
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > longest) {
		w.Want("MTU", c.MTU, "%d to %d, or 0 for that of the device", minMTU, longest)
	}
	if c.MAC.IsGroup() {
		w.Want("MAC", c.MAC, "the MAC of one host")
	} else if tun && !c.MAC.IsZero() {
		w.Wrong("MAC", c.MAC, "a TUN has no MAC")
	}
	checkQueues(w, c.Queues, c.BusyPoll)
	return w.Err()
}

// The kernel's bounds for the MTU of a device, Ethernet header of a TAP included.
const (
	minMTU = 68
	maxMTU = 65535
)

// checkQueues checks the settings that devices and interfaces have in common.
func checkQueues(w *setting.Check, queues int, poll time.Duration) {
	w.Number("Queues", queues, 1, maxQueues, 1)
	if poll < 0 || poll > sys.MaxBusyPoll {
		w.Want("BusyPoll", poll, "0s to %v", sys.MaxBusyPoll)
	}
}

// inNamespace runs f in the configured namespace; config is the name of the Config type, for errors.
func inNamespace(config, namespace string, f func() error) error {
	path := namespace
	switch {
	case path == "":
		return f()
	case !strings.Contains(path, "/"):
		path = "/run/netns/" + path
	}
	entered := false
	err := sys.InNamespace(path, func() error { entered = true; return f() })
	if err != nil && !entered {
		return fmt.Errorf("%s.Namespace %q: %w", config, namespace, err)
	}
	return err
}

// attach opens the queues, in the namespace of the calling thread.
func (d *Device) attach(name string, c DeviceConfig) error {
	mode := sys.TunMode{TUN: d.tun, Multi: c.Queues > 1, Vnet: !c.NoOffload}
	for i := range max(c.Queues, 1) {
		var t *sys.Tun
		var err error
		if i == 0 {
			t, d.found, err = first(name, mode, c.Existing)
		} else {
			t, err = sys.OpenTun(d.name, mode) // the kernel may have picked the name
		}
		switch {
		case errors.Is(err, errNone):
			return err
		case err != nil:
			return attachError(name, mode, err)
		}
		if err := d.add(t); err != nil {
			return err
		}
	}
	if err := d.find(); err != nil {
		return err
	}
	return d.offload(!c.NoOffload)
}

// errNone is the error for a device that should exist.
var errNone = fmt.Errorf("there is no persistent device with this name: %w", syscall.ENODEV)

// first opens the first queue, of a new device or a persistent one, and reports whether that was there. Any other device
// belongs to the program that made it, and another queue would take some of that program's packets.
func first(name string, mode sys.TunMode, existing bool) (t *sys.Tun, found bool, err error) {
	if driver, _ := sys.Kind(name); existing && driver == "" {
		return nil, false, errNone
	}
	if !existing {
		mode.New = true
		if t, err = sys.OpenTun(name, mode); !errors.Is(err, syscall.EBUSY) {
			return t, false, err
		}
	}
	if sys.TunTaken(name) {
		return nil, false, syscall.EBUSY
	}
	mode.New = false
	if t, err = sys.OpenTun(name, mode); err != nil || !existing {
		return t, err == nil, err
	}
	if info, err := t.Info(); err == nil && !info.Persist { // deleted a moment ago, and made just now
		t.Close()
		return nil, false, errNone
	}
	return t, true, nil
}

// offload switches the offloads of the device on or off. A device with other programs attached may have
// no virtio header, or have one although this program wants none.
//
// A persistent device keeps the offloads that an earlier program asked for. They must be switched off here:
// without the virtio header nobody could cut its superframes and complete its checksums.
func (d *Device) offload(on bool) (err error) {
	d.whole = on && d.header > 0
	if d.uso, err = d.queues[0].SetOffload(d.whole); err != nil {
		return fmt.Errorf("setting offloads: %w", err)
	}
	d.reset = d.whole
	return nil
}

// take makes queues of files. Their offloads stay as they are, unless cfg switches them off; it is then
// unknown whether the kernel takes UDP superframes.
func (d *Device) take(files []*os.File, c DeviceConfig) error {
	switch {
	case !sys.TunSupported:
		return errors.ErrUnsupported
	case c.Namespace != "":
		return fmt.Errorf("DeviceConfig.Namespace %q: the device is open already", c.Namespace)
	case len(files) == 0:
		return errors.New("no file")
	case c.Queues != 0 && c.Queues != len(files):
		return fmt.Errorf("DeviceConfig.Queues %d: there are %d files", c.Queues, len(files))
	}
	for _, f := range files {
		t, err := sys.TakeTun(f)
		if err != nil {
			return err
		}
		if err := d.add(t); err != nil {
			return err
		}
	}
	if err := c.Check(d.tun); err != nil {
		return err
	}
	if c.NoOffload {
		if err := d.offload(false); err != nil {
			return err
		}
	} else {
		d.whole = d.header > 0
	}
	if err := d.find(); err != nil {
		return err
	}
	if pi, err := d.link.PacketInfo(); err == nil && pi {
		return errors.New("it was opened without IFF_NO_PI")
	}
	return nil
}

// add makes t a queue of the device. The name and the kind of the device are those of its first queue.
func (d *Device) add(t *sys.Tun) error {
	q := &queue{Tun: t, d: d}
	d.queues = append(d.queues, q)
	q.reader.open(d, q.Conn, q.next)
	switch info, err := t.Info(); {
	case errors.Is(err, syscall.ENOTTY):
		return fmt.Errorf("not a queue of a TUN or TAP device: %w", err)
	case errors.Is(err, sys.EBADFD):
		return fmt.Errorf("attached to no device: %w", err)
	case err != nil:
		return fmt.Errorf("asking for its device: %w", err)
	case info.Vnet && (info.Header < gso.VirtioLen || info.Header > frame.Headroom):
		return fmt.Errorf("virtio header of %d bytes, want %d to %d", info.Header, gso.VirtioLen, frame.Headroom)
	case len(d.queues) == 1:
		d.name, d.tun, d.header = info.Name, info.TUN, info.Header
	case info.Name != d.name || info.TUN != d.tun:
		return fmt.Errorf("queue %d is of another device, %q", len(d.queues)-1, info.Name)
	}
	return nil
}

// find opens the link of the device, in the namespace of the calling thread.
func (d *Device) find() (err error) {
	if d.link, err = sys.NewLink(d.queues[0].Tun); err != nil {
		return fmt.Errorf("rtnetlink socket: %w", err)
	}
	return nil
}

// setup applies cfg to the device. A device from files may be out of reach.
func (d *Device) setup(c DeviceConfig, lent bool) error {
	if !c.MAC.IsZero() {
		if err := d.link.SetMAC(c.MAC); err != nil {
			return fmt.Errorf("DeviceConfig.MAC %v: %w", c.MAC, privilege(err))
		}
	}
	mtu, err := d.link.MTU()
	switch {
	case lent && outOfReach(err):
		mtu = cmp.Or(c.MTU, DefaultMTU-ethLen)
	case err != nil:
		return fmt.Errorf("reading the MTU: %w", err)
	case c.MTU != 0 && c.MTU != mtu:
		if err := d.link.SetMTU(c.MTU); err != nil {
			return fmt.Errorf("DeviceConfig.MTU %d: %w", c.MTU, privilege(err))
		}
		mtu = c.MTU
	}
	d.fixed.Store(c.MTU != 0)
	d.mtu.Store(int64(mtu))
	if !c.Down {
		if err := d.link.Up(); err != nil && !(lent && outOfReach(err)) {
			return fmt.Errorf("bringing the device up: %w", privilege(err))
		}
	}
	for _, q := range d.queues {
		q.reader.busy.Max = c.BusyPoll
	}
	d.timer = time.AfterFunc(time.Hour, d.update)
	d.timer.Stop()
	return nil
}

// outOfReach reports whether the device is in a network namespace that this process may not enter.
func outOfReach(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EPERM) && errors.Is(err, sys.ErrNamespace)
}

// privilege adds what an EPERM means.
func privilege(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("needs CAP_NET_ADMIN: %w", err)
	}
	return err
}

// attachError adds what an error of the tun driver means.
func attachError(name string, m sys.TunMode, err error) error {
	hint := "attaching: "
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		hint = "needs CAP_NET_ADMIN, or a persistent device that belongs to this user: "
	case errors.Is(err, syscall.EBUSY):
		hint = "another program is attached to it: "
	case errors.Is(err, syscall.E2BIG):
		hint = "the device has no queue left: "
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		hint = "is the tun module loaded? "
	case errors.Is(err, syscall.EINVAL):
		hint = mismatch(name, m) + ": "
	}
	return fmt.Errorf("%s%w", hint, err)
}

// mismatch returns how the device differs from the request.
func mismatch(name string, m sys.TunMode) string {
	switch driver, kind := sys.Kind(name); {
	case driver == "":
		if _, err := net.InterfaceByName(name); err == nil { // lo has no driver
			return "the device is not a TAP or TUN"
		}
		return "not a device name"
	case driver != "tun":
		return "a device of another driver, " + driver
	case m.TUN && kind != "tun":
		return "the device is a TAP, not a TUN"
	case !m.TUN && kind != "tap":
		return "the device is a TUN, not a TAP"
	case m.Multi:
		return "the device has a single queue: it was made without multi_queue"
	}
	return "the device is for several queues: it was made with multi_queue"
}
