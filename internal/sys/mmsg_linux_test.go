package sys

import (
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func udp(t *testing.T) (*net.UDPConn, frame.Endpoint) {
	t.Helper()
	c := check.Must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	t.Cleanup(func() { c.Close() })
	e := check.Must(frame.EndpointFrom(c.LocalAddr().(*net.UDPAddr).AddrPort()))(t)
	return c, e
}

func control(t *testing.T, c *net.UDPConn, f func(fd uintptr)) {
	t.Helper()
	raw := check.Must(c.SyscallConn())(t)
	check.OK(t, raw.Control(f))
}

func TestSendReceive(t *testing.T) {
	a, ea := udp(t)
	b, eb := udp(t)
	var sa Sockaddr
	var msgs [3]Mmsghdr
	var iov [3]unix.Iovec
	payload := []byte("abc")
	for i := range msgs {
		iov[i].Base = &payload[i]
		iov[i].SetLen(1)
		h := &msgs[i].Hdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&sa)), PutSockaddr(&sa, &eb, true)
		h.Iov = &iov[i]
		h.SetIovlen(1)
	}
	control(t, a, func(fd uintptr) {
		if n, e := Sendmmsg(fd, msgs[:], 0); n != 3 || e != 0 {
			t.Errorf("sendmmsg: %d, %v", n, e)
		}
		if n, e := Sendmmsg(fd, nil, 0); n != 0 || e != 0 {
			t.Errorf("nothing: %d, %v", n, e)
		}
	})
	in := make([]byte, 3)
	for i := range msgs {
		iov[i].Base = &in[i]
		msgs[i].Hdr.Namelen = uint32(unsafe.Sizeof(sa))
	}
	control(t, b, func(fd uintptr) {
		if n, e := Recvmmsg(fd, msgs[:], unix.MSG_DONTWAIT); n != 3 || e != 0 || string(in) != "abc" {
			t.Errorf("recvmmsg: %d, %v, %q", n, e, in)
		}
		if from, ok := Endpoint(&sa, msgs[2].Hdr.Namelen); !ok || from != ea {
			t.Errorf("from %v", from)
		}
		if _, e := Recvmmsg(fd, msgs[:], unix.MSG_DONTWAIT); e != unix.EAGAIN {
			t.Errorf("empty: %v", e)
		}
		if n, ok := Drops(fd); !ok || n != 0 {
			t.Errorf("drops %d %v", n, ok)
		}
	})
}

func TestErrorQueue(t *testing.T) {
	a, _ := udp(t)
	gone, dead := udp(t)
	gone.Close()
	q := NewErrorQueue()
	control(t, a, func(fd uintptr) {
		check.OK(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1))
	})
	sent := 0
	send := func() {
		for range 20 {
			for {
				if _, err := a.WriteToUDPAddrPort([]byte("payload"), netip.AddrPortFrom(dead.AddrPort().Addr(), dead.Port)); err == nil {
					break
				}
			}
			sent++
		}
		time.Sleep(20 * time.Millisecond) // a busy machine answers later
	}
	send()
	control(t, a, func(fd uintptr) {
		n := 0
		each := func(e *QueuedError) {
			n++
			if e.Errno != unix.ECONNREFUSED || e.Origin != unix.SO_EE_ORIGIN_ICMP || e.Type != 3 || e.Code != 3 ||
				e.Dst != dead || string(e.Quoted) != "payload" {
				t.Errorf("%+v", *e)
			}
		}
		// The kernel answers with a limited rate, which the whole machine shares.
		first, more := q.Drain(fd, 3, each), q.Drain(fd, 100, each)
		for end := time.Now().Add(5 * time.Second); more == 0 && time.Now().Before(end); {
			send()
			first, more = q.Drain(fd, 3, each), q.Drain(fd, 100, each)
		}
		if first != 3 || more < 1 || n > sent {
			t.Errorf("%d entries, want 3, and %d more of %d", first, more, sent)
		}
		if got := q.Drain(fd, 100, each); got != 0 {
			t.Errorf("%d entries of an empty queue", got)
		}
		if v, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); v != 0 {
			t.Errorf("error %d still pending", v)
		}
	})
	if n := testing.AllocsPerRun(10, func() { q.Drain(^uintptr(0), 1, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDiscard(t *testing.T) {
	a, to := udp(t)
	for range 3 {
		check.Must(a.WriteToUDPAddrPort([]byte("stray"), to.AddrPort()))(t)
	}
	control(t, a, func(fd uintptr) {
		for range 2 {
			Discard(fd)
			if _, _, err := unix.Recvfrom(int(fd), make([]byte, 9), unix.MSG_DONTWAIT); err != unix.EAGAIN {
				t.Errorf("something is left: %v", err)
			}
		}
	})
}
