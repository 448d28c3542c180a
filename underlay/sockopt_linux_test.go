package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

func TestUDPStatsBuffers(t *testing.T) {
	u := listen(t, "127.0.0.1:0", &UDPConfig{RecvBuffer: 100_000, SendBuffer: 50_000})
	st := u.Stats()
	if st.RecvBuffer != 200_000 || st.SendBuffer != 100_000 {
		t.Errorf("buffers %d, %d", st.RecvBuffer, st.SendBuffer)
	}
	if u.MTU() < 1500 || u.readers[0].u.cfg.MaxDatagram != maxMax {
		t.Errorf("MTU %d, MaxDatagram %d", u.MTU(), u.readers[0].u.cfg.MaxDatagram)
	}
}

func sockopt(t *testing.T, s *sock, level, name int) int {
	t.Helper()
	v := -1
	must(t, s.raw.Control(func(fd uintptr) { v, _ = unix.GetsockoptInt(int(fd), level, name) }))
	return v
}

func TestUDPChecksumModes(t *testing.T) {
	for _, tc := range []struct {
		mode   Checksum
		v4, v6 int
	}{{ChecksumAuto, 1, 0}, {ChecksumOn, 0, 0}, {ChecksumOff, 1, 1}} {
		u := listen(t, "127.0.0.1:0", &UDPConfig{Checksum: tc.mode})
		if v := sockopt(t, txSocksOf(u, u.sets.Get(0).lone)[0].sock, unix.SOL_SOCKET, unix.SO_NO_CHECK); v != tc.v4 {
			t.Errorf("mode %d: SO_NO_CHECK %d", tc.mode, v)
		}
		u = listen(t, "[::1]:0", &UDPConfig{Checksum: tc.mode})
		if v := sockopt(t, txSocksOf(u, u.sets.Get(0).lone)[0].sock, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX); v != tc.v6 {
			t.Errorf("mode %d: UDP_NO_CHECK6_TX %d", tc.mode, v)
		}
	}
}

// Without a checksum over IPv6 a datagram arrives only where that is allowed.
func TestUDPZeroChecksum6(t *testing.T) {
	a := listen(t, "[::1]:0", &UDPConfig{Checksum: ChecksumOff})
	b, c := listen(t, "[::1]:0", &UDPConfig{ZeroChecksum6RX: true}), listen(t, "[::1]:0", nil)
	send(t, a, to("x", 0, endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr())))
	receive(t, b, 1)
	quiet(t, c)
}

func TestUDPControlSeesEverySocket(t *testing.T) {
	n := 0
	u := listen(t, "127.0.0.1:0", &UDPConfig{Queues: 2, Control: func(network, address string, c syscall.RawConn) error {
		n++
		if network != "udp4" || !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("%s %s", network, address)
		}
		return c.Control(func(fd uintptr) {
			sa, err := unix.Getsockname(int(fd))
			if sa4, ok := sa.(*unix.SockaddrInet4); err != nil || !ok || sa4.Port != 0 {
				t.Error("already bound")
			}
		})
	}})
	if n != 2+16 {
		t.Errorf("%d calls", n)
	}
	send(t, u, frame.Datagram{To: []frame.Endpoint{endpoint(t, u.LocalAddr())}})
	if n != 2+32 {
		t.Errorf("%d calls after the first datagram without DF", n)
	}
}

func TestUDPSmallRange(t *testing.T) {
	for _, r := range []PortRange{{45000, 45000}, {45001, 45003}, {65530, 65535}} {
		u := listen(t, "127.0.0.3:0", &UDPConfig{SrcPorts: r})
		if n := int(r.Hi-r.Lo) + 1; len(txSocksOf(u, 0)) != n {
			t.Errorf("%v: %d ports", r, len(txSocksOf(u, 0)))
		}
		send(t, u, to("x", 65535, endpoint(t, u.LocalAddr())), to("y", 0, endpoint(t, u.LocalAddr())))
		receive(t, u, 2)
		if _, err := ListenUDP(netip.MustParseAddrPort("127.0.0.3:0"), &UDPConfig{SrcPorts: r}); !errors.Is(err, syscall.EADDRINUSE) ||
			!strings.Contains(err.Error(), "UDPConfig.SrcPorts") {
			t.Errorf("second: %v", err)
		}
	}
}

// Strays to a transmit socket's port fill no buffer.
func TestUDPTransmitSocketsTakeNothing(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	send(t, b, to("stray", 0, endpoint(t, a.LocalAddr()).WithPort(txPort(a, 3))))
	n := -1
	_ = txSocksOf(a, 0)[3].raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	if n != 0 {
		t.Errorf("%d bytes wait", n)
	}
}

// When the sockets without DF cannot be had, only datagrams without DF are lost.
func TestUDPPlainSocketsRefused(t *testing.T) {
	n := 0
	u := listen(t, "127.0.0.1:0", &UDPConfig{Control: func(string, string, syscall.RawConn) error {
		if n++; n > 1+16+3 {
			return errors.New("no more")
		}
		return nil
	}})
	self := endpoint(t, u.LocalAddr())
	for range 2 {
		ds := []frame.Datagram{{To: []frame.Endpoint{self}}, to("x", 0, self)}
		send(t, u, ds...)
		if ds[0].Lost != 1 || ds[0].Drop != frame.SendFailed || ds[1].Lost != 0 {
			t.Errorf("%+v", ds)
		}
	}
	receive(t, u, 2)
	if n != 1+16+4 {
		t.Errorf("%d sockets were tried", n)
	}
}

// When the sockets for runs cannot be had, as in a process without a descriptor left, runs
// leave as single datagrams through those that are open.
func TestUDPRunsWithoutSockets(t *testing.T) {
	n, closed := 0, false
	u := listen(t, "127.0.0.1:0", &UDPConfig{Control: func(string, string, syscall.RawConn) error {
		if n++; closed {
			return syscall.EMFILE
		}
		return nil
	}})
	closed = true
	self := endpoint(t, u.LocalAddr())
	for range 2 {
		r, want := runOf(40, 10, 4, 7, self)
		send(t, u, r, to("x", 7, self))
		if r.Lost != 0 || u.Stats().Lost() != 0 {
			t.Fatalf("lost %d, %v: %+v", r.Lost, r.Drop, u.Stats())
		}
		got := receive(t, u, len(want)+1)
		for i, w := range append(want, "x") {
			if g := got[i].Payload; g != w {
				t.Errorf("datagram %d is %q, want %q", i, g, w)
			}
		}
	}
	if st := u.Stats(); st.TxRuns != 0 || st.TxDatagrams != 10 || n != 1+16+1 {
		t.Errorf("%d sockets were tried, %+v", n, st)
	}
}
