package port

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// How queues are opened by hand.
const (
	plainTAP = unix.IFF_TAP | unix.IFF_NO_PI
	plainTUN = unix.IFF_TUN | unix.IFF_NO_PI
)

// attached opens /dev/net/tun by hand, in the host, and attaches it to a device: what
// a parent hands over.
func attached(t *testing.T, h *netns.Host, name string, flags uint16) (fd int) {
	t.Helper()
	h.Do(func() {
		var err error
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		ifr, _ := unix.NewIfreq(name)
		ifr.SetUint16(flags)
		must(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr))
	})
	return fd
}

func TestDeviceInANamespace(t *testing.T) {
	n := netns.New(t)
	blue, green := n.Host("blue"), n.Host("green")
	blue.Quiet()
	green.Quiet()
	for _, c := range []struct {
		host      *netns.Host
		name      string
		namespace string
		open      func(string, *DeviceConfig) (*Device, error)
		queues    int
	}{
		{blue, "tap0", blue.NS, OpenTAP, 1},
		{blue, "tun0", "/run/netns/" + blue.NS, OpenTUN, 3},
		{green, "tap0", "/run/netns/" + green.NS, OpenTAP, 2},
	} {
		var before, after unix.Stat_t
		var d *Device
		var err error
		opened := make(chan bool)
		go func() { // any goroutine
			defer close(opened)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			unix.Stat("/proc/thread-self/ns/net", &before)
			d, err = c.open(c.name, &DeviceConfig{Namespace: c.namespace, Queues: c.queues, MTU: 1400})
			unix.Stat("/proc/thread-self/ns/net", &after)
		}()
		<-opened
		must(t, err)
		defer d.Close()
		if before.Ino != after.Ino {
			t.Errorf("%s: the caller is somewhere else", c.namespace)
		}
		if len(d.Readers()) != c.queues || !has(t, c.host, c.name) {
			t.Errorf("%s: %d queues, device there: %v", c.namespace, len(d.Readers()), has(t, c.host, c.name))
		}
		if out := c.host.IP("link", "show", c.name); !strings.Contains(out, "mtu 1400") || !strings.Contains(out, ",UP") {
			t.Errorf("%s: %s", c.namespace, out)
		}
		c.host.MTU(c.name, 1300)
		d.update()
		if want := d.MTU(0); want != 1300 && want != 1314 {
			t.Errorf("%s: MTU %d", c.namespace, want)
		}
		if _, err := os.Stat("/sys/class/net/" + c.name); err == nil {
			t.Errorf("%s: the device is here", c.namespace)
		}
	}
}

// fromFD makes a Device of one descriptor.
func fromFD(fd int, cfg *DeviceConfig) (*Device, error) {
	return FromFiles([]*os.File{os.NewFile(uintptr(fd), "tun")}, cfg)
}

func TestDeviceFromAFile(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	h.Quiet()
	for _, c := range []struct {
		name  string
		flags uint16
		cfg   *DeviceConfig
		mtu   int
	}{
		{"tap0", plainTAP, nil, 1514},
		{"tun0", plainTUN, &DeviceConfig{MTU: 1400}, 1400},
		{"mtap0", plainTAP | unix.IFF_MULTI_QUEUE, &DeviceConfig{Queues: 1}, 1514},
	} {
		fd := attached(t, h, c.name, c.flags)
		d, err := fromFD(fd, c.cfg)
		must(t, err)
		if d.Name() != c.name || d.MTU(0) != c.mtu || len(d.Readers()) != 1 {
			t.Errorf("%s: name %s, MTU %d, %d queues", c.name, d.Name(), d.MTU(0), len(d.Readers()))
		}
		if out := h.IP("link", "show", c.name); !strings.Contains(out, ",UP") {
			t.Errorf("%s: %s", c.name, out)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if has(t, h, c.name) {
			t.Errorf("%s: the device is there after Close", c.name)
		}
	}
}

func TestDeviceFromFilesOfAnotherProcess(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	h.IP("tuntap", "add", "dev", "tap0", "mode", "tap", "multi_queue")
	pair := check.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	var sent []int
	for range 4 {
		sent = append(sent, attached(t, h, "tap0", plainTAP|unix.IFF_MULTI_QUEUE))
	}
	must(t, unix.Sendmsg(pair[0], []byte("q"), unix.UnixRights(sent...), nil, 0))
	for _, fd := range sent {
		unix.Close(fd)
	}
	oob := make([]byte, 256)
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 8), oob, unix.MSG_CMSG_CLOEXEC)
	must(t, err)
	msgs := check.Must(unix.ParseSocketControlMessage(oob[:n]))(t)
	fds := check.Must(unix.ParseUnixRights(&msgs[0]))(t)
	var files []*os.File
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "queue"))
	}
	d := check.Must(FromFiles(files, nil))(t)
	defer d.Close()
	if len(d.Readers()) != 4 || d.Name() != "tap0" {
		t.Errorf("%d queues of %s", len(d.Readers()), d.Name())
	}
	h.Addr("tap0", "10.9.0.1/24")
	done := guest(d, "10.9.0.2")
	h.Ping("10.9.0.2", 3)
	d.Close()
	<-done
	if !has(t, h, "tap0") {
		t.Error("the persistent device is gone")
	}
	openTAP(t, h, "tap0", &DeviceConfig{Queues: 256}) // nobody is attached any more
}

func TestDeviceFromFileErrors(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	null := func() *os.File {
		f := check.Must(os.Open("/dev/null"))(t)
		return f
	}
	loose := func() *os.File {
		fd := check.Must(unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0))(t)
		return os.NewFile(uintptr(fd), "tun")
	}
	queue := func(name string, flags uint16) *os.File {
		return os.NewFile(uintptr(attached(t, h, name, flags)), name)
	}
	closed := null()
	closed.Close()
	for what, c := range map[string]struct {
		files []*os.File
		cfg   *DeviceConfig
		is    error
		says  string
	}{
		"none":      {nil, nil, nil, "port: device from a file: no file"},
		"nil":       {[]*os.File{nil}, nil, os.ErrInvalid, "invalid argument"},
		"closed":    {[]*os.File{closed}, nil, nil, "closed file"},
		"null":      {[]*os.File{null()}, nil, syscall.ENOTTY, "not a queue of a TUN or TAP device"},
		"loose":     {[]*os.File{loose()}, nil, unix.EBADFD, "attached to no device"},
		"two":       {[]*os.File{queue("a0", plainTAP), queue("a1", plainTAP)}, nil, nil, `port: TAP "a0": queue 1 is of another device, "a1"`},
		"count":     {[]*os.File{queue("a2", plainTAP)}, &DeviceConfig{Queues: 2}, nil, "Queues 2: there are 1 files"},
		"namespace": {[]*os.File{queue("a3", plainTAP)}, &DeviceConfig{Namespace: "x"}, nil, "is open already"},
		"MAC":       {[]*os.File{queue("a4", plainTUN)}, &DeviceConfig{MAC: frame.MAC{2}}, nil, "a TUN has no MAC"},
		"prefix":    {[]*os.File{queue("a6", unix.IFF_TAP)}, nil, nil, `port: TAP "a6": it was opened without IFF_NO_PI`},
		"MTU":       {[]*os.File{queue("a5", plainTAP)}, &DeviceConfig{MTU: 9}, nil, `port: TAP "a5": DeviceConfig.MTU: 9`},
	} {
		d, err := FromFiles(c.files, c.cfg)
		if err == nil {
			d.Close()
			t.Errorf("%s: no error", what)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
		}
		for i, f := range c.files {
			if err := f.Close(); err == nil {
				t.Errorf("%s: file %d is still open", what, i)
			}
		}
	}
	if out := h.IP("-br", "link"); strings.Contains(out, "a0") || strings.Contains(out, "a5") {
		t.Errorf("devices are left:\n%s", out)
	}
	if _, err := fromFD(-1, nil); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("descriptor -1: %v", err)
	}
}

// A device with several queues belongs to the program that made it. Who is refused never had
// a queue of it: not one packet is lost in it.
func TestDeviceMultiQueueTaken(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	d := openTAP(t, h, "taken0", &DeviceConfig{Queues: 2})
	var got atomic.Int64
	for _, r := range d.Readers() {
		go func() {
			for b := frame.NewBatch(nil); r.Read(b) == nil; {
				got.Add(int64(len(b.Frames)))
			}
		}()
	}
	const rounds, flows = 20, 64
	frames := make([][]byte, flows)
	for i := range frames {
		frames[i] = udp4(frame.MAC{2, 0, 0, 0, 0, 1}, uint16(1000+i), 7000, []byte("payload"))
	}
	var enough atomic.Bool
	defer enough.Store(true)
	refused := make(chan error, 1)
	go h.Do(func() {
		for n := 0; !enough.Load(); n++ {
			if x, err := OpenTAP("taken0", &DeviceConfig{Queues: 1 + n%4}); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "another program") {
				refused <- fmt.Errorf("%d queues: %v, %v", 1+n%4, x, err)
				return
			}
		}
		refused <- nil
	})
	for k := range rounds {
		h.Inject("taken0", frames...)
		want := int64((k + 1) * flows)
		fake.Until(t, fmt.Sprintf("%d packets", want), func() bool { return got.Load() >= want })
	}
	enough.Store(true)
	if err := <-refused; err != nil {
		t.Error(err)
	}
}

// A persistent device for several queues: as many as one likes, at once with others.
func TestDevicePersistentMultiQueue(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	h.IP("tuntap", "add", "dev", "keep0", "mode", "tun", "multi_queue")
	var d, e *Device
	var err error
	for _, queues := range []int{2, 4} {
		h.Do(func() {
			if d, err = OpenTUN("keep0", &DeviceConfig{Queues: queues}); err != nil {
				t.Fatal(err)
			}
			if e, err = OpenTUN("keep0", &DeviceConfig{Queues: 3}); err != nil {
				t.Fatal(err)
			}
		})
		if len(d.Readers()) != queues || len(e.Readers()) != 3 {
			t.Errorf("%d and %d queues", len(d.Readers()), len(e.Readers()))
		}
		h.Do(func() {
			if x, err := OpenTUN("keep0", &DeviceConfig{Queues: 256}); !errors.Is(err, syscall.E2BIG) || !strings.Contains(fmt.Sprint(err), "no queue left") {
				t.Errorf("too many queues: %v, %v", x, err)
			}
			if x, err := OpenTAP("keep0", &DeviceConfig{Queues: 2}); !errors.Is(err, syscall.EINVAL) || !strings.Contains(fmt.Sprint(err), "is a TUN") {
				t.Errorf("a TUN as TAP: %v, %v", x, err)
			}
		})
		d.Close()
		e.Close()
		if out := h.IP("-d", "link", "show", "keep0"); !strings.Contains(out, "multi_queue") || !strings.Contains(out, "persist on") {
			t.Errorf("the device is not what it was:\n%s", out)
		}
	}
}
