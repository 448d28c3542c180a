package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

func listen(t testing.TB, local string, cfg *UDPConfig) *UDP {
	t.Helper()
	u, err := ListenUDP(netip.MustParseAddrPort(local), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func families(t *testing.T, f func(t *testing.T, a, b string)) {
	t.Run("IPv4", func(t *testing.T) { f(t, "127.0.0.1:0", "127.0.0.2:0") })
	t.Run("IPv6", func(t *testing.T) { f(t, "[::1]:0", "[::1]:0") })
}

func TestUDPEndToEnd(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		a, b := listen(t, la, nil), listen(t, lb, nil)
		ea, eb := endpoint(t, a.LocalAddr()), endpoint(t, b.LocalAddr())
		send(t, a,
			frame.Datagram{Parts: [][]byte{[]byte("he"), nil, []byte("llo")}, To: []frame.Endpoint{eb}, TOS: 0xb9, TTL: 7, DF: true},
			frame.Datagram{To: []frame.Endpoint{eb}, DF: true},
			frame.Datagram{Parts: [][]byte{[]byte("plain")}, To: []frame.Endpoint{eb}, TOS: 0x02},
		)
		rs := receive(t, b, 3)
		for i, want := range []struct {
			payload  string
			tos, ttl uint8
		}{{"hello", 0xb9, 7}, {"", 0, 64}, {"plain", 2, 64}} {
			r := rs[i]
			if r.payload != want.payload || r.outer.TOS != want.tos || r.outer.TTL != want.ttl || r.drop != 0 {
				t.Errorf("datagram %d: %+v, want %+v", i, r, want)
			}
			if r.outer.Src.Host() != ea.Host() || r.outer.Dst != eb {
				t.Errorf("datagram %d: %v > %v, want %v > %v", i, r.outer.Src, r.outer.Dst, ea.Host(), eb)
			}
			if r.outer.If == 0 {
				t.Error("no interface")
			}
			if p := r.outer.Src.Port; p < 49152 {
				t.Errorf("source port %d", p)
			}
		}
		if rs[0].outer.Src.Port != rs[2].outer.Src.Port {
			t.Error("a flow changed its source port with DF")
		}
		// And the answer, which goes to the VTEP port, not to where this came from.
		send(t, b, frame.Datagram{Parts: [][]byte{[]byte("back")}, To: []frame.Endpoint{ea}, TOS: 1, TTL: 255, DF: true})
		if r := receive(t, a, 1)[0]; r.payload != "back" || r.outer.TOS != 1 || r.outer.TTL != 255 {
			t.Errorf("answer: %+v", r)
		}
		if st := a.Stats(); st.TxDatagrams != 3 || st.RxDatagrams != 1 || st.Lost() != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestUDPFlowKeepsItsPort(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		a, b := listen(t, la, &UDPConfig{SrcPorts: PortRange{40000, 47999}}), listen(t, lb, nil)
		eb := endpoint(t, b.LocalAddr())
		var ds []frame.Datagram
		for round := range 2 {
			for flow := range 256 {
				ds = append(ds, to(fmt.Sprint(round, flow), uint16(flow<<8), eb))
			}
		}
		port := make(map[string]uint16)
		seen := make(map[uint16]bool)
		for ; len(ds) > 0; ds = ds[64:] {
			send(t, a, ds[:64]...)
			for _, r := range receive(t, b, 64) {
				flow := strings.Fields(r.payload)[1]
				if p, ok := port[flow]; ok && p != r.outer.Src.Port {
					t.Fatalf("flow %s: ports %d and %d", flow, p, r.outer.Src.Port)
				}
				port[flow] = r.outer.Src.Port
				seen[r.outer.Src.Port] = true
			}
		}
		if len(seen) != 16 {
			t.Errorf("%d source ports, want 16", len(seen))
		}
		slots := make(map[int]bool)
		for p := range seen {
			if p < 40000 || p > 47999 {
				t.Errorf("source port %d", p)
			}
			slots[(int(p)-40000)/500] = true
		}
		if len(slots) != 16 {
			t.Errorf("ports in %d sixteenths of the range", len(slots))
		}
	})
}

func TestUDPOrderWithinFlows(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.2:0", nil)
	eb := endpoint(t, b.LocalAddr())
	var ds []frame.Datagram
	for i := range 300 {
		ds = append(ds, to(fmt.Sprint(i), uint16(i*7919), eb))
	}
	send(t, a, ds...)
	last := make(map[uint16]int)
	for _, r := range receive(t, b, 300) {
		var i int
		fmt.Sscan(r.payload, &i)
		if l, ok := last[r.outer.Src.Port]; ok && l > i {
			t.Fatalf("%d after %d", i, l)
		}
		last[r.outer.Src.Port] = i
	}
}

// One datagram to a thousand endpoints is one Send, and few system calls.
func TestUDPReplicate(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		a := listen(t, la, nil)
		b, c := listen(t, lb, nil), listen(t, lb, nil)
		eps := []frame.Endpoint{endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr())}
		d := frame.Datagram{Parts: [][]byte{make([]byte, 8), []byte("payload")}, DF: true}
		for i := range 1000 {
			d.To = append(d.To, eps[i%2])
		}
		ds := []frame.Datagram{d}
		send(t, a, ds...)
		if ds[0].Lost != 0 {
			t.Errorf("lost %d: %v", ds[0].Lost, ds[0].Drop)
		}
		receive(t, b, 500)
		receive(t, c, 500)
		st := a.Stats()
		if st.TxDatagrams != 1000 || st.TxCalls > 8 {
			t.Errorf("%d datagrams in %d calls", st.TxDatagrams, st.TxCalls)
		}
	})
}

// The ICMP error about a closed port fails the next send on that socket, whoever it
// is for. It must not cost a healthy peer anything.
func TestUDPDeadPeerCostsOthersNothing(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		a, b := listen(t, la, nil), listen(t, lb, nil)
		gone := listen(t, lb, nil)
		eb, dead := endpoint(t, b.LocalAddr()), endpoint(t, gone.LocalAddr())
		gone.Close()
		var other frame.Endpoint // of the wrong family
		if a.Is4() {
			other = endpoint(t, netip.MustParseAddrPort("[::1]:9"))
		} else {
			other = endpoint(t, netip.MustParseAddrPort("127.0.0.1:9"))
		}
		const rounds = 50
		var ds []frame.Datagram
		for i := range rounds {
			ds = append(ds, to(fmt.Sprint(i), 0, dead, eb, dead, other, eb))
		}
		send(t, a, ds...)
		for i, r := range receive(t, b, 2*rounds) {
			if r.payload != fmt.Sprint(i/2) {
				t.Fatalf("datagram %d is %q", i, r.payload)
			}
		}
		for i := range ds {
			if ds[i].Lost < 1 || ds[i].Lost > 3 || ds[i].Drop != frame.Unreachable {
				t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		st := a.Stats()
		if st.Errors.Refused == 0 || st.TxRetries == 0 {
			t.Errorf("no error was queued: %+v", st)
		}
		quiet(t, b)
	})
}

func TestUDPLost(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	eb := endpoint(t, b.LocalAddr())
	ds := []frame.Datagram{
		to(strings.Repeat("x", 65508), 1, eb), // above what UDP can carry
		to("one", 1, eb),
		to("port 0", 1, eb.WithPort(0)),
		to("two", 1, eb),
		{Parts: make([][]byte, 1025), To: []frame.Endpoint{eb}, Flow: 1, DF: true},
		to("three", 1, eb),
	}
	send(t, a, ds...)
	for i, want := range []frame.Reason{frame.TooBig, 0, frame.Unreachable, 0, frame.SendFailed, 0} {
		if ds[i].Drop != want || (ds[i].Lost != 0) != (want != 0) {
			t.Errorf("datagram %d: lost %d, %v, want %v", i, ds[i].Lost, ds[i].Drop, want)
		}
	}
	for i, r := range receive(t, b, 3) {
		if want := []string{"one", "two", "three"}[i]; r.payload != want {
			t.Errorf("%q, want %q", r.payload, want)
		}
	}
	if st := a.Stats(); st.TxLost[frame.TooBig] != 1 || st.Lost() != 3 {
		t.Errorf("stats %+v", st)
	}
}

// A run is sent as the datagrams it stands for, wherever its parts end.
func TestUDPRunIsSplit(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	d := frame.Datagram{
		Parts: [][]byte{[]byte("ab"), []byte("cdefg"), nil, []byte("h"), []byte("ijk")},
		Seg:   3, To: []frame.Endpoint{endpoint(t, b.LocalAddr())}, DF: true,
	}
	send(t, a, d)
	var s []string
	for _, r := range receive(t, b, 4) {
		s = append(s, r.payload)
	}
	if !slices.Equal(s, []string{"abc", "def", "ghi", "jk"}) {
		t.Errorf("%q", s)
	}
}

func TestUDPTruncated(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{MaxDatagram: 100})
	eb := endpoint(t, b.LocalAddr())
	send(t, a, to(strings.Repeat("x", 100), 0, eb), to(strings.Repeat("y", 101), 0, eb), to("z", 0, eb))
	rs := receive(t, b, 3)
	if rs[0].drop != 0 || rs[1].drop != frame.TooBig || rs[2].drop != 0 {
		t.Errorf("drops %v %v %v", rs[0].drop, rs[1].drop, rs[2].drop)
	}
	if st := b.Stats(); st.RxTruncated != 1 {
		t.Errorf("stats %+v", st)
	}
}

// What does not fit the receive buffer is counted, exactly.
func TestUDPOverflowIsCounted(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{RecvBuffer: 4096})
	ds := make([]frame.Datagram, 64)
	for i := range ds {
		ds[i] = to(strings.Repeat("x", 1000), 0, endpoint(t, b.LocalAddr()))
	}
	for range 4 {
		send(t, a, ds...)
	}
	sent := a.Stats().TxDatagrams
	over := b.Stats().RxOverflow
	if over == 0 || sent != 256 {
		t.Fatalf("%d sent, %d overflowed", sent, over)
	}
	receive(t, b, int(sent-over))
	send(t, a, ds[0]) // carries the counter too, and must not count it twice
	receive(t, b, 1)
	if got := b.Stats().RxOverflow; got != over {
		t.Errorf("overflow %d, then %d", over, got)
	}
}

func TestDropCounterWraps(t *testing.T) {
	var d dropCounter
	for _, v := range []uint32{0, 5, 3, 5, 1 << 30, 2 << 30, 3 << 30, 1<<32 - 1, 1 << 29} {
		d.seen(v)
	}
	if want := uint64(1<<32 + 1<<29); d.total() != want {
		t.Errorf("%d, want %d", d.total(), want)
	}
}

func TestUDPClose(t *testing.T) {
	u := listen(t, "127.0.0.1:0", &UDPConfig{Queues: 3})
	var wg sync.WaitGroup
	for _, r := range u.Readers() {
		wg.Go(func() {
			if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
		})
	}
	s := u.Sender(0)
	time.Sleep(10 * time.Millisecond)
	for range 2 {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	ep := endpoint(t, u.LocalAddr())
	ds := []frame.Datagram{to("x", 0, ep, ep), {To: []frame.Endpoint{ep}}}
	if err := s.Send(ds); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
	if ds[0].Lost != 2 || ds[0].Drop != frame.PortDown || ds[1].Lost != 1 || ds[1].Drop != frame.PortDown {
		t.Errorf("%+v", ds)
	}
	if err := u.Readers()[0].Read(frame.NewBatch(nil)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	u.Pause()
	u.Resume()
	u.Stats()
}

func TestUDPPause(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	eb := endpoint(t, b.LocalAddr())
	r, batch := b.Readers()[0], frame.NewBatch(nil)
	for i := range 200 {
		err := make(chan error)
		go func() { err <- r.Read(batch) }()
		if i%4 == 0 {
			time.Sleep(time.Millisecond)
		}
		b.Pause()
		if e := <-err; !errors.Is(e, frame.ErrPaused) {
			t.Fatal(e)
		}
		// Paused, a Read takes nothing even if there is something.
		send(t, a, to("x", 0, eb))
		if e := r.Read(batch); !errors.Is(e, frame.ErrPaused) {
			t.Fatal(e)
		}
		b.Resume()
		receive(t, b, 1)
	}
}

func TestUDPIdleReaderHoldsNoMemory(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	var pool frame.Arenas
	batch := frame.NewBatch(&pool)
	r := b.Readers()[0]
	send(t, a, to("x", 0, endpoint(t, b.LocalAddr())))
	if err := r.Read(batch); err != nil || len(batch.Frames) != 1 {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, b.Pause)
	if err := r.Read(batch); !errors.Is(err, frame.ErrPaused) {
		t.Fatal(err)
	}
	if cap(batch.Frames) != 0 {
		t.Error("the batch still has its arena")
	}
	for i := range b.readers[0].iov {
		if b.readers[0].iov[i].Base != nil {
			t.Fatal("the reader still points into the arena")
		}
	}
}

func TestUDPQueuesSpread(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{Queues: 4})
	var mu sync.Mutex
	total, used := 0, 0
	var wg sync.WaitGroup
	for _, r := range b.Readers() {
		wg.Go(func() {
			batch, n := frame.NewBatch(nil), 0
			for r.Read(batch) == nil {
				n += len(batch.Frames)
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
			if n > 0 {
				used++
			}
		})
	}
	for i := range 160 {
		send(t, a, to("x", uint16(i<<12), endpoint(t, b.LocalAddr())))
	}
	time.Sleep(50 * time.Millisecond)
	b.Close()
	wg.Wait()
	if total != 160 || used < 2 {
		t.Errorf("%d datagrams on %d queues", total, used)
	}
}

func TestUDPSendersTogether(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	gone := listen(t, "127.0.0.1:0", nil)
	eb, dead := endpoint(t, b.LocalAddr()), endpoint(t, gone.LocalAddr())
	gone.Close()
	const workers, each = 4, 200
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			s := a.Sender(w)
			for i := range each {
				ds := []frame.Datagram{to("x", uint16(i<<8), eb, dead), {To: []frame.Endpoint{eb}}}
				if err := s.Send(ds); err != nil || ds[1].Lost != 0 {
					t.Error(err, ds[1].Drop)
				}
			}
		})
	}
	receive(t, b, 2*workers*each)
	wg.Wait()
	if a.Sender(1) != a.Sender(1) || a.Sender(1) == a.Sender(2) {
		t.Error("senders are not one for each worker")
	}
}

func TestUDPAllocs(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	eb := endpoint(t, b.LocalAddr())
	ds := make([]frame.Datagram, 32)
	for i := range ds {
		ds[i] = to("payload", uint16(i<<11), eb)
		ds[i].TOS, ds[i].TTL = uint8(i), uint8(60+i)
		ds[i].DF = i%2 == 0
	}
	s, r, batch := a.Sender(0), b.Readers()[0], frame.NewBatch(new(frame.Arenas))
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Send(ds); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(ds); n += len(batch.Frames) {
			if err := r.Read(batch); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for a Send and its Reads", n)
	}
}

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
	if err := s.raw.Control(func(fd uintptr) { v, _ = unix.GetsockoptInt(int(fd), level, name) }); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUDPChecksumModes(t *testing.T) {
	for _, tc := range []struct {
		mode   Checksum
		v4, v6 int
	}{{ChecksumAuto, 1, 0}, {ChecksumOn, 0, 0}, {ChecksumOff, 1, 1}} {
		u := listen(t, "127.0.0.1:0", &UDPConfig{Checksum: tc.mode})
		if v := sockopt(t, u.tx[0].sock, unix.SOL_SOCKET, unix.SO_NO_CHECK); v != tc.v4 {
			t.Errorf("mode %d: SO_NO_CHECK %d", tc.mode, v)
		}
		u = listen(t, "[::1]:0", &UDPConfig{Checksum: tc.mode})
		if v := sockopt(t, u.tx[0].sock, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX); v != tc.v6 {
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
		if n := int(r.Hi-r.Lo) + 1; len(u.tx) != n {
			t.Errorf("%v: %d ports", r, len(u.tx))
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
	send(t, b, to("stray", 0, endpoint(t, a.LocalAddr()).WithPort(a.tx[3].port)))
	n := -1
	_ = a.tx[3].raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	if n != 0 {
		t.Errorf("%d bytes wait", n)
	}
}

// An error that stays neither ends a reader nor keeps a processor busy, and Close
// ends the waiting.
func TestUDPBackOff(t *testing.T) {
	u := listen(t, "127.0.0.1:0", nil)
	r, b := u.readers[0], frame.NewBatch(nil)
	start := time.Now()
	for i := range 8 {
		if err := r.backOff(b, i); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(start); d > 50*time.Millisecond {
		t.Errorf("the first errors cost %v", d)
	}
	start = time.Now()
	if err := r.backOff(b, 1000); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	time.AfterFunc(10*time.Millisecond, func() { u.Close() })
	if err := r.backOff(b, 1000); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, e := range []syscall.Errno{unix.ECONNREFUSED, unix.ENETDOWN, unix.ENOBUFS, unix.ENOMEM, unix.EHOSTUNREACH} {
		if fatal(e) {
			t.Errorf("%v is fatal", e)
		}
	}
}

// Pause and Resume from many sides while datagrams flow: none is lost.
func TestUDPPauseUnderTraffic(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	const total = 2000
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				b.Pause()
				b.Resume()
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		})
	}
	wg.Go(func() {
		for i := range total {
			send(t, a, to("x", uint16(i), endpoint(t, b.LocalAddr())))
		}
	})
	r, batch := b.Readers()[0], frame.NewBatch(new(frame.Arenas))
	for n := 0; n < total; {
		switch err := r.Read(batch); {
		case err == nil:
			n += len(batch.Frames)
		case !errors.Is(err, frame.ErrPaused):
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}
