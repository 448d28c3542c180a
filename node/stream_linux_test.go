package node

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stream is datagrams with numbers from one socket to another, not faster than both ends take
// them.
type stream struct {
	t        *testing.T
	from, to *net.UDPConn
	size     int
	sent     atomic.Uint64 // the number of the last datagram, counted before it is sent
	stop     chan struct{}
	ended    sync.WaitGroup

	mu       sync.Mutex
	arrived  []bool // by number
	last     uint64 // highest number that arrived
	count    int
	twice    int
	overtook int
	longest  time.Duration // between two arrivals
}

// window is how much of a stream may be under way: queues and buffers hold several times that.
const window = 1000

// startStream sends rate datagrams of a size a second, evenly, until end, and fewer when they are
// not taken. Both sockets are closed then.
func startStream(t *testing.T, from, to *net.UDPConn, dst netip.AddrPort, size, rate int) *stream {
	t.Helper()
	s := &stream{t: t, from: from, to: to, size: size, stop: make(chan struct{})}
	raw, err := to.SyscallConn()
	must(t, err)
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20) })
	must(t, err)
	s.ended.Go(s.receive)
	s.ended.Go(func() { s.send(dst, rate) })
	t.Cleanup(s.end)
	return s
}

func (s *stream) send(dst netip.AddrPort, rate int) {
	b := make([]byte, s.size)
	for next := time.Now(); ; next = next.Add(time.Second / time.Duration(rate)) {
		select {
		case <-s.stop:
			return
		default:
		}
		now := time.Now()
		if s.sent.Load()-s.highest() > window {
			next = now.Add(time.Millisecond) // as long as what is under way, or lost, is that much
		}
		if late := now.Sub(next); late > 5*time.Millisecond {
			next = now // and make no burst of it
		}
		time.Sleep(next.Sub(now))
		binary.BigEndian.PutUint64(b, s.sent.Add(1))
		if _, err := s.from.WriteToUDPAddrPort(b, dst); errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			s.t.Errorf("datagram %d: %v", s.sent.Load(), err)
			return
		}
	}
}

func (s *stream) receive() {
	b := make([]byte, 2048)
	var at time.Time
	for {
		n, err := s.to.Read(b)
		if err != nil {
			return
		}
		if n != s.size {
			continue
		}
		i, now := binary.BigEndian.Uint64(b), time.Now()
		s.mu.Lock()
		for uint64(len(s.arrived)) <= i {
			s.arrived = append(s.arrived, make([]bool, 4096)...)
		}
		if s.arrived[i] {
			s.twice++
		} else {
			s.count++
		}
		if i < s.last {
			s.overtook++
		}
		if !at.IsZero() {
			s.longest = max(s.longest, now.Sub(at))
		}
		s.arrived[i], s.last, at = true, max(i, s.last), now
		s.mu.Unlock()
	}
}

// highest returns the highest number that has arrived.
func (s *stream) highest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// moves waits until a datagram arrives that is sent from now on.
func (s *stream) moves() {
	s.t.Helper()
	mark := s.sent.Load()
	for end := time.Now().Add(10 * time.Second); s.highest() <= mark; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("nothing arrives: sent %d, arrived up to %d", s.sent.Load(), s.highest())
		}
	}
}

// wantNoneAfter waits, and sees that nothing arrives with a higher number than mark.
func (s *stream) wantNoneAfter(mark uint64) {
	s.t.Helper()
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end) || s.sent.Load() < mark+20; {
		time.Sleep(10 * time.Millisecond)
	}
	if got := s.highest(); got > mark {
		s.t.Errorf("number %d arrived, which was sent after %d", got, mark)
	}
}

// drain stops sending, and waits until what is under way has arrived.
func (s *stream) drain() {
	close(s.stop)
	time.Sleep(10 * time.Millisecond)
	for last, still := -1, 0; still < 10; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		if s.count == last {
			still++
		} else {
			last, still = s.count, 0
		}
		s.mu.Unlock()
		if uint64(last) == s.sent.Load() {
			return
		}
	}
}

// end stops both goroutines.
func (s *stream) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.from.Close()
	s.to.Close()
	s.ended.Wait()
}

// missing returns the numbers that did not arrive, at most n.
func (s *stream) missing(n int) (list []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := uint64(1); i <= s.sent.Load() && len(list) < n; i++ {
		if i >= uint64(len(s.arrived)) || !s.arrived[i] {
			list = append(list, i)
		}
	}
	return list
}
