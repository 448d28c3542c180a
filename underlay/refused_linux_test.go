package underlay_test

import (
	"context"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// tunnel is a switch with a TAP and a VTEP in host a, and the kernel's vxlan device in
// host b. A datagram of a full frame is an IP packet of 1450 bytes.
type tunnel struct {
	t       *testing.T
	a, b    *netns.Host
	u       *underlay.UDP
	refusal *underlay.Refusal

	mu    sync.Mutex
	socks []int // duplicates of all sockets, to set options behind the underlay's back
}

func newTunnel(t *testing.T, df vtep.DF) *tunnel {
	t.Helper()
	n := netns.New(t)
	x := &tunnel{t: t, a: n.Host("a"), b: n.Host("b")}
	n.Link(x.a, "10.0.0.1/24", x.b, "10.0.0.2/24")
	t.Cleanup(func() {
		for _, fd := range x.socks {
			unix.Close(fd)
		}
	})
	var err error
	x.a.Do(func() {
		x.u, err = underlay.ListenUDP(netip.MustParseAddrPort("10.0.0.1:4789"), &underlay.UDPConfig{Control: x.keep})
	})
	check.OK(t, err)
	x.refusal = x.u.RefuseRuns()
	v, err := vtep.New(&vtep.Config{Header: vtep.Header{DF: df}}, x.u)
	if err != nil {
		x.u.Close()
		t.Fatal(err)
	}
	sw, err := vswitch.New(nil)
	if err != nil {
		v.Close()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- sw.Run(context.Background()) }()
	t.Cleanup(func() {
		sw.Close()
		v.Close()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	tap := check.Must(port.OpenTAP("tap0", &port.DeviceConfig{MTU: 1400, Namespace: x.a.NS}))(t)
	vsi, err := sw.VSI(100, nil)
	if err == nil {
		_, err = vsi.Attach(v, 100)
	}
	if err == nil {
		err = v.SetFlood(100, netip.MustParseAddrPort("10.0.0.2:4789"))
	}
	if err == nil {
		_, err = vsi.Attach(tap, 0)
	}
	if err != nil {
		tap.Close()
		t.Fatal(err)
	}
	x.a.Addr("tap0", "192.168.7.1/24")
	x.b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Dev: "eth0", Addr: "192.168.7.2/24"})
	x.b.MTU("vx0", 1400)
	x.a.Ready()
	x.b.Ready()
	return x
}

// keep duplicates a socket of the underlay.
func (x *tunnel) keep(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) {
		var dup int
		if dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.socks = append(x.socks, dup)
		}
	}); e != nil {
		return e
	}
	return err
}

// noChecksum sets SO_NO_CHECK of every socket: those of runs are then refused with EINVAL.
func (x *tunnel) noChecksum(v int) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, fd := range x.socks {
		check.OK(x.t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, v))
	}
}

// interval is what iperf3 prints each second; the first group is what was moved.
var interval = regexp.MustCompile(`(?m)^\[ *\d+\] +[\d.]+-[\d.]+ +sec +([\d.]+) +[KMG]?Bytes .*$`)

// intervals returns how much was moved in each second so far; the units differ.
func intervals(p *netns.Proc) (moved []float64) {
	for _, m := range interval.FindAllStringSubmatch(p.Output(), -1) {
		if strings.HasSuffix(strings.TrimSpace(m[0]), "er") { // the sums, of sender and receiver
			continue
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			v = -1
		}
		moved = append(moved, v)
	}
	return moved
}

// A kernel begins to refuse runs in the middle of a TCP connection, and takes them again
// two seconds later. The connection lives on, and something arrives in each second.
func TestTCPWhileRunsAreRefused(t *testing.T) {
	injected := func(why unix.Errno) func(x *tunnel, on bool) {
		return func(x *tunnel, on bool) {
			if !on {
				why = 0
			}
			x.refusal.Set(why)
		}
	}
	for _, tc := range []struct {
		name       string
		df         vtep.DF
		refuse     func(x *tunnel, on bool)
		remembered bool // remembered: runs are not tried again by themselves
		lossy      bool // the datagrams of a refused run are lost
	}{
		{name: "EIO", refuse: injected(unix.EIO), remembered: true},
		{name: "EINVAL", refuse: injected(unix.EINVAL)},
		{name: "EMSGSIZE", refuse: injected(unix.EMSGSIZE)},
		{name: "ENOBUFS", refuse: injected(unix.ENOBUFS), lossy: true},

		// The same by the kernel itself; its EIO takes IPsec.
		{name: "EINVAL from the kernel", refuse: func(x *tunnel, on bool) {
			v := 0
			if on {
				v = 1
			}
			x.noChecksum(v)
		}},
		// Datagrams above the interface's MTU, without DF, leave in fragments; runs of such
		// do not leave.
		{name: "EMSGSIZE from the kernel", df: vtep.DFUnset, refuse: func(x *tunnel, on bool) {
			mtu := 1500
			if on {
				mtu = 1300
			}
			x.a.MTU("eth0", mtu)
		}},
		// A queue with room for one datagram and for no run.
		{name: "ENOBUFS from the kernel", lossy: true, refuse: func(x *tunnel, on bool) {
			if on {
				x.a.Run("tc", "qdisc", "add", "dev", "eth0", "root", "bfifo", "limit", "1513")
			} else {
				x.a.Run("tc", "qdisc", "del", "dev", "eth0", "root")
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x := newTunnel(t, tc.df)
			x.b.Ping("192.168.7.1", 1)
			server := x.b.Start("iperf3", "-s", "-1", "--forceflush")
			server.Want("Server listening")
			client := x.a.Start("iperf3", "-c", "192.168.7.2", "-t", "6", "--forceflush")
			second := func(n int) {
				t.Helper()
				x.a.Until("iperf3 has run for another second", func() bool { return len(intervals(client)) >= n })
			}
			runs := func() uint64 { return x.u.Stats().TxRuns }

			second(1)
			if runs() == 0 {
				t.Fatal("no runs, so that there is nothing to refuse")
			}
			before := x.u.Stats()
			if before.Lost() != 0 {
				t.Errorf("lost before anything was refused: %v", before.TxLost)
			}
			tc.refuse(x, true)
			for range 2 { // what was under way is through
				calls := x.u.Stats().TxCalls
				x.a.Until("something is sent", func() bool { return x.u.Stats().TxCalls != calls })
			}
			began, times := x.u.Stats(), x.refusal.Times.Load()
			second(max(3, len(intervals(client))+1)) // it is later than that on a busy machine
			x.a.Until("datagrams are sent", func() bool { return x.u.Stats().TxDatagrams > began.TxDatagrams })
			ended := x.u.Stats()
			if ended.TxRuns != began.TxRuns {
				t.Errorf("%d runs left while they were refused", ended.TxRuns-began.TxRuns)
			}
			t.Logf("1 s of runs: %d datagrams in %d calls, %d runs; 2 s without: %d in %d; lost %d", before.TxDatagrams, before.TxCalls, before.TxRuns,
				ended.TxDatagrams-began.TxDatagrams, ended.TxCalls-began.TxCalls, ended.Lost())
			if lost := ended.Lost() - before.Lost(); lost > 0 != tc.lossy {
				t.Errorf("lost %d: %v", lost, ended.TxLost)
			}
			if x.u.Split() != tc.remembered {
				t.Errorf("runs are given up: %v", !tc.remembered)
			}
			if n := x.refusal.Times.Load() - times; tc.remembered && n > 0 {
				t.Errorf("runs were tried %d times more", n)
			}

			tc.refuse(x, false)
			if tc.remembered {
				second(4)
				if n := runs(); n != began.TxRuns {
					t.Errorf("%d runs, although they had been given up", n-began.TxRuns)
				}
				x.u.Unsplit()
			}
			x.a.Until("runs leave again", func() bool { return runs() > ended.TxRuns })

			second(4)
			for _, h := range []*netns.Host{x.a, x.b} {
				if n := h.Nstat(); n["TcpEstabResets"] != 0 || n["TcpOutRsts"] != 0 || n["TcpInCsumErrors"] != 0 || n["UdpInCsumErrors"] != 0 {
					t.Errorf("host %s: %d connections reset, %d resets sent, wrong checksums: %d of TCP, %d of UDP", h.Name,
						n["TcpEstabResets"], n["TcpOutRsts"], n["TcpInCsumErrors"], n["UdpInCsumErrors"])
				}
			}
			if err := client.Wait(); err != nil {
				t.Errorf("iperf3: %v\n%s", err, client.Output())
			}
			if err := server.Wait(); err != nil {
				t.Errorf("iperf3 -s: %v\n%s", err, server.Output())
			}
			moved := intervals(server)
			if len(moved) < 5 {
				t.Fatalf("iperf3 ran for %d seconds\n%s", len(moved), server.Output())
			}
			if tc.lossy { // TCP may wait for longer than a second before it repeats
				moved = []float64{moved[0], moved[1] + moved[2] + moved[3] + moved[4]}
			}
			for i, v := range moved[:min(5, len(moved))] {
				if v <= 0 {
					t.Errorf("nothing arrived in second %d\n%s", i, server.Output())
				}
			}
		})
	}
}
