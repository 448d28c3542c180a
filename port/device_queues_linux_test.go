package port

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// udp4 is an Ethernet frame with a UDP datagram over IPv4, without a UDP checksum,
// from 10.9.0.2 and port src to 10.9.0.1.
func udp4(dst frame.MAC, src, port uint16, payload []byte) []byte {
	p := append(dst[:], 0x02, 0, 0, 0, 0, 0xee, 0x08, 0x00)
	ip := make([]byte, 28, 28+len(payload))
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(28+len(payload)))
	copy(ip[12:], []byte{10, 9, 0, 2, 10, 9, 0, 1})
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(ip[20:], src)
	binary.BigEndian.PutUint16(ip[22:], port)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+len(payload)))
	return append(p, append(ip, payload...)...)
}

// listen opens a UDP socket in the host and closes it with the test.
func listen(t *testing.T, h *netns.Host, addr string) net.PacketConn {
	t.Helper()
	return netns.Open(t, h, func() (net.PacketConn, error) { return net.ListenPacket("udp", addr) })
}

// The kernel sends a flow's answers through the queue that wrote the flow, in order.
func TestDeviceQueuesKeepFlowsInOrder(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	const queues, flows, rounds = 4, 16, 200
	d := openTAP(t, h, "tap0", &DeviceConfig{Queues: queues, MAC: frame.MAC{0x02, 0, 0, 0, 0, 0x11}})
	h.Addr("tap0", "10.9.0.1/24")
	h.Neighbour("tap0", "10.9.0.2", "02:00:00:00:00:ee")
	echo := listen(t, h, "10.9.0.1:7000")
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := echo.ReadFrom(buf)
			if err != nil {
				return
			}
			echo.WriteTo(buf[:n], from)
		}
	}()

	if len(d.Readers()) != queues {
		t.Fatalf("%d queues", len(d.Readers()))
	}
	var readers, writers sync.WaitGroup
	var answered [flows]chan bool
	for i := range answered {
		answered[i] = make(chan bool, 1)
	}
	for k, r := range d.Readers() {
		readers.Go(func() {
			b, next := frame.NewBatch(nil), map[uint16]uint32{}
			for {
				if err := r.Read(b); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("queue %d: %v", k, err)
					}
					return
				}
				for i := range b.Frames {
					p := b.Frames[i].Bytes()
					if len(p) < 46 || p[12] != 8 || p[13] != 0 || p[23] != 17 {
						continue
					}
					flow, n := binary.BigEndian.Uint16(p[36:])-7000, binary.BigEndian.Uint32(p[42:])
					if n > 0 { // the kernel notes the queue of a new flow after it has passed on its first frame
						if int(flow)%queues != k {
							t.Errorf("flow %d came in through queue %d", flow, k)
						}
						if next[flow]++; n != next[flow] {
							t.Errorf("flow %d: answer %d, want %d", flow, n, next[flow])
						}
					}
					answered[flow] <- true
				}
			}
		})
	}
	for k := range queues {
		writers.Go(func() {
			w := d.Writer(queues + k) // the number of a worker, any value
			for n := range uint32(rounds) {
				for flow := k; flow < flows; flow += queues {
					o := fake.Outs(udp4(frame.MAC{0x02, 0, 0, 0, 0, 0x11}, 7000+uint16(flow), 7000, binary.BigEndian.AppendUint32(nil, n)))
					if err := w.Write(o); err != nil || o[0].Drop != 0 {
						t.Errorf("flow %d: %v, %v", flow, err, o[0].Drop)
					}
				}
				for flow := k; flow < flows; flow += queues {
					select {
					case <-answered[flow]:
					case <-time.After(10 * time.Second):
						t.Errorf("flow %d: no answer to %d", flow, n)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	d.Close()
	readers.Wait()
}

// flood sends datagrams out of the host to addr until the socket is closed.
func flood(t *testing.T, h *netns.Host, addr string) (done chan bool) {
	t.Helper()
	c := listen(t, h, ":0")
	to, err := net.ResolveUDPAddr("udp", addr)
	must(t, err)
	done = make(chan bool)
	go func() {
		defer close(done)
		for i := uint32(0); ; i++ {
			if _, err := c.WriteTo(binary.BigEndian.AppendUint32(make([]byte, 200), i), to); errors.Is(err, net.ErrClosed) {
				return
			} else if err != nil || i%20 == 0 { // the device is gone, or its queue would be full
				time.Sleep(time.Millisecond)
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
	return done
}

// portDown waits for the event that a port is broken, and returns its error. There is no second one.
func portDown(t *testing.T, events *vswitch.Events) error {
	t.Helper()
	next := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		for {
			if ev, err := events.Next(ctx); err != nil {
				return nil
			} else if ev.Kind == frame.EventPortDown {
				return ev.Err
			}
		}
	}
	down := next(20 * time.Second)
	if again := next(100 * time.Millisecond); again != nil {
		t.Errorf("a second event: %v", again)
	}
	return down
}

// The device is deleted: one event, whatever the number of queues; and the switch goes on.
func TestDeviceDeletedUnderTraffic(t *testing.T) {
	for _, c := range []struct {
		kind   string
		queues int
		open   func(*testing.T, *netns.Host, string, *DeviceConfig) *Device
	}{{"TAP", 1, openTAP}, {"TAP", 4, openTAP}, {"TUN", 1, openTUN}, {"TUN", 3, openTUN}} {
		t.Run(c.kind, func(t *testing.T) {
			h := netns.New(t).Host("h")
			h.Quiet()
			d, host := c.open(t, h, "dev0", &DeviceConfig{Queues: c.queues}), NewPipe(nil)
			h.Addr("dev0", "10.9.0.1/24")
			sw := switched(t, []uint32{0, 0}, d, host)
			events := sw.Events()
			defer events.Close()
			for range 3 {
				flood(t, h, "10.9.0.2:7000")
			}
			if c.kind == "TAP" {
				h.Neighbour("dev0", "10.9.0.2", "02:00:00:00:00:ee")
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if _, err := host.Recv(ctx); err != nil {
					t.Fatalf("no traffic: %v", err)
				}
			}
			h.IP("link", "del", "dev0")
			if err := portDown(t, events); !errors.Is(err, unix.EBADFD) || !strings.Contains(err.Error(), `port: `+c.kind+` "dev0": it was deleted: `) {
				t.Errorf("event %v", err)
			}
			if err := host.Send(fake.Ethernet(60, 0)); err != nil {
				t.Error(err)
			}
			for _, r := range d.Readers() {
				if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Read: %v", err)
				}
			}
		})
	}
}

// Under traffic the device gets another MTU, goes down, moves to another namespace,
// comes up there; the port goes on.
func TestDeviceMovedUnderTraffic(t *testing.T) {
	n := netns.New(t)
	h, far, other := n.Host("h"), n.Host("far"), n.Host("other")
	for _, x := range []*netns.Host{h, far, other} {
		x.Quiet()
	}
	x := openTAP(t, h, "tap0", &DeviceConfig{Queues: 2})
	y := openTAP(t, other, "tap0", &DeviceConfig{Queues: 2, MTU: 1500})
	done := cable(t, x, y, func(f *frame.Frame) bool { return true })
	other.Addr("tap0", "10.9.0.2/24")
	h.Addr("tap0", "10.9.0.1/24")
	flood(t, h, "10.9.0.2:7000")
	flood(t, other, "10.9.0.1:7000")
	h.Ping("10.9.0.2", 1)
	h.MTU("tap0", 1400)
	wantMTU(t, x, 1414)
	h.Ping("10.9.0.2", 1)
	h.IP("link", "set", "tap0", "netns", far.NS)
	far.MTU("tap0", 9000)
	far.Up("tap0")
	far.Addr("tap0", "10.9.0.1/24")
	far.Ping("10.9.0.2", 3)
	wantMTU(t, x, 9014)
	x.Close()
	y.Close()
	<-done
	if has(t, far, "tap0") {
		t.Error("the device is still there")
	}
}

// wantMTU waits until the port has noticed the MTU of its device. There is traffic.
func wantMTU(t *testing.T, d *Device, want int) {
	t.Helper()
	fake.Until(t, fmt.Sprintf("MTU %d", want), func() bool { return d.MTU(0) == want })
}
