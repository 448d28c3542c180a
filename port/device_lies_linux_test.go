package port

import (
	"context"
	"maps"
	"math"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/sys"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// fakeDevice is a TAP with a virtio header whose kernel is the other end of a socket: each
// write to it is one packet.
func fakeDevice(t *testing.T) (*Device, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	ours, far := os.NewFile(uintptr(fds[0]), "device"), os.NewFile(uintptr(fds[1]), "kernel")
	t.Cleanup(func() { far.Close() })
	q := &queue{Tun: &sys.Tun{File: ours}}
	if q.Conn, err = ours.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	d := &Device{name: "fake", egress: egress{header: gso.VirtioLen, whole: true}, queues: []*queue{q}, start: time.Now()}
	q.d = d
	q.reader.open(d, q.Conn, q.next)
	d.mtu.Store(1500)
	d.checked.Store(math.MaxInt64) // there is no link to ask
	t.Cleanup(func() { d.Close() })
	return d, far
}

// What a device says of a packet that is not so costs that packet, under a name, and
// nothing behind it.
func TestDeviceThatLies(t *testing.T) {
	d, far := fakeDevice(t)
	pipe := NewPipe(nil)
	sw := switched(t, []uint32{0, 0}, d, pipe)
	stats := func() (tap, out vswitch.PortStats) {
		for _, p := range sw.Stats().Ports {
			switch p.Name {
			case "fake":
				tap = p
			case "pipe":
				out = p
			}
		}
		return tap, out
	}

	s := super(t, tcpSegments(t, 3, 1400)...)
	packet, plain := s.Bytes(), tcpSegments(t, 1, 100)[0]
	good := s.GSO
	good.CsumStart -= frame.Headroom
	good.DataStart -= frame.Headroom
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	sent, want, left := uint64(0), map[frame.Reason]uint64{}, uint64(0)
	for _, tc := range []struct {
		name   string
		lie    func(h *gso.Virtio)
		packet []byte
		drop   frame.Reason
		segs   int // that the host behind the pipe gets
	}{
		{"true", func(h *gso.Virtio) {}, packet, 0, 3},
		{"size 0", func(h *gso.Virtio) { h[4], h[5] = 0, 0 }, packet, frame.BadHeader, 0},
		{"no checksum to finish", func(h *gso.Virtio) { h[0] = 0 }, packet, frame.BadHeader, 0},
		{"TCP over IPv6", func(h *gso.Virtio) { h[1] = byte(frame.GSOTCP6) }, packet, frame.BadHeader, 0},
		{"UDP", func(h *gso.Virtio) { h[1] = byte(frame.GSOUDP) }, packet, frame.BadHeader, 0},
		{"UDP fragments", func(h *gso.Virtio) { h[1] = 3 }, packet, frame.BadHeader, 0},
		{"no type there is", func(h *gso.Virtio) { h[1] = 77 }, packet, frame.BadHeader, 0},
		{"ECN of nothing", func(h *gso.Virtio) { h[1] = byte(frame.GSOECN) }, packet, frame.BadHeader, 0},
		{"sum from the IP header", func(h *gso.Virtio) { h[6] = 14 }, packet, frame.BadHeader, 0},
		{"sum from behind the packet", func(h *gso.Virtio) { h[6], h[7] = 0xff, 0x7f }, packet, frame.BadHeader, 0},
		{"sum from behind the buffer", func(h *gso.Virtio) { h[6], h[7] = 0xff, 0xff }, packet, frame.BadHeader, 0},
		{"checksum elsewhere", func(h *gso.Virtio) { h[8]++ }, packet, frame.BadHeader, 0},
		{"checksum behind the packet", func(h *gso.Virtio) { h[8], h[9] = 0xff, 0xff }, packet, frame.BadHeader, 0},
		{"of a cut packet", func(h *gso.Virtio) {}, packet[:60], frame.BadHeader, 0},
		{"of a packet cut in its headers", func(h *gso.Virtio) {}, packet[:40], frame.BadHeader, 0},
		{"of an empty packet", func(h *gso.Virtio) {}, nil, frame.BadHeader, 0},
		{"plain, checksum at its end", func(h *gso.Virtio) { h[1], h[8], h[9] = 0, byte(len(plain)-34-2), 0 }, plain, 0, 1},
		{"plain, checksum cut by its end", func(h *gso.Virtio) { h[1], h[8], h[9] = 0, byte(len(plain)-34-1), 0 }, plain, frame.BadHeader, 0},
		{"plain, sum from behind it", func(h *gso.Virtio) { h[1], h[6], h[7] = 0, 0xff, 0 }, plain, frame.BadHeader, 0},

		// What is not believed anyway, and what still makes sense.
		{"headers of no length", func(h *gso.Virtio) { h[2], h[3] = 0, 0 }, packet, 0, 3},
		{"headers behind the packet", func(h *gso.Virtio) { h[2], h[3] = 0xff, 0xff }, packet, 0, 3},
		{"size of all of it", func(h *gso.Virtio) { h[4], h[5] = 0xff, 0xff }, plain, 0, 1},
		{"unknown flags", func(h *gso.Virtio) { h[0] |= 0xfe }, packet, 0, 3},
		{"true again", func(h *gso.Virtio) {}, packet, 0, 3},
	} {
		var h gso.Virtio
		h.Put(good)
		tc.lie(&h)
		if _, err := far.Write(append(h[:], tc.packet...)); err != nil {
			t.Fatal(err)
		}
		sent++
		if tc.drop != frame.NotDropped {
			want[tc.drop]++
		} else {
			left++
		}
		for i := range tc.segs {
			if _, err := pipe.Recv(ctx); err != nil {
				t.Fatalf("%s: segment %d: %v", tc.name, i, err)
			}
		}
		var tap, out vswitch.PortStats
		fake.Until(t, tc.name+" is counted", func() bool {
			tap, out = stats()
			return tap.Rx.Frames == sent && tap.Flood.Unknown+tap.RxDrops.Total() == sent && out.Tx.Frames+out.TxDrops.Total() >= left
		})
		if got := maps.Collect(tap.RxDrops.All()); !maps.Equal(got, want) || out.Tx.Frames != left || out.TxDrops.Total() != 0 {
			t.Fatalf("%s: dropped %v, want %v; %d frames left, want %d", tc.name, got, want, out.Tx.Frames, left)
		}
		if drops := sw.Stats().VSIs[0].Drops; drops[frame.BadHeader] != want[frame.BadHeader] {
			t.Fatalf("%s: the segment counts %d", tc.name, drops[frame.BadHeader])
		}
	}
}
