package chaos

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A stream is numbered datagrams from a socket of one host to one of another, some thousand
// a second, until it is stopped.
type stream struct {
	t       *testing.T
	from    *net.UDPConn
	to      netip.AddrPort
	stopped chan struct{}
	wg      sync.WaitGroup

	sent    atomic.Uint64 // taken by the host's stack
	refused atomic.Uint64 // not taken

	mu     sync.Mutex
	seen   map[uint64]bool
	copies uint64 // that arrived beyond the first
	bad    uint64 // that arrived as something else
	late   uint64 // that arrived behind one with a higher number
	last   uint64
}

const streamPort = 9000

// newStream starts a stream between two hosts' addresses.
func newStream(t *testing.T, a *netns.Host, from string, b *netns.Host, to string) *stream {
	t.Helper()
	s := &stream{t: t, stopped: make(chan struct{}), seen: map[uint64]bool{}}
	s.to = netip.AddrPortFrom(netip.MustParseAddr(to), streamPort)
	s.from = udpSocket(t, a, netip.AddrPortFrom(netip.MustParseAddr(from), 0))
	sink := udpSocket(t, b, s.to)
	s.wg.Go(s.send)
	received := make(chan struct{})
	go func() {
		defer close(received)
		s.receive(sink)
	}()
	t.Cleanup(func() {
		s.stop()
		s.from.Close()
		sink.Close()
		<-received
	})
	return s
}

// udpSocket opens a socket in a host with room for everything.
func udpSocket(t *testing.T, h *netns.Host, at netip.AddrPort) (c *net.UDPConn) {
	t.Helper()
	var err error
	h.Do(func() { c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) })
	check.OK(t, err)
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
		})
	}
	check.OK(t, err)
	return c
}

const streamSize = 200

func (s *stream) send() {
	b := make([]byte, streamSize)
	for {
		select {
		case <-s.stopped:
			return
		case <-time.After(time.Millisecond):
		}
		n := s.sent.Load() + 1
		binary.BigEndian.PutUint64(b, n)
		for i := 16; i < len(b); i++ {
			b[i] = byte(uint64(i) * n)
		}
		binary.BigEndian.PutUint64(b[8:], sum(b))
		if _, err := s.from.WriteToUDPAddrPort(b, s.to); err != nil {
			s.refused.Add(1)
			continue
		}
		s.sent.Add(1)
	}
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:8])
	h.Write(b[16:])
	return h.Sum64()
}

func (s *stream) receive(c *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, _, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		switch k := binary.BigEndian.Uint64(b); {
		case n != streamSize || binary.BigEndian.Uint64(b[8:]) != sum(b[:n]):
			s.bad++
		case s.seen[k]:
			s.copies++
		default:
			if s.seen[k] = true; k < s.last {
				s.late++
			}
			s.last = max(s.last, k)
		}
		s.mu.Unlock()
	}
}

// got returns how many have arrived, copies and garbage included.
func (s *stream) got() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen) + int(s.copies+s.bad)
}

// since returns how many with a number above n have arrived.
func (s *stream) since(n uint64) (k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.seen {
		if i > n {
			k++
		}
	}
	return k
}

// stop ends sending.
func (s *stream) stop() {
	select {
	case <-s.stopped:
	default:
		close(s.stopped)
	}
	s.wg.Wait()
}

// suffer leaves streams to what has befallen them for 300 ms, and until each has tried to
// send 200 datagrams: on a busy machine that takes longer.
func suffer(t *testing.T, ss ...*stream) {
	t.Helper()
	tried := func(s *stream) uint64 { return s.sent.Load() + s.refused.Load() }
	var from []uint64
	for _, s := range ss {
		from = append(from, tried(s))
	}
	time.Sleep(300 * time.Millisecond)
	end := time.Now().Add(netns.Timeout)
	for i, s := range ss {
		for ; tried(s) < from[i]+200; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("to %v: %d datagrams tried", s.to, tried(s)-from[i])
			}
		}
	}
}

// flows wants datagrams that are sent from now on to arrive within limit.
func flows(t *testing.T, limit time.Duration, ss ...*stream) {
	t.Helper()
	start := time.Now()
	for _, s := range ss {
		n := s.sent.Load()
		for s.since(n) < 20 {
			if d := time.Since(start); d > limit+5*time.Second {
				t.Fatalf("to %v: %d datagrams of %d since %v ago", s.to, s.since(n), s.sent.Load()-n, d)
			}
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(start); d > limit {
			t.Errorf("to %v: datagrams flow only after %v", s.to, d)
		}
	}
	t.Logf("flows after %v", time.Since(start).Round(time.Millisecond))
}

// quiet waits until nothing has arrived for 200 ms: on a busy machine a frame may be as long
// on its way through our end.
func quiet(ss ...*stream) {
	for last, still := -1, 0; still < 4; time.Sleep(50 * time.Millisecond) {
		n := 0
		for _, s := range ss {
			n += s.got()
		}
		if still++; n != last {
			last, still = n, 0
		}
	}
}
