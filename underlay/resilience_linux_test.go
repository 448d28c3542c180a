package underlay

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A talk is datagrams and runs both ways between two underlays, in every flow, some of
// them without DF, until the test ends.
type talk struct {
	a, b       *UDP
	aGot, bGot atomic.Uint64
}

func newTalk(t *testing.T, a, b *UDP) *talk {
	x := &talk{a: a, b: b}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, dir := range []struct {
		from, to *UDP
		got      *atomic.Uint64
	}{{a, b, &x.bGot}, {b, a, &x.aGot}} {
		wg.Go(func() {
			to2 := endpoint(t, dir.to.LocalAddr())
			for i := uint16(0); ; i++ {
				r, _ := runOf(25, 10, 4, i<<12, to2)
				d := to("x", i<<12, to2)
				d.DF, r.DF = i/16%2 == 0, i/16%2 == 0
				if err := dir.from.Sender(0).Send([]frame.Datagram{d, r}); err != nil {
					return // closed
				}
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
		wg.Go(func() {
			batch := frame.NewBatch(nil)
			for {
				if err := dir.to.Readers()[0].Read(batch); err != nil {
					if !errors.Is(err, frame.ErrPaused) {
						t.Error(err)
					}
					return
				}
				dir.got.Add(uint64(len(batch.Frames)))
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		a.Pause()
		b.Pause()
		wg.Wait()
	})
	return x
}

// flows waits until some datagrams have come both ways, and returns how long that took.
func (x *talk) flows(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	a, b := x.aGot.Load(), x.bGot.Load()
	fake.Until(t, "datagrams flow both ways", func() bool { return x.aGot.Load() > a+40 && x.bGot.Load() > b+40 })
	return time.Since(start)
}

// silence waits until nothing arrives any more, at one of the ends at least.
func (x *talk) silence(t *testing.T) {
	t.Helper()
	fake.Until(t, "silence", func() bool {
		a, b := x.aGot.Load(), x.bGot.Load()
		time.Sleep(50 * time.Millisecond)
		return a == x.aGot.Load() || b == x.bGot.Load()
	})
}

// told reports how many datagrams were lost, or reported lost, at either end.
func (x *talk) told() uint64 {
	n := uint64(0)
	for _, u := range []*UDP{x.a, x.b} {
		st := u.Stats()
		n += st.Lost() + st.Errors.Unreachable + st.Errors.Refused
	}
	return n
}

// Whatever happens underneath, datagrams flow again soon after it is over, and the counters
// tell that something was.
func TestResilience(t *testing.T) {
	for _, fam := range []struct{ name, la, lb, aAddr, net, via string }{
		{"IPv4", "10.1.0.1:4789", "10.2.0.2:4789", "10.1.0.1/24", "10.2.0.0/24", "10.1.0.254"},
		{"IPv6", "[fd01::1]:4789", "[fd02::2]:4789", "fd01::1/64", "fd02::/64", "fd01::254"},
	} {
		for _, tc := range []struct {
			name    string
			off, on func(a, r, b *netns.Host)
			cfg     UDPConfig
		}{
			{name: "interface down and up",
				off: func(a, r, b *netns.Host) { a.IP("link", "set", "eth0", "down") },
				on: func(a, r, b *netns.Host) {
					a.Up("eth0")
					a.Route(fam.net, "via", fam.via)
				}},
			{name: "address removed and put back",
				// Over IPv6 Linux 6.18 sends on from an address that is gone: it is the
				// router that notices.
				off: func(a, r, b *netns.Host) { a.IP("addr", "del", fam.aAddr, "dev", "eth0") },
				on: func(a, r, b *netns.Host) {
					a.Addr("eth0", fam.aAddr)
					a.IP("route", "replace", fam.net, "via", fam.via)
				}},
			{name: "peer unreachable and back",
				off: func(a, r, b *netns.Host) { r.IP("route", "add", "unreachable", hostRoute(fam.lb)) },
				on:  func(a, r, b *netns.Host) { r.IP("route", "del", "unreachable", hostRoute(fam.lb)) }},
			{name: "peer's interface down and up",
				off: func(a, r, b *netns.Host) { b.IP("link", "set", "eth0", "down") },
				on: func(a, r, b *netns.Host) {
					b.Up("eth0")
					b.Route("default", "via", "10.2.0.254")
					b.Route("::/0", "via", "fd02::254")
				}},
			{name: "device deleted and made again", cfg: UDPConfig{Device: "eth0"},
				off: func(a, r, b *netns.Host) { a.IP("link", "del", "eth0") },
				on: func(a, r, b *netns.Host) {
					a.IP("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", r.NS)
					r.Addr("eth0", "10.1.0.254/24,fd01::254/64")
					r.Up("eth0")
					a.Addr("eth0", "10.1.0.1/24,fd01::1/64")
					a.Up("eth0")
					a.Route(fam.net, "via", fam.via)
				}},
		} {
			t.Run(fam.name+"/"+tc.name, func(t *testing.T) {
				a, r, b := routed(t)
				for _, h := range []*netns.Host{a, b} {
					h.Sysctl("net.ipv6.conf.eth0.keep_addr_on_down", "1")
				}
				a.Route(fam.net, "via", fam.via)
				var ua, ub *UDP
				a.Do(func() { ua = listen(t, fam.la, &tc.cfg) })
				b.Do(func() { ub = listen(t, fam.lb, nil) })
				x := newTalk(t, ua, ub)
				x.flows(t)
				before := x.told()
				tc.off(a, r, b)
				x.silence(t)
				fake.Until(t, "a counter that tells", func() bool { return x.told() > before })
				tc.on(a, r, b)
				took := x.flows(t)
				// On an idle machine 60 ms, and up to 600 ms for a device made anew. The
				// kernel itself may need a second for a link or a neighbour that is back.
				if took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				// All sockets work again, not just some: two rounds of 16 flows, with DF and
				// without, lone and as runs, and nothing is lost.
				fake.Until(t, "no more losses", func() bool {
					lost, sent := ua.Stats().Lost(), ua.Stats().TxDatagrams
					fake.Until(t, "two rounds", func() bool { return ua.Stats().TxDatagrams > sent+64*4 })
					return ua.Stats().Lost() == lost
				})
				if ua.MTU() != 1500 {
					t.Errorf("MTU %d", ua.MTU())
				}
			})
		}
	}
}

// hostRoute is the route to one address.
func hostRoute(ap string) string { return netip.MustParseAddrPort(ap).Addr().String() }
