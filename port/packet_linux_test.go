package port

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var (
	_ vswitch.Port   = (*Packet)(nil)
	_ vswitch.Pauser = (*Packet)(nil)
)

// openPacket opens a port to an interface of the host and closes it with the test.
func openPacket(t *testing.T, h *netns.Host, name string, cfg *PacketConfig) *Packet {
	t.Helper()
	return netns.Open(t, h, func() (*Packet, error) { return OpenPacket(name, cfg) })
}

// cabled returns a port to eth0 of host m, whose other end is eth0 of host far. Nobody sends
// there but the test.
func cabled(t *testing.T, cfg *PacketConfig) (p *Packet, m, far *netns.Host) {
	t.Helper()
	n := netns.New(t)
	m, far = n.Host("m"), n.Host("far")
	m.Quiet()
	far.Quiet()
	n.Link(m, "", far, "")
	m.Ready()
	return openPacket(t, m, "eth0", cfg), m, far
}

// readAll reads n frames within ten seconds and checks each.
func readAll(t *testing.T, p *Packet, n int, check func(i int, f *frame.Frame)) {
	t.Helper()
	late := time.AfterFunc(10*time.Second, p.Pause)
	defer late.Stop()
	b := frame.NewBatch(new(frame.Arenas))
	for got := 0; got < n; got += len(b.Frames) {
		if err := p.Readers()[0].Read(b); err != nil {
			t.Fatalf("%d frames of %d: %v", got, n, err)
		}
		for i := range b.Frames {
			check(got+i, &b.Frames[i])
		}
	}
}

// Frames with and without tags, up to the longest the interface takes, arrive and leave as
// they are, in order.
func TestPacketFramesAreExactAndInOrder(t *testing.T) {
	for _, cfg := range []*PacketConfig{nil, {NoOffload: true}, {Queues: 2}, {BusyPoll: time.Millisecond}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			p, _, far := cabled(t, cfg)
			if p.Name() != "eth0" || p.MTU(0) != 1514 || len(p.Readers()) != max(len(p.queues), 1) {
				t.Errorf("%q, MTU %d", p.Name(), p.MTU(0))
			}
			var want [][]byte
			for i, n := range []int{14, 15, 60, 64, 1514, 60} {
				want = append(want, fake.Ethernet(n, byte(i)))
			}
			for i := range 150 { // more than a batch
				want = append(want, fake.Ethernet(60+i, byte(i)))
			}
			want[2] = fake.Tagged(want[2], 0x60, 0x07)                          // priority 3
			want[4] = fake.Tagged(want[4], 0x0f, 0xfe)                          // the longest, and the tag on top
			want[5] = fake.Tagged(fake.Tagged(want[5], 0x00, 0x05), 0x00, 0x06) // two tags
			want[7] = fake.Tagged(want[7], 0x00, 0x00)                          // of no VLAN
			want[8] = fake.Tagged(want[8], 0x00, 0x09)
			want[8][12], want[8][13] = 0x88, 0xa8 // a service tag
			inward := want
			if len(p.queues) > 1 {
				inward = nil // see TestPacketQueuesKeepFlowsInOrder
			}
			far.Inject("eth0", inward...)
			readAll(t, p, len(inward), func(i int, f *frame.Frame) {
				if !bytes.Equal(f.Bytes(), want[i]) || f.Drop != 0 || f.Kind != frame.Ethernet || f.Headroom() < frame.Headroom-vlanLen || f.GSO != (frame.GSO{}) {
					t.Fatalf("frame %d: %d bytes, drop %v, %+v\ngot  %.40x\nwant %.40x", i, f.Len(), f.Drop, f.GSO, f.Bytes(), want[i])
				}
			})

			c := far.Capture("eth0", "")
			o := fake.Outs(want...)
			o[10].Tag, o[11].Tag = 0xabc, 1
			want[10], want[11] = fake.Tagged(want[10], 0x0a, 0xbc), fake.Tagged(want[11], 0, 1)
			must(t, p.Writer(3).Write(o))
			got := c.Want(len(want), nil)
			for i := range want {
				if o[i].Drop != 0 || !bytes.Equal(got[i].Data, want[i]) {
					t.Errorf("frame %d: drop %v\ngot  %.40x\nwant %.40x", i, o[i].Drop, got[i].Data, want[i])
				}
			}
		})
	}
}

// What leaves the interface is not read from it: neither what the port itself wrote nor what
// others send. Nor are frames of other interfaces.
func TestPacketReadsOnlyWhatTheInterfaceReceives(t *testing.T) {
	for _, queues := range []int{1, 2} {
		t.Run(fmt.Sprint(queues), func(t *testing.T) {
			n := netns.New(t)
			m, far := n.Host("m"), n.Host("far")
			m.Quiet()
			far.Quiet()
			n.Link(m, "", far, "")
			n.Link(m, "", far, "")
			m.Ready()
			p := openPacket(t, m, "eth0", &PacketConfig{Queues: queues})
			must(t, p.Writer(0).Write(fake.Outs(fake.Ethernet(60, 1), fake.Ethernet(60, 2))))
			m.Inject("eth0", fake.Ethernet(60, 3))
			far.Inject("eth1", fake.Ethernet(60, 4))
			last := fake.Ethernet(60, 5)
			far.Inject("eth0", last)
			seen := make(chan []byte, 10)
			for _, r := range p.Readers() {
				go func() {
					b := frame.NewBatch(nil)
					for r.Read(b) == nil {
						for i := range b.Frames {
							seen <- bytes.Clone(b.Frames[i].Bytes())
						}
					}
				}()
			}
			if got := <-seen; !bytes.Equal(got, last) {
				t.Errorf("read %x", got)
			}
			time.Sleep(20 * time.Millisecond)
			if len(seen) != 0 {
				t.Errorf("read %x", <-seen)
			}
		})
	}
}

func TestPacketWriterSaysWhatItDidNotSend(t *testing.T) {
	p, m, far := cabled(t, nil)
	w := p.Writer(0)
	o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(13, 0), fake.Ethernet(60, 0), fake.Ethernet(1515, 0), fake.Ethernet(1514, 0), fake.Ethernet(1515, 0), fake.Ethernet(60, 0))
	o[2].F.Kind = frame.IPv4
	o[4].Tag, o[5].Tag = 5, 5
	c := far.Capture("eth0", "")
	must(t, w.Write(o))
	fake.WantDrops(t, o, 0, frame.SendFailed, frame.BadKind, frame.TooBig, 0, frame.TooBig, 0)
	c.Want(3, nil)
	m.IP("link", "set", "eth0", "down")
	if err := w.Write(o); err != nil || o[0].Drop != frame.PortDown || o[6].Drop != frame.PortDown {
		t.Errorf("down: %v, %v, %v", err, o[0].Drop, o[6].Drop)
	}
	m.Up("eth0")
	m.Ready()
	if err := w.Write(o); err != nil || o[0].Drop != 0 || o[6].Drop != 0 { // the first one, too
		t.Errorf("up: %v, %v, %v", err, o[0].Drop, o[6].Drop)
	}
	m.Run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8kbit", "burst", "2000", "limit", "3000")
	many := fake.Outs()
	for range 10 {
		many = append(many, fake.Outs(fake.Ethernet(1514, 0))...)
	}
	if err := w.Write(many); err != nil || many[9].Drop != frame.PortFull {
		t.Errorf("a full queue: %v, %v", err, many[9].Drop)
	}
	m.IP("link", "del", "eth0")
	if err := w.Write(o); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), `port: interface "eth0": it was deleted`) || o[0].Drop != frame.PortDown || o[6].Drop != frame.PortDown {
		t.Errorf("deleted: %v, %v", err, o[0].Drop)
	}
	p.Close()
	if err := w.Write(o); !errors.Is(err, net.ErrClosed) || o[6].Drop != frame.PortDown {
		t.Errorf("closed: %v, %v", err, o[6].Drop)
	}
}

// A queue nobody reads fills up, and what is lost is counted.
func TestPacketStats(t *testing.T) {
	p, _, far := cabled(t, &PacketConfig{RecvBuffer: 20000, SendBuffer: 30000})
	var many [][]byte
	for i := range 200 {
		many = append(many, fake.Ethernet(1000, byte(i)))
	}
	far.Inject("eth0", many...)
	st := p.Stats()
	if st.RecvBuffer != 40000 || st.SendBuffer != 60000 || st.RxOverflow == 0 || st.RxOverflow >= 200 {
		t.Errorf("%+v", st)
	}
	readAll(t, p, 200-int(st.RxOverflow), func(i int, f *frame.Frame) {
		if !bytes.Equal(f.Bytes(), many[i]) {
			t.Errorf("frame %d: %.20x", i, f.Bytes())
		}
	})
	if again := p.Stats(); again != st {
		t.Errorf("%+v, then %+v", st, again)
	}
	p.Close()
	if got, want := p.Stats(), (PacketStats{RxOverflow: st.RxOverflow}); got != want {
		t.Errorf("closed: %+v", got)
	}
}

func TestPacketOpenErrors(t *testing.T) {
	h := netns.New(t).Host("h")
	h.IP("tuntap", "add", "dev", "tun0", "mode", "tun")
	h.IP("link", "add", "veth0", "type", "veth", "peer", "veth1")
	no := errors.New("no")
	for _, c := range []struct {
		name string
		cfg  *PacketConfig
		is   error
		says string
	}{
		{"", nil, nil, `port: interface name "": want 1 to 15 bytes`},
		{"sixteen-bytes-xx", nil, nil, `port: interface name "sixteen-bytes-xx": want`},
		{"none0", nil, syscall.ENODEV, `port: interface "none0": no such device`},
		{"tun0", nil, nil, `port: interface "tun0": not an Ethernet interface`},
		{"lo", nil, nil, `port: interface "lo": not an Ethernet interface`},
		{"veth0", &PacketConfig{Queues: -1}, nil, "PacketConfig.Queues: -1"},
		{"veth0", &PacketConfig{Queues: 257}, nil, "PacketConfig.Queues: 257"},
		{"veth0", &PacketConfig{BusyPoll: time.Second}, nil, "PacketConfig.BusyPoll: 1s"},
		{"veth0", &PacketConfig{RecvBuffer: -1}, nil, "PacketConfig.RecvBuffer: -1"},
		{"veth0", &PacketConfig{SendBuffer: 1 << 30}, nil, "PacketConfig.SendBuffer: 1073741824"},
		{"veth0", &PacketConfig{Namespace: "no-such"}, os.ErrNotExist, `port: interface "veth0": PacketConfig.Namespace "no-such": no such file`},
		{"veth0", &PacketConfig{Control: func(string, string, syscall.RawConn) error { return no }}, no, "PacketConfig.Control: no"},
	} {
		h.Do(func() {
			p, err := OpenPacket(c.name, c.cfg)
			refused(t, p, err, c.says, c.is)
		})
	}
}

func TestPacketWithoutPrivilege(t *testing.T) {
	netns.New(t)
	_, lines := startChild(t, packetJob)
	if want := `true port: interface "lo": needs CAP_NET_RAW: socket: operation not permitted`; !lines.Scan() || lines.Text() != want {
		t.Errorf("\n got %s\nwant %s", lines.Text(), want)
	}
}

// The sockets are set up before they are bound, in the namespace that cfg names, and the
// interface is promiscuous as long as the port is open.
func TestPacketConfig(t *testing.T) {
	n := netns.New(t)
	m, far := n.Host("m"), n.Host("far")
	m.Quiet()
	far.Quiet()
	n.Link(m, "", far, "")
	calls, bound := 0, 0
	p, err := OpenPacket("eth0", &PacketConfig{
		Namespace: m.NS, Promiscuous: true, Queues: 3,
		Control: func(network, address string, c syscall.RawConn) error {
			if calls++; network != "packet" || address != "eth0" {
				t.Errorf("Control: %q, %q", network, address)
			}
			return c.Control(func(fd uintptr) {
				if sa, err := unix.Getsockname(int(fd)); err != nil || sa.(*unix.SockaddrLinklayer).Ifindex != 0 {
					bound++
				}
			})
		},
	})
	must(t, err)
	defer p.Close()
	if calls != 4 || bound != 0 || len(p.Readers()) != 3 {
		t.Errorf("%d calls, %d for a bound socket, %d queues", calls, bound, len(p.Readers()))
	}
	if out := m.IP("-d", "link", "show", "eth0"); !strings.Contains(out, "promiscuity 1") {
		t.Errorf("not promiscuous: %s", out)
	}
	p.Close()
	if out := m.IP("-d", "link", "show", "eth0"); !strings.Contains(out, "promiscuity 0") {
		t.Errorf("promiscuous: %s", out)
	}
	// A second set of sockets on one interface has a group of its own.
	q := openPacket(t, m, "eth0", &PacketConfig{Queues: 2})
	r := openPacket(t, m, "eth0", &PacketConfig{Queues: 2})
	far.Inject("eth0", fake.Ethernet(60, 9))
	for _, p := range []*Packet{q, r} {
		fake.Until(t, "one queue has it", func() bool { return waiting(t, p) == 1 })
	}
}

// waiting returns how many of the queues have something to read.
func waiting(t *testing.T, p *Packet) (n int) {
	t.Helper()
	for i := range p.queues {
		if waitingIn(t, p, i) {
			n++
		}
	}
	return n
}

// waitingIn reports whether a queue has something to read.
func waitingIn(t *testing.T, p *Packet, queue int) (has bool) {
	t.Helper()
	p.queues[queue].Conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if has = n > 0; err != nil {
			t.Error(err)
		}
	})
	return has
}
