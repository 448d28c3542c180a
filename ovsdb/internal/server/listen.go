package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Port is the one that IANA has given to OVSDB.
const Port = 6640

// TLSTime is how long a handshake may take.
const TLSTime = 10 * time.Second

// An Addr is where a server listens, or connects to.
type Addr struct {
	Network, Addr string // of package net
	Secure        bool   // with TLS
}

// ParseListen reads punix:PATH, ptcp:[PORT][:IP] or pssl:[PORT][:IP].
func ParseListen(s string) (a Addr, ok bool) {
	kind, rest, _ := strings.Cut(s, ":")
	if kind == "punix" {
		return Addr{Network: "unix", Addr: rest}, rest != ""
	}
	port, ip, given := strings.Cut(rest, ":")
	if !given {
		ip = "0.0.0.0"
	}
	a, ok = addr(ip, port)
	a.Secure = kind == "pssl"
	return a, ok && (a.Secure || kind == "ptcp")
}

// ParseTarget reads tcp:IP[:PORT] or ssl:IP[:PORT].
func ParseTarget(s string) (a Addr, ok bool) {
	kind, rest, _ := strings.Cut(s, ":")
	end := strings.LastIndexByte(rest, ':')
	if end < strings.IndexByte(rest, ']') || end < 0 {
		rest, end = rest+":", len(rest)
	}
	a, ok = addr(rest[:end], rest[end+1:])
	a.Secure = kind == "ssl"
	return a, ok && (a.Secure || kind == "tcp")
}

func addr(ip, port string) (a Addr, ok bool) {
	n := uint64(Port)
	var err error
	if port != "" {
		if n, err = strconv.ParseUint(port, 10, 16); err != nil {
			return a, false
		}
	}
	p, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(ip, "["), "]"))
	return Addr{Network: "tcp", Addr: netip.AddrPortFrom(p, uint16(n)).String()}, err == nil
}

// Dial connects to the address. secure returns the settings of TLS.
func (a *Addr) Dial(ctx context.Context, secure func() (*tls.Config, error)) (net.Conn, error) {
	if !a.Secure {
		return new(net.Dialer).DialContext(ctx, a.Network, a.Addr)
	}
	with, err := secure()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: with}).DialContext(ctx, a.Network, a.Addr)
}

// listen opens a listener. A Unix socket of a program that has ended is replaced.
func (a *Addr) listen() (net.Listener, error) {
	l, err := net.Listen(a.Network, a.Addr)
	if err == nil || a.Network != "unix" {
		return l, err
	}
	if st, e := os.Lstat(a.Addr); e != nil || st.Mode()&fs.ModeSocket == 0 {
		return nil, err
	}
	if c, e := net.DialTimeout("unix", a.Addr, time.Second); e == nil {
		c.Close()
		return nil, err // somebody is there
	}
	if os.Remove(a.Addr) != nil {
		return nil, err
	}
	return net.Listen(a.Network, a.Addr)
}

// Listen opens addresses, and serves whom it accepts until Close. secure is for addresses with TLS. It is called once.
func (s *Server) Listen(addrs []Addr, secure *tls.Config) error {
	var all []net.Listener
	for _, a := range addrs {
		l, err := a.listen()
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return err
		}
		all = append(all, l)
	}
	s.listeners = all
	for i, l := range all {
		var with *tls.Config
		if addrs[i].Secure {
			with = secure
		}
		s.accepting.Go(func() { s.accept(l, with) })
	}
	return nil
}

func (s *Server) accept(l net.Listener, secure *tls.Config) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many files
			if s.failing.due() {
				s.log.Warn("a client of the database was not accepted", "error", err)
			}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		from := "unix"
		if a, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
			from = a.Addr().String()
		}
		if secure != nil {
			conn = tls.Server(conn, secure)
		}
		go s.Serve(conn, from)
	}
}

// greet finishes the handshake of TLS.
func greet(conn net.Conn) error {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), TLSTime)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}

// kill closes a connection. TLS would wait for room to say so.
func kill(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	conn.Close()
}
