package underlay

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// What a Portable cannot do is an error that names the field, or the system's.
func TestPortableErrors(t *testing.T) {
	boom := errors.New("boom")
	local := netip.MustParseAddrPort("127.0.0.1:0")
	for _, tc := range []struct {
		field string
		cfg   UDPConfig
		want  error
	}{
		{"Mark", UDPConfig{Mark: 1}, errors.ErrUnsupported},
		{"Device", UDPConfig{Device: "lo"}, errors.ErrUnsupported},
		{"Checksum", UDPConfig{Checksum: ChecksumOff}, errors.ErrUnsupported},
		{"ZeroChecksum6RX", UDPConfig{ZeroChecksum6RX: true}, errors.ErrUnsupported},
		{"BusyPoll", UDPConfig{BusyPoll: time.Microsecond}, errors.ErrUnsupported},
		{"Queues", UDPConfig{Queues: 2}, errors.ErrUnsupported},
		{"DefaultTTL", UDPConfig{DefaultTTL: 256}, nil},
		{"MulticastDevice", UDPConfig{MulticastDevice: "nope"}, syscall.ENODEV},
		{"Control", UDPConfig{Control: func(string, string, syscall.RawConn) error { return boom }}, boom},
	} {
		u, err := ListenPortable(local, &tc.cfg)
		refused(t, u, err, "underlay: UDPConfig."+tc.field+": ", tc.want)
	}
	u := portable(true)(t, "127.0.0.1:0", &UDPConfig{Queues: 1, SrcPorts: PortRange{45100, 45100}})
	if _, err := ListenPortable(u.LocalAddr(), nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if _, err := ListenPortable(local, &UDPConfig{SrcPorts: PortRange{45100, 45100}}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "UDPConfig.SrcPorts") {
		t.Error(err)
	}
	if _, err := u.Sockets(TxConfig{Checksum: ChecksumOff}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := u.Leave(netip.MustParseAddr("239.1.1.1")); err == nil {
		t.Error("left what was not joined")
	}
	u.Close()
	ds := []frame.Datagram{to("x", 0, endpoint(t, u.LocalAddr()))}
	if err := u.Sender(0).Send(ds); !errors.Is(err, net.ErrClosed) || ds[0].Drop != frame.PortDown {
		t.Errorf("%v, %v", err, ds[0].Drop)
	}
	if err := u.Join(netip.MustParseAddr("239.1.1.1")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A set whose sockets cannot be opened leaves none, and has all of them the next time.
func TestPortableSetFails(t *testing.T) {
	boom, left := errors.New("boom"), -1
	u := portable(true)(t, "127.0.0.1:0", &UDPConfig{Control: func(string, string, syscall.RawConn) error {
		if left--; left == 0 {
			return boom
		}
		return nil
	}})
	files, c := underlaytest.OpenFiles(t), TxConfig{SrcPorts: PortRange{45200, 45215}}
	left = 9
	if _, err := u.Sockets(c); !errors.Is(err, boom) || underlaytest.OpenFiles(t) != files {
		t.Errorf("%v, %d descriptors, there were %d", err, underlaytest.OpenFiles(t), files)
	}
	n, err := u.Sockets(c)
	must(t, err)
	if socks := *u.(*Portable).sets.Get(n).socks.Load(); len(socks) != 16 {
		t.Errorf("%d sockets", len(socks))
	}
	if _, err := portable(true)(t, "127.0.0.1:0", nil).Sockets(c); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "TxConfig.SrcPorts: ") || strings.Contains(err.Error(), "UDP") {
		t.Error(err)
	}
}

// A run leaves as single datagrams, in order and in pieces of any size, to each endpoint.
func TestPortableRuns(t *testing.T) {
	for _, batch := range []bool{true, false} {
		families(t, func(t *testing.T, la, lb string) {
			listen := portable(batch)
			a, b, c := listen(t, la, nil), listen(t, lb, nil), listen(t, lb, nil)
			d, want := runOf(99*700+3, 700, 8, 5, endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr()))
			run := []frame.Datagram{d}
			if send(t, a, run...); run[0].Lost != 0 {
				t.Fatalf("%d endpoints lost some as %v: %+v", run[0].Lost, run[0].Drop, a.Stats())
			}
			for _, u := range []ported{b, c} {
				for i, got := range payloads(receive(t, u, len(want))) {
					if got != want[i] {
						t.Fatalf("datagram %d of %d is another", i, len(want))
					}
				}
			}
			long := to(strings.Repeat("x", longest+1), 0, endpoint(t, b.LocalAddr()))
			ds := []frame.Datagram{long}
			send(t, a, ds...)
			if st := a.Stats(); ds[0].Drop != frame.TooBig || st.TxRuns != 0 || st.TxDatagrams != uint64(2*len(want)) {
				t.Errorf("%v, %+v", ds[0].Drop, st)
			}
		})
	}
}

// A datagram whose deadline is over before it is tried is tried again, and lost only if that goes on.
func TestPortableLateTries(t *testing.T) {
	a, b := portable(false)(t, "127.0.0.1:0", nil), portable(true)(t, "127.0.0.2:0", nil)
	late, calls := 0, 0
	a.(*Portable).write = func(c *net.UDPConn, p []byte, to netip.AddrPort) (int, error) {
		if calls++; late > 0 {
			late--
			return 0, os.ErrDeadlineExceeded
		}
		return c.WriteToUDPAddrPort(p, to)
	}
	for _, tc := range []struct {
		late, calls int
		drop        frame.Reason
	}{{0, 1, frame.NotDropped}, {1, 2, frame.NotDropped}, {5, 6, frame.NotDropped}, {6, 6, frame.PortFull}} {
		late, calls = tc.late, 0
		ds := []frame.Datagram{to("x", 0, endpoint(t, b.LocalAddr()))}
		if send(t, a, ds...); ds[0].Drop != tc.drop || calls != tc.calls {
			t.Errorf("%d calls too late: %v after %d calls, want %v after %d", tc.late, ds[0].Drop, calls, tc.drop, tc.calls)
		}
	}
	receive(t, b, 3)
}

// A run counts each endpoint once that did not get all of it, however many of its datagrams are lost.
func TestRunLosses(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.2:0", nil)
		good, other, bad := endpoint(t, b.LocalAddr()), endpoint(t, netip.MustParseAddrPort("[::1]:9")), endpoint(t, netip.MustParseAddrPort("127.0.0.3:9"))
		bad.Port = 0 // refused by the kernel
		d, want := runOf(200*100, 100, 8, 5, bad, good, bad, other, good)
		ds := []frame.Datagram{d}
		must(t, a.Sender(0).Send(ds))
		if n := a.Stats().TxLost[frame.Unreachable]; ds[0].Lost != 3 || ds[0].Drop != frame.Unreachable || int(n) != 3*len(want) {
			t.Errorf("%d lost as %v, %d datagrams", ds[0].Lost, ds[0].Drop, n)
		}
		receive(t, b, 2*len(want))
	})
}

// Both directions of a change of TOS, TTL and DF within one Send.
func TestPortableMarks(t *testing.T) {
	eachUDPFamily(t, func(t *testing.T, listen opener, la, lb string) {
		a, b := listen(t, la, &UDPConfig{DefaultTTL: 50}), listen(t, lb, nil)
		var ds []frame.Datagram
		var want []frame.Outer
		for i := range 60 {
			d := to("x", 0, endpoint(t, b.LocalAddr()))
			d.TOS, d.TTL, d.DF = byte(i%3*4+i%2), byte(i%4), i%5 > 0
			ds = append(ds, d)
			want = append(want, frame.Outer{TOS: d.TOS, TTL: max(d.TTL, byte(50*(1-min(i%4, 1))))})
		}
		send(t, a, ds...)
		for i, r := range receive(t, b, len(ds)) {
			if r.Outer.TOS != want[i].TOS || r.Outer.TTL != want[i].TTL {
				t.Errorf("datagram %d: TOS %d, TTL %d, want %d, %d", i, r.Outer.TOS, r.Outer.TTL, want[i].TOS, want[i].TTL)
			}
		}
	})
}

// What a socket on the port of all addresses hears beside its groups is not for the underlay.
func TestPortableGroupTakesNothingElse(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := portable(true)(t, "10.9.0.1:4789", nil)
		if err := u.Join(netip.MustParseAddr("239.1.1.1")); err != nil {
			t.Error(err)
			return
		}
		c, _ := plainSocket(t, "udp4", "127.0.0.1:0")
		for _, at := range []string{"127.0.0.1:4789", "127.0.0.2:4789"} {
			if _, err := c.WriteToUDPAddrPort([]byte("stray"), netip.MustParseAddrPort(at)); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(20*time.Millisecond, u.Pause)
		if err := u.Readers()[1].Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
			t.Errorf("a stray came in: %v", err)
		}
	})
}

// Without groups the port of other addresses is free again, also if a Join fails; the Read that waits for groups goes on.
func TestPortableLeavesPort(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := portable(true)(t, "10.9.0.1:4789", nil)
		free := func() error {
			x, err := ListenPortable(netip.MustParseAddrPort("127.0.0.1:4789"), nil)
			if err == nil {
				x.Close()
			}
			return err
		}
		read := make(chan error, 1)
		go func() { read <- u.Readers()[1].Read(frame.NewBatch(nil)) }()
		g, files := netip.MustParseAddr("239.1.1.1"), underlaytest.OpenFiles(t)
		closed := func() bool { return free() == nil && underlaytest.OpenFiles(t) == files } // once the Read has left it
		for range 3 {
			if err := u.Join(g); err != nil || !errors.Is(free(), syscall.EADDRINUSE) {
				t.Error(err, free())
			}
			time.Sleep(time.Millisecond)
			if err := u.Leave(g); err != nil {
				t.Error(err)
			}
			fake.Until(t, "the port is free", closed)
		}
		underlaytest.IP(t, "link del va")
		if u.Join(g) == nil {
			t.Error("joined without an interface")
		}
		fake.Until(t, "the port is free", closed)
		select {
		case err := <-read:
			t.Errorf("read: %v", err)
		default:
		}
		if st := u.Stats(); st.RxErrors != 0 {
			t.Errorf("%+v", st)
		}
		u.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// Packets to its groups on another interface, where another socket has joined them, are not for it either.
func TestPortableGroupOnOneInterface(t *testing.T) {
	for local, group := range map[string]string{"10.9.0.1:4789": "239.1.1.1", "0.0.0.0:4789": "239.1.1.1", "[fd09::1]:4789": "ff05::1", "[::]:4789": "ff05::1"} {
		underlaytest.InNamespace(t, func(t *testing.T) {
			for _, args := range []string{
				"link add vc type veth peer name vd", "link set vc up", "link set vd up",
				"addr add 10.8.0.1/24 dev vc", "addr add 10.8.0.2/24 dev vd", "addr add fd08::1/64 dev vc nodad", "addr add fd08::2/64 dev vd nodad",
			} {
				underlaytest.IP(t, args)
			}
			for file, value := range map[string]string{"vc/accept_local": "1", "vc/rp_filter": "0", "all/rp_filter": "0"} {
				if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+file, []byte(value), 0); err != nil {
					t.Error(err)
				}
			}
			u := portable(true)(t, local, &UDPConfig{MulticastDevice: "va"})
			other, sender := portable(true)(t, local[:strings.LastIndex(local, ":")]+":4790", &UDPConfig{MulticastDevice: "vc"}), portable(true)(t, local[:strings.LastIndex(local, ":")]+":0", &UDPConfig{MulticastDevice: "vd"})
			g := netip.MustParseAddr(group)
			if err := errors.Join(u.Join(g), other.Join(g)); err != nil {
				t.Error(err)
				return
			}
			ends := []frame.Endpoint{endpoint(t, netip.AddrPortFrom(g, 4789)), endpoint(t, netip.AddrPortFrom(g, 4790))}
			q := 1
			if u.LocalAddr().Addr().IsUnspecified() {
				q = 0
			}
			fake.Until(t, "a packet on vc", func() bool { // once its address can be used
				send(t, sender, to("x", 0, ends...))
				time.AfterFunc(10*time.Millisecond, other.Pause)
				defer other.Resume()
				return other.Readers()[q].Read(frame.NewBatch(nil)) == nil
			})
			time.AfterFunc(20*time.Millisecond, u.Pause)
			if err := u.Readers()[q].Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
				t.Errorf("%s: a packet on vc came in: %v", local, err)
			}
		})
	}
}
