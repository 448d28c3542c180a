package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	sinkBuffer = 16 << 20 // bytes, with the kernel's own; a small packet takes some 800
	sinkFirst  = 10 * time.Second
	sinkNap    = 500 * time.Microsecond
	sinkOver   = 100 * time.Millisecond // what another way delays
)

// listen opens a receiver's socket, and says where it is.
func listen(addr string) (*os.File, netip.AddrPort, error) {
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	c, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	local := c.LocalAddr().(*net.UDPAddr).AddrPort()
	f, err := blocking(c)
	if err != nil {
		return nil, local, err
	}
	return f, local, deepen(f)
}

// deepen gives a receiver's socket its buffer, or closes it.
func deepen(f *os.File) (err error) {
	if unix.SetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, sinkBuffer) != nil {
		err = unix.SetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUF, sinkBuffer)
	}
	if err != nil {
		f.Close()
	}
	return err
}

// sink counts packets with a payload of size, which begins at at in a message, until the sender says that it is over, or
// has been silent for a while. It waits 10 s for the first. When it has read all there is it
// naps, and what comes meanwhile waits in the socket: being woken for every packet costs
// more than the packet, and more than most tunnels, and spares who brings them in bunches.
func sink(f *os.File, at, size int, silence time.Duration) (received, error) {
	fd := f.Fd()
	t := newTrain(at + max(size, lastSize))
	var y tally
	limit := time.Duration(0)
	for {
		want := sinkFirst
		switch {
		case y.over:
			want = sinkOver
		case y.Received > 0:
			want = silence
		}
		if want != limit {
			limit = want
			tv := unix.NsecToTimeval(int64(limit))
			if err := unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
				return received{}, fmt.Errorf("SO_RCVTIMEO: %w", err)
			}
		}
		n, e := sys.Recvmmsg(fd, t.msgs[:], unix.MSG_WAITFORONE)
		switch e {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return y.result(), nil
		default:
			return received{}, fmt.Errorf("recvmmsg: %w", e)
		}
		now := time.Now()
		for i := range t.msgs[:n] {
			y.arrive(t.bufs[i][min(at, int(t.msgs[i].Len)):t.msgs[i].Len], now)
		}
		if n < burst {
			nap(sinkNap)
		}
	}
}
