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
// for: longer than a SYN takes to be repeated (1 s).
const patience = 300 * time.Millisecond

// tcp reports whether a connection to a port of another host is made, and carries data both
// ways.
func tcp(t *testing.T, from, to *netns.Host, addr string, port int) (ok bool) {
	t.Helper()
	at := net.JoinHostPort(addr, strconv.Itoa(port))
	var ln net.Listener
	var err error
	to.Do(func() { ln, err = net.Listen("tcp", at) })
	if err != nil {
		t.Fatal(err)
	}
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
	from.Do(func() { c, err = net.DialTimeout("tcp", at, patience) })
	if err != nil {
		return false
	}
	defer c.Close()
	return echoed(t, c)
}

// udp reports whether a datagram to a port of another host is answered.
func udp(t *testing.T, from, to *netns.Host, addr string, port int) (ok bool) {
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
	var c *net.UDPConn
	var err error
	from.Do(func() { c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at)) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return echoed(t, c)
}

// udpSocket opens one in a host.
func udpSocket(t *testing.T, h *netns.Host, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	var err error
	h.Do(func() { c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func echoed(t *testing.T, c net.Conn) bool {
	t.Helper()
	c.SetDeadline(time.Now().Add(patience))
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

// icmp reports whether a ping is answered.
func icmp(t *testing.T, from *netns.Host, addr string) bool {
	t.Helper()
	_, err := from.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", addr)
	return err == nil
}
