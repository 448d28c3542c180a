package netns

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Transfer sends size bytes over TCP to addr, a host and a port of another host, and as many
// others back at the same time. The test fails unless all arrive as they were sent.
func (h *Host) Transfer(to *Host, addr string, size int64) {
	h.t.Helper()
	var l net.Listener
	var c net.Conn
	var err error
	to.Do(func() { l, err = net.Listen("tcp", addr) })
	check.OK(h.t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			h.t.Error(err)
		}
		accepted <- c
	}()
	h.Do(func() { c, err = net.DialTimeout("tcp", l.Addr().String(), 10*time.Second) })
	check.OK(h.t, err)
	s := <-accepted
	type result struct {
		what      string
		sent, got [32]byte
		n         int64
		err       error
	}
	results := make(chan result, 4)
	for i, conn := range []net.Conn{c, s} {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(60 * time.Second))
		random := func(k int) io.Reader {
			return io.LimitReader(rand.NewChaCha8([32]byte{byte(k)}), size)
		}
		go func() {
			_, err := io.Copy(struct{ io.Writer }{conn}, random(i))
			conn.(*net.TCPConn).CloseWrite()
			results <- result{what: "send", err: err}
		}()
		go func() {
			h, want := sha256.New(), sha256.New()
			n, err := io.Copy(h, struct{ io.Reader }{conn})
			io.Copy(want, random(1-i))
			r := result{what: "receive", n: n, err: err}
			h.Sum(r.got[:0])
			want.Sum(r.sent[:0])
			results <- r
		}()
	}
	for range 4 {
		if r := <-results; r.err != nil || r.got != r.sent || r.what == "receive" && r.n != size {
			h.t.Errorf("lab: host %s: %s: %d bytes, %v; data equal: %v", h.Name, r.what, r.n, r.err, r.got == r.sent)
		}
	}
}

// Datagrams returns what sends UDP to addr, a host and a port of another host: so many bytes, in
// segments of seg that the kernel cuts, or as one datagram where seg is 0. The test ends unless
// they arrive as they were sent.
func (h *Host) Datagrams(to *Host, addr string) (send func(n, seg int)) {
	h.t.Helper()
	var server net.PacketConn
	var client net.Conn
	var err error
	to.Do(func() { server, err = net.ListenPacket("udp", addr) })
	check.OK(h.t, err)
	h.t.Cleanup(func() { server.Close() })
	h.Do(func() { client, err = net.Dial("udp", server.LocalAddr().String()) })
	check.OK(h.t, err)
	h.t.Cleanup(func() { client.Close() })
	data, buf := make([]byte, 1<<16), make([]byte, 1<<16)
	rand.NewChaCha8([32]byte{}).Read(data)
	raw, err := client.(syscall.Conn).SyscallConn()
	check.OK(h.t, err)
	return func(n, seg int) {
		h.t.Helper()
		cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, seg) })
		if cerr != nil || err != nil {
			h.t.Fatal(cerr, err)
		}
		if _, err := client.Write(data[:n]); err != nil {
			h.t.Fatal(err)
		}
		if seg == 0 {
			seg = n + 1
		}
		server.SetReadDeadline(time.Now().Add(20 * time.Second))
		for rest := data[:n]; ; rest = rest[seg:] {
			want := rest[:min(seg, len(rest))]
			if got, _, err := server.ReadFrom(buf); err != nil || !bytes.Equal(buf[:got], want) {
				h.t.Fatalf("lab: host %s: datagrams to %s, %d bytes in segments of %d: got %d for %d, %v", h.Name, addr, n, seg, got, len(want), err)
			}
			if len(rest) <= seg {
				return
			}
		}
	}
}

// ChecksumErrors returns the counters of packets with wrong checksums that are not 0, by the
// names that nstat uses.
func (h *Host) ChecksumErrors() map[string]int {
	h.t.Helper()
	m, all := map[string]int{}, 0
	for name, k := range h.Nstat() {
		if strings.HasSuffix(name, "CsumErrors") {
			if all++; k != 0 {
				m[name] = k
			}
		}
	}
	if all < 4 {
		h.t.Fatalf("lab: host %s: %d counters of checksums", h.Name, all)
	}
	return m
}

var echoReply = regexp.MustCompile(`icmp_seq=(\d+) ttl`)

// Pinging sends echo requests, a hundred a second. It returns when the first is answered; stop
// returns how many were sent and how many of these answered, when some more have been.
func (h *Host) Pinging(to string) (stop func() (sent, answered int)) {
	h.t.Helper()
	p := h.Start("ping", "-n", "-i", "0.01", "-W", "5", to)
	p.Want("bytes from")
	return func() (sent, answered int) {
		h.t.Helper()
		answers := func() int { return strings.Count(p.Output(), "bytes from") }
		n := answers()
		h.Until("pings are answered still", func() bool { return answers() > n+5 })
		p.Signal(syscall.SIGINT)
		p.Wait()
		seen := map[int]bool{}
		for _, m := range echoReply.FindAllStringSubmatch(p.Output(), -1) {
			seq, _ := strconv.Atoi(m[1])
			sent, seen[seq] = max(sent, seq), true
		}
		return sent, len(seen)
	}
}
