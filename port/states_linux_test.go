package port_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/porttest"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A Reader of each port is brought into each state it can be in; then the port is paused or
// closed, or its device deleted or moved away.

// A subject is one port, and its Reader that is brought into a state.
type subject struct {
	t     *testing.T
	name  string
	p     port.Port
	r     frame.Reader
	b     *frame.Batch
	dev   string // its device, "" without
	gone  error  // what a Read says when the device is deleted
	moves bool   // it stays with a device that is moved
	feed  func() // has 100 frames come in
	ended chan error
}

// A statesLab is two hosts and a veth between them.
type statesLab struct {
	t    *testing.T
	a, b *netns.Host
	n    int // devices made

	conns []net.Conn // to close
}

func (l *statesLab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// device opens a device of the tun driver, and has the kernel send UDP datagrams into it.
func (l *statesLab) device(tun bool, cfg *port.DeviceConfig) *subject {
	l.n++
	name, ip := fmt.Sprintf("t%d", l.n), fmt.Sprintf("10.77.%d.", l.n)
	open := port.OpenTAP
	if tun {
		open = port.OpenTUN
	}
	return l.opened(name, ip, !tun, func() (*port.Device, error) { return open(name, cfg) })
}

// veth makes a pair, whose guest's end is in the host too.
func (l *statesLab) veth(cfg *port.DeviceConfig) *subject {
	l.n++
	name := fmt.Sprintf("e%d", l.n)
	return l.opened(name, fmt.Sprintf("10.77.%d.", l.n), true, func() (*port.Device, error) { return port.OpenVeth(name, cfg) })
}

// iface opens an end of a veth pair, and has the other, in host b, send frames into it.
func (l *statesLab) iface() *subject {
	x := l.link()
	x.p = netns.Open(l.t, l.a, func() (*port.Device, error) { return port.OpenInterface(x.dev, nil) })
	x.r, x.gone = x.p.Readers()[0], sys.EBADFD
	return x
}

// opened is a device that packets of the host's stack come in from.
func (l *statesLab) opened(name, ip string, ethernet bool, open func() (*port.Device, error)) *subject {
	d := netns.Open(l.t, l.a, open)
	l.a.IP("addr", "add", ip+"1/24", "dev", name)
	if ethernet {
		l.a.Neighbour(name, ip+"2", "02:00:00:00:00:99")
	}
	var c net.Conn
	feed := func() {
		if c == nil {
			c = netns.Open(l.t, l.a, func() (net.Conn, error) { return net.Dial("udp", ip+"2:9") })
			l.conns = append(l.conns, c)
		}
		for range 100 {
			c.Write(make([]byte, 100))
		}
	}
	return &subject{p: d, r: d.Readers()[0], dev: name, gone: sys.EBADFD, moves: true, feed: feed}
}

func (l *statesLab) packet(cfg *port.PacketConfig) *subject {
	x := l.link()
	x.p = netns.Open(l.t, l.a, func() (*port.Packet, error) { return port.OpenPacket(x.dev, cfg) })
	x.r, x.gone = x.p.Readers()[0], syscall.ENODEV
	return x
}

// link makes a veth pair between the hosts.
func (l *statesLab) link() *subject {
	l.n++
	name := fmt.Sprintf("v%d", l.n)
	l.a.IP("link", "add", name, "type", "veth", "peer", "name", name, "netns", l.b.NS)
	l.a.Up(name)
	l.b.Up(name)
	frames := make([][]byte, 100)
	for i := range frames {
		frames[i] = bytes.Repeat([]byte{2}, 60)
	}
	return &subject{dev: name, feed: func() { l.b.Inject(name, frames...) }}
}

// pipe is a Pipe and what is put around it.
func (l *statesLab) pipe(around func(p port.Port) (port.Port, error)) *subject {
	pipe := port.NewPipe(nil)
	p, err := around(pipe)
	l.must(err)
	return &subject{p: p, r: p.Readers()[0], feed: func() {
		for range 100 {
			pipe.Send(make([]byte, 60))
		}
	}}
}

func (l *statesLab) rwc() *subject {
	ours, theirs := net.Pipe()
	l.conns = append(l.conns, theirs)
	p := port.FromReadWriteCloser(ours, nil)
	return &subject{p: p, r: p.Readers()[0], feed: func() {
		go theirs.Write(make([]byte, 60)) // until it is read or closed
	}}
}

func TestReaderStates(t *testing.T) {
	open := map[string]func(l *statesLab) *subject{
		"TAP":                func(l *statesLab) *subject { return l.device(false, nil) },
		"TAP, no offload":    func(l *statesLab) *subject { return l.device(false, &port.DeviceConfig{NoOffload: true}) },
		"TUN":                func(l *statesLab) *subject { return l.device(true, nil) },
		"TAP, 2 queues":      func(l *statesLab) *subject { return l.device(false, &port.DeviceConfig{Queues: 2}) },
		"veth":               func(l *statesLab) *subject { return l.veth(nil) },
		"veth, 2 queues":     func(l *statesLab) *subject { return l.veth(&port.DeviceConfig{Queues: 2, NoOffload: true}) },
		"interface":          func(l *statesLab) *subject { return l.iface() },
		"Packet":             func(l *statesLab) *subject { return l.packet(nil) },
		"Packet, no offload": func(l *statesLab) *subject { return l.packet(&port.PacketConfig{NoOffload: true}) },
		"Packet, 2 queues":   func(l *statesLab) *subject { return l.packet(&port.PacketConfig{Queues: 2}) },
		"ReadWriteCloser":    func(l *statesLab) *subject { return l.rwc() },
		"Pipe":               func(l *statesLab) *subject { return l.pipe(func(p port.Port) (port.Port, error) { return p, nil }) },
		"Capture": func(l *statesLab) *subject {
			return l.pipe(func(p port.Port) (port.Port, error) {
				c, err := capture.New(nil)
				l.must(err)
				return c.Port(p)
			})
		},
		"Buffered": func(l *statesLab) *subject {
			return l.pipe(func(p port.Port) (port.Port, error) {
				b, err := port.NewBuffered(p, nil)
				return b.Port(), err
			})
		},
		"Faulty": func(l *statesLab) *subject {
			return l.pipe(func(p port.Port) (port.Port, error) {
				f, err := porttest.NewFaulty(p, nil)
				return f.Port(), err
			})
		},
	}
	for name, what := range map[string]struct {
		event func(l *statesLab, x *subject) // as soon as all are in their states
		then  func(x *subject, waits bool)
	}{
		"Pause":          {func(*statesLab, *subject) {}, (*subject).paused},
		"Close":          {func(*statesLab, *subject) {}, (*subject).closed},
		"device deleted": {func(l *statesLab, x *subject) { l.a.IP("link", "del", x.dev) }, (*subject).deleted},
		"device moved":   {func(l *statesLab, x *subject) { l.a.IP("link", "set", x.dev, "netns", l.b.NS, "name", x.dev+"m") }, (*subject).moved},
	} {
		t.Run(name, func(t *testing.T) {
			n := netns.New(t)
			l := &statesLab{t: t, a: n.Host("a"), b: n.Host("b")}
			l.b.Inject("lo", make([]byte, 60)) // opens what it keeps
			fds, goroutines := underlaytest.OpenFiles(t), goleak.IgnoreCurrent()
			var checks []func()
			for kind, f := range open {
				for _, state := range []string{"never read", "waiting in Read", "between two Reads"} {
					if state == "between two Reads" && strings.Contains(kind, "2 queues") {
						continue // who knows in which
					}
					x := f(l)
					if strings.HasPrefix(name, "device") && x.dev == "" {
						x.p.Close()
						continue
					}
					x.t, x.name, x.b = t, kind+", "+state, frame.NewBatch(new(frame.Arenas))
					switch state {
					case "waiting in Read":
						x.wait()
					case "between two Reads":
						x.feed()
						if err := x.r.Read(x.b); err != nil || len(x.b.Frames) == 0 {
							t.Fatalf("%s: %v, %d frames", x.name, err, len(x.b.Frames))
						}
					}
					checks = append(checks, func() {
						what.then(x, state == "waiting in Read")
						x.closed(false)
					})
					what.event(l, x)
				}
			}
			for _, check := range checks {
				check()
			}
			for _, c := range l.conns {
				c.Close()
			}
			if now := underlaytest.OpenFiles(t); now != fds {
				t.Errorf("%d descriptors before, %d after", fds, now)
			}
			goleak.VerifyNone(t, goroutines)
		})
	}
}

// readInBackground is where goroutines are that underlaytest.InRead looks for.
func (x *subject) readInBackground() {
	for { // a device that is new says something of its own
		if err := x.r.Read(x.b); err != nil {
			x.ended <- err
			return
		}
	}
}

func (x *subject) wait() {
	x.ended = make(chan error, 1)
	before := underlaytest.InRead()
	go x.readInBackground()
	fake.Until(x.t, x.name+" waits", func() bool { return underlaytest.InRead() > before })
}

// wantEnd reads until an error, which must be want then and ever after.
func (x *subject) wantEnd(waits bool, want error) {
	x.t.Helper()
	var err error
	if waits {
		select {
		case err = <-x.ended:
		case <-time.After(10 * time.Second):
			x.t.Fatalf("%s: Read waits", x.name)
		}
	}
	for range 200 { // what it has it may hand over
		if err != nil {
			break
		}
		err = x.r.Read(x.b)
	}
	for range 2 {
		if !errors.Is(err, want) {
			x.t.Errorf("%s: %v, want %v", x.name, err, want)
		}
		if x.b.Frames != nil {
			x.t.Errorf("%s: the batch holds memory", x.name)
		}
		err = x.r.Read(x.b)
	}
}

func (x *subject) paused(waits bool) {
	p, ok := x.p.(vswitch.Pauser)
	if !ok {
		x.closed(waits)
		return
	}
	p.Pause()
	x.wantEnd(waits, frame.ErrPaused)
	x.feed() // waits meanwhile
	x.wantEnd(false, frame.ErrPaused)
	p.Resume()
	if !strings.Contains(x.name, "2 queues") {
		if err := x.r.Read(x.b); err != nil || len(x.b.Frames) == 0 {
			x.t.Errorf("%s: after the pause %v, %d frames", x.name, err, len(x.b.Frames))
		}
	}
}

func (x *subject) closed(waits bool) {
	if err := x.p.Close(); err != nil {
		x.t.Errorf("%s: Close: %v", x.name, err)
	}
	x.wantEnd(waits, net.ErrClosed)
	if p, ok := x.p.(vswitch.Pauser); ok {
		p.Pause()
		x.wantEnd(false, net.ErrClosed)
		p.Resume()
		x.wantEnd(false, net.ErrClosed)
	}
	if err := x.p.Close(); err != nil {
		x.t.Errorf("%s: Close again: %v", x.name, err)
	}
}

func (x *subject) deleted(waits bool) {
	x.wantEnd(waits, x.gone)
	if err := x.r.Read(x.b); err == nil || !strings.Contains(err.Error(), x.dev) {
		x.t.Errorf("%s: %v does not name the device", x.name, err)
	}
}

func (x *subject) moved(waits bool) {
	if !x.moves {
		x.deleted(waits)
		return
	}
	x.p.(vswitch.Pauser).Pause()
	x.wantEnd(waits, frame.ErrPaused)
	x.p.(vswitch.Pauser).Resume()
}
