package port

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// openTUN opens a TUN inside the host and closes it with the test.
func openTUN(t *testing.T, h *netns.Host, name string, cfg *DeviceConfig) *Device {
	t.Helper()
	return netns.Open(t, h, func() (*Device, error) { return OpenTUN(name, cfg) })
}

// cable writes to each device what is read from the other, until both are closed,
// queue by queue, and reports what was dropped on the way. ok says what a frame must
// be.
func cable(t *testing.T, x, y *Device, ok func(f *frame.Frame) bool) (done chan bool) {
	done = make(chan bool)
	ends := make(chan bool)
	n := 0
	for _, dir := range [][2]*Device{{x, y}, {y, x}} {
		for k, r := range dir[0].Readers() {
			n++
			go func() {
				defer func() { ends <- true }()
				b, w := frame.NewBatch(nil), dir[1].Writer(k)
				var out []frame.Out
				for {
					if err := r.Read(b); err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Errorf("Read: %v", err)
						}
						return
					}
					out = out[:0]
					for i := range b.Frames {
						if f := &b.Frames[i]; f.Drop == 0 && ok(f) {
							out = append(out, frame.Out{F: f})
						} else {
							t.Errorf("a frame of kind %v, %d bytes, drop %v: %.40x", f.Kind, f.Len(), f.Drop, f.Bytes())
						}
					}
					if err := w.Write(out); err != nil && !errors.Is(err, net.ErrClosed) {
						t.Errorf("Write: %v", err)
					}
				}
			}()
		}
	}
	go func() {
		for range n {
			<-ends
		}
		close(done)
	}()
	return done
}

func TestTUNCarriesIP(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	x, y := openTUN(t, a, "tun0", nil), openTUN(t, b, "tun0", &DeviceConfig{Queues: 2})
	if x.MTU(0) != 1500 || x.Name() != "tun0" {
		t.Errorf("MTU %d, name %s", x.MTU(0), x.Name())
	}
	done := cable(t, x, y, func(f *frame.Frame) bool {
		v := f.Bytes()[0] >> 4
		return f.Kind == frame.IPv4 && v == 4 || f.Kind == frame.IPv6 && v == 6
	})
	a.Addr("tun0", "10.9.0.1/24,fd09::1/64")
	b.Addr("tun0", "10.9.0.2/24,fd09::2/64")
	a.Ping("10.9.0.2", 2)
	b.Ping("fd09::1", 2)
	a.Run("ping", "-n", "-c1", "-W2", "-M", "do", "-s", "1472", "10.9.0.2")
	x.Close()
	y.Close()
	<-done
}

func TestTUNRefusesWhatIsNotIP(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	d := openTUN(t, h, "tun0", nil)
	o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0), []byte{0x50, 1, 2}, make([]byte, 0))
	o[1].F.Kind, o[1].Tag = frame.IPv4, 5
	o[2].F.Kind, o[3].F.Kind = frame.IPv4, frame.IPv6
	must(t, d.Writer(0).Write(o))
	fake.WantDrops(t, o, frame.BadKind, frame.BadKind, frame.SendFailed, frame.SendFailed)

	// What a raw socket of the host sends out of the device.
	h.Do(func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		dev, err := net.InterfaceByName("tun0")
		must(t, err)
		for _, first := range []byte{0x45, 0x60, 0x00, 0x50, 0xff} {
			packet := append([]byte{first}, make([]byte, 59)...)
			must(t, unix.Sendto(fd, packet, 0, &unix.SockaddrLinklayer{Ifindex: dev.Index, Protocol: 8}))
		}
	})
	b := frame.NewBatch(nil)
	kinds := []frame.Kind{frame.IPv4, frame.IPv6, frame.IPv4, frame.IPv4, frame.IPv4}
	drops := []frame.Reason{0, 0, frame.BadKind, frame.BadKind, frame.BadKind}
	for got := 0; got < len(kinds); got += len(b.Frames) {
		must(t, d.Readers()[0].Read(b))
		for i := range b.Frames {
			if f := &b.Frames[i]; f.Kind != kinds[got+i] || f.Drop != drops[got+i] || f.Len() != 60 {
				t.Errorf("packet %d: kind %v, drop %v, %d bytes", got+i, f.Kind, f.Drop, f.Len())
			}
		}
	}
}
