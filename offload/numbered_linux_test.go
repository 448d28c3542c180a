package offload

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var (
	macA = frame.MAC{2, 0, 0, 0, 0, 0xa}
	macB = frame.MAC{2, 0, 0, 0, 0, 0xb}
)

const (
	numberAt = 14 + 20 + 8     // in a frame of numbered
	innerAt  = 14 + 20 + 8 + 8 // in a tunnel's packet
	portAt   = 14 + 20 + 2     // UDP destination port in either
	oldPort  = 4789            // of tunnels that are listened to
	backlog  = 64 << 20        // bytes, as the kernel counts, that a listener may be behind
)

// numbered returns an IPv4 packet for UDP port 9 from src to dst, with a number as payload.
func numbered(src, dst frame.MAC, n uint64) []byte { return numberedTo(src, dst, 9, n) }

// numberedTo is numbered for another port, below 256.
func numberedTo(src, dst frame.MAC, port uint8, n uint64) []byte {
	b := make([]byte, numberAt+8)
	copy(b, dst[:])
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	copy(b[14:], []byte{0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	sum := uint32(0)
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum+sum>>16))
	copy(b[34:], []byte{0, 9, 0, port, 0, 16, 0, 0})
	binary.BigEndian.PutUint64(b[numberAt:], n)
	return b
}

// numberOf returns the number of a frame to macB, also out of a tunnel's packet to oldPort.
func numberOf(b []byte) (n uint64, ok bool) {
	if udpTo(b) == oldPort && len(b) >= innerAt {
		b = b[innerAt:]
	}
	if len(b) < numberAt+8 || frame.MAC(b) != macB || udpTo(b) != 9 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[numberAt:]), true
}

// udpTo returns the UDP destination port of a frame, 0 if it has none.
func udpTo(b []byte) uint16 {
	if len(b) < numberAt || binary.BigEndian.Uint16(b[12:]) != 0x0800 || b[23] != 17 {
		return 0
	}
	return binary.BigEndian.Uint16(b[portAt:])
}

// A stream is a frame that is sent over and over, with another number each time.
type stream struct {
	frame, number []byte
	to            *unix.SockaddrLinklayer
}

// A sender sends the frames of a stream as fast as it can.
type sender struct {
	sent atomic.Uint64 // the highest number, before it is sent
	now  atomic.Pointer[stream]
}

// startSender starts one in a host, with nothing to send.
func startSender(t *testing.T, h *netns.Host) *sender {
	t.Helper()
	s, fd := &sender{}, 0
	h.Do(func() { fd = check.Must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))(t) })
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		defer unix.Close(fd)
		for {
			select {
			case <-stop:
				return
			default:
			}
			x := s.now.Load()
			if x == nil {
				time.Sleep(100 * time.Microsecond)
				continue
			}
			binary.BigEndian.PutUint64(x.number, s.sent.Add(1))
			_ = unix.Sendto(fd, x.frame, 0, x.to)
		}
	})
	t.Cleanup(func() { close(stop); ended.Wait() })
	return s
}

// A listener has the highest number that came in on a device, and all of them while somebody wants them.
type listener struct {
	fd   int
	last atomic.Uint64
	all  atomic.Pointer[numberSet]
	lost atomic.Uint64 // frames that came too fast
}

func listenOn(t *testing.T, h *netns.Host, dev string) *listener {
	t.Helper()
	l := &listener{}
	h.Do(func() {
		ifi := check.Must(net.InterfaceByName(dev))(t)
		l.fd = check.Must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))(t)
		check.OK(t, unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
		check.OK(t, unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, backlog))
		check.OK(t, unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
		check.OK(t, unix.Bind(l.fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: ifi.Index}))
	})
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		defer unix.Close(l.fd)
		b := make([]byte, 2048)
		for {
			select {
			case <-end:
				return
			default:
			}
			n, _, err := unix.Recvfrom(l.fd, b, 0)
			if err != nil {
				continue
			}
			if x, ok := numberOf(b[:n]); ok {
				l.last.Store(max(x, l.last.Load()))
				if all := l.all.Load(); all != nil {
					all.add(x)
				}
			}
		}
	})
	t.Cleanup(func() { close(end); ended.Wait() })
	return l
}

// upToDate waits until the listener has read what was there when it was called, and reports whether nothing was lost.
func (l *listener) upToDate(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); check.Must(unix.IoctlGetInt(l.fd, unix.SIOCINQ))(t) != 0; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("the listener does not come to an end")
		}
	}
	time.Sleep(100 * time.Microsecond) // for the last one that it has read
	st := check.Must(unix.GetsockoptTpacketStats(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS))(t)
	l.lost.Add(uint64(st.Drops))
}

// A numberSet is the numbers of frames that were seen; as a Tap of a switch, those seen there.
type numberSet struct {
	mu sync.Mutex
	is map[uint64]struct{}
}

func newNumberSet() *numberSet { return &numberSet{is: map[uint64]struct{}{}} }

func (s *numberSet) add(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is[n] = struct{}{}
}

// after returns the numbers above n.
func (s *numberSet) after(n uint64) (list []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.is {
		if x > n {
			list = append(list, x)
		}
	}
	return list
}

func (s *numberSet) has(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.is[n]
	return ok
}

// Frame implements vswitch.Tap.
func (s *numberSet) Frame(_ frame.VNI, _ string, f *frame.Frame) {
	if n, ok := numberOf(f.Bytes()); ok {
		s.add(n)
	}
}
