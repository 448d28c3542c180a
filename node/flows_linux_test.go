package node

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// patience is how long a flow that should pass may take, and one that should not is waited
// for.
func patience(want bool) time.Duration {
	if want {
		return 5 * time.Second
	}
	return 150 * time.Millisecond
}

// wantTCP tries a connection to a port of another host, which carries data both ways or
// does not.
func wantTCP(t *testing.T, from, to *netns.Host, addr string, port int, want bool) {
	t.Helper()
	if got := tcp(t, from, to, addr, port, patience(want)); got != want {
		t.Errorf("TCP from %s to %s port %d: %v, want %v", from.Name, addr, port, got, want)
	}
}

func tcp(t *testing.T, from, to *netns.Host, addr string, port int, wait time.Duration) (ok bool) {
	t.Helper()
	at := net.JoinHostPort(addr, strconv.Itoa(port))
	ln := netns.Open(t, to, func() (net.Listener, error) { return net.Listen("tcp", at) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	defer func() { ln.Close(); <-done }()
	var c net.Conn
	var err error
	from.Do(func() { c, err = net.DialTimeout("tcp", at, wait) })
	if err != nil {
		return false
	}
	defer c.Close()
	return echoed(t, c, wait)
}

// wantUDP sends a datagram to a port of another host, which answers or never hears of it.
func wantUDP(t *testing.T, from, to *netns.Host, addr string, port int, want bool) {
	t.Helper()
	if got := udp(t, from, to, addr, port, patience(want)); got != want {
		t.Errorf("UDP from %s to %s port %d: %v, want %v", from.Name, addr, port, got, want)
	}
}

func udp(t *testing.T, from, to *netns.Host, addr string, port int, wait time.Duration) (ok bool) {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(port))
	server := udpSocket(t, to, at)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64)
		for {
			n, src, err := server.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort(b[:n], src)
		}
	}()
	defer func() { server.Close(); <-done }()
	c := netns.Open(t, from, func() (net.Conn, error) { return net.Dial("udp", at.String()) })
	return echoed(t, c, wait)
}

// udpSocket opens one in a host.
func udpSocket(t *testing.T, h *netns.Host, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	return netns.Open(t, h, func() (*net.UDPConn, error) { return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) })
}

func echoed(t *testing.T, c net.Conn, wait time.Duration) bool {
	t.Helper()
	c.SetDeadline(time.Now().Add(wait))
	const text = "is it there?"
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Logf("%v", err)
	}
	return err == nil && string(b) == text
}

// wantPing pings once.
func wantPing(t *testing.T, from *netns.Host, addr string, want bool) {
	t.Helper()
	wait := strconv.FormatFloat(patience(want).Seconds(), 'f', -1, 64)
	if out, err := from.Try(t.Context(), "ping", "-n", "-c", "1", "-W", wait, addr); (err == nil) != want {
		t.Errorf("%s pings %s: want %v, got\n%s", from.Name, addr, want, out)
	}
}
