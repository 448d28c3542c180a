package bfd

import (
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const (
	benchSessions = 1000
	benchTime     = 10 * time.Second
	benchRate     = 3780                // packets per second: the mean of the jitter is 12 percent
	benchPeer     = "VXSWITCH_BFD_PEER" // in the environment of the process at the other end
)

func far(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

// TestPeerProcess is the other end of BenchmarkSessions, a process of its own.
func TestPeerProcess(t *testing.T) {
	if os.Getenv(benchPeer) == "" {
		return
	}
	s := New()
	u := check.Must(ListenUDP(s, nil))(t)
	for i := range benchSessions {
		p := check.Must(u.Peer(far(i), netip.MustParseAddr("10.0.0.1"), false))(t)
		must(t, s.Add(p, nil))
	}
	fmt.Println("ready")
	select {} // until it is killed
}

// BenchmarkSessions measures the processor time of 1,000 sessions of 300 ms through UDP sockets, in percent of one core: that
// of this process, with what the kernel does on its behalf. The other end is another process, and another network namespace;
// what a packet costs there until it is in a socket is its sender's. Most of it is the kernel's: the second figure is that of
// sending the packets, and of nothing else.
func BenchmarkSessions(b *testing.B) {
	n := netns.New(b)
	here, there := n.Host("a"), n.Host("b")
	n.Link(here, "10.0.0.1/24", there, "10.0.0.2/24")
	here.Ready()
	there.Ready()
	here.Route("10.1.0.0/16", "via", "10.0.0.2")
	there.IP("route", "add", "local", "10.1.0.0/16", "dev", "lo")
	self := check.Must(os.Executable())(b)
	there.Start("env", benchPeer+"=1", self, "-test.run=^TestPeerProcess$").Want("ready")
	o := newOurs(b, here, UDPConfig{})
	for i := range benchSessions {
		o.add("10.0.0.1", far(i).String(), false, SessionConfig{})
	}
	for range benchSessions {
		o.want(Alive, NoDiag)
	}
	here.Until("timers", func() bool {
		list := check.Must(o.s.Sessions())(b)
		for _, s := range list {
			if s.Interval != DefaultInterval || s.Detection != 3*DefaultInterval {
				return false
			}
		}
		return true
	})
	b.Run("speaker", func(b *testing.B) {
		was := o.s.Stats()
		measure(b, func() { time.Sleep(benchTime) })
		is := o.s.Stats()
		b.ReportMetric(float64(is.Sent-was.Sent)/float64(b.N)/benchTime.Seconds(), "sent/s")
		b.ReportMetric(float64(is.Received-was.Received)/float64(b.N)/benchTime.Seconds(), "received/s")
		if len(o.c) > 0 {
			b.Errorf("%d sessions have changed", len(o.c))
		}
	})
	must(b, o.s.Close())
	here.Run("nft", "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in udp dport 3784 drop")

	// The same packets from the same sockets, by a loop that does nothing else.
	b.Run("sendto", func(b *testing.B) {
		packets := make([]Packet, benchSessions)
		for i := range packets {
			p := check.Must(o.u.Peer(netip.MustParseAddr("10.0.0.1"), far(i), false))(b)
			packets[i] = Packet{Peer: p, SrcPort: 50000, DstPort: Port, Payload: golden}
		}
		measure(b, func() {
			tick := time.NewTicker(grain(DefaultInterval))
			defer tick.Stop()
			sent, start := 0, time.Now()
			for now := start; now.Sub(start) < benchTime; now = <-tick.C {
				for ; sent < int(benchRate*now.Sub(start).Seconds()); sent++ {
					must(b, o.u.Send(&packets[sent%benchSessions]))
				}
			}
			b.ReportMetric(float64(sent)/benchTime.Seconds(), "sent/s")
		})
	})
}

// measure reports the processor time that f takes, in percent of one core.
func measure(b *testing.B, f func()) {
	used, took := time.Duration(0), time.Duration(0)
	for range b.N {
		start, cpu := time.Now(), processorTime()
		f()
		used += processorTime() - cpu
		took += time.Since(start)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*used.Seconds()/took.Seconds(), "%core")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
