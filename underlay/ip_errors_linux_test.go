package underlay

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var routed4, routed6 = [2]string{"10.1.0.1", "10.2.0.2"}, [2]string{"fd01::1", "fd02::2"}

// want waits for reports, all of them alike and as many as were to come.
func want(t *testing.T, r *reports, what string, n int, to frame.Endpoint, mtu int, payload string) {
	t.Helper()
	var all []report
	fake.Until(t, what, func() bool { all = append(all, r.Take()...); return len(all) >= n })
	time.Sleep(20 * time.Millisecond)
	if all = append(all, r.Take()...); len(all) != n {
		t.Errorf("%s: told %d times, want %d", what, len(all), n)
	}
	for _, x := range all {
		if x.To != to || x.MTU != mtu || len(x.Quoted) != min(128, len(payload)) || !strings.HasPrefix(payload, x.Quoted) {
			t.Errorf("%s: %v, MTU %d, quoted %d bytes %x, want %v and %d", what, x.To, x.MTU, len(x.Quoted), x.Quoted, to, mtu)
		}
	}
}

// What routers say of packets sent earlier is told once, whichever sockets are open.
func TestIPErrors(t *testing.T) {
	a, r, b := routed(t)
	b.MTU("eth0", 1400)
	r.MTU("eth1", 1400)
	for _, tc := range []struct {
		local   [2]string
		fits    int
		noRoute string
	}{{routed4, 1380, "203.0.113.5"}, {routed6, 1360, "2001:db8::5"}} {
		ua, ub := both(t, a, b, tc.local, nil)
		var long, lost reports
		ua.PathMTU(long.PathMTU)
		ua.Unreachable(lost.Unreachable)
		eb, noRoute := endpoint(t, ub.LocalAddr()), endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(tc.noRoute), 0))
		for i, version := range []int{4, 6} {
			p, over := inside(t, version, 1, 2, tc.fits), inside(t, version, 1, 2, tc.fits+1)
			plain := to(over, 0, eb)
			plain.DF = false
			for range 2 { // then with sockets for packets without DF
				send(t, ua, to(over, 0, eb))
				want(t, &long, "too long for the router", 1, eb, 1400, over)
				send(t, ua, to(p, 0, eb))
				if s := receiveFrom(t, ub, i, 1)[0].Payload; s != p {
					t.Errorf("%d bytes", len(s))
				}
				send(t, ua, plain) // over IPv6 lost at the router, which tells; over IPv4 in fragments
				if ua.Is4() {
					if s := receiveFrom(t, ub, i, 1)[0].Payload; s != over {
						t.Errorf("%d bytes", len(s))
					}
				} else {
					want(t, &long, "too long without DF", 1, eb, 1400, over)
				}
			}
			if ua.Is4() {
				time.Sleep(1100 * time.Millisecond) // a router tells it once a second (ip_error)
			}
			send(t, ua, to(p, 0, noRoute))
			want(t, &lost, fmt.Sprintf("no route at the router, IPv%d over %s", version, tc.local[0]), 1, noRoute, 0, p)
			d := to(p, 0, eb)
			d.TTL = 1
			send(t, ua, d)
			want(t, &lost, "time exceeded", 1, eb, 0, p)
			if x := long.Take(); x != nil {
				t.Errorf("told of the MTU: %v", x)
			}
		}
		st := ua.Stats()
		if st.Errors.Unreachable != 4 || st.Errors.Refused != 0 || st.Errors.Other != 0 || st.Lost() != 0 {
			t.Errorf("%+v", st)
		}
		ub.Close()
		p := inside(t, 4, 1, 2, 60)
		send(t, ua, to(p, 0, eb))
		want(t, &lost, "no tunnel at the host", 1, eb, 0, p)
		if st := ua.Stats(); st.Errors.Refused != 1 || st.Errors.Other != 0 {
			t.Errorf("%+v", st)
		}
		ua.Close()
	}
}

// Errors about others fail no packet to a healthy peer.
func TestIPDeadPeers(t *testing.T) {
	a, _, b := routed(t)
	for _, tc := range []struct {
		local         [2]string
		noRoute, dead string
	}{{routed4, "203.0.113.5", "10.1.0.254"}, {routed6, "2001:db8::5", "fd01::254"}} {
		ua, ub := both(t, a, b, tc.local, nil)
		var lost reports
		ua.Unreachable(lost.Unreachable)
		eb := endpoint(t, ub.LocalAddr())
		bad := func(s string) frame.Endpoint {
			return endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(s), 0))
		}
		noRoute, dead := bad(tc.noRoute), bad(tc.dead) // dead has no tunnel
		const rounds = 300
		done := make(chan map[string]int)
		go func() {
			have := map[string]int{}
			batch := frame.NewBatch(nil)
			for n := 0; n < 2*rounds; {
				if err := ub.Readers()[0].Read(batch); err != nil {
					break
				}
				for i := range batch.Frames {
					have[string(batch.Frames[i].Bytes())]++
					n++
				}
			}
			done <- have
		}()
		for i := range rounds {
			p := inside(t, 4, i, 7, 60)
			d := to(p, 0, noRoute, eb, dead, noRoute, eb, dead)
			d.DF = i%2 == 0
			if send(t, ua, d); d.Lost != 0 {
				t.Fatalf("%s: round %d: lost %d, %v", tc.local[0], i, d.Lost, d.Drop)
			}
			if i%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		watchdog := time.AfterFunc(5*time.Second, ub.Pause)
		have := <-done
		watchdog.Stop()
		if len(have) != rounds {
			t.Errorf("%d packets have come, want %d", len(have), rounds)
		}
		for p, n := range have {
			if n != 2 {
				t.Errorf("%x came %d times", p, n)
			}
		}
		st := ua.Stats()
		if st.Errors.Unreachable == 0 || st.Errors.Refused == 0 || st.Lost() != 0 {
			t.Errorf("%+v", st)
		}
		seen := map[frame.Endpoint]bool{}
		for _, x := range lost.Take() {
			seen[x.To] = true
		}
		if !seen[noRoute] || !seen[dead] || seen[eb] {
			t.Errorf("%v", seen)
		}
		ua.Close()
		ub.Close()
	}
}

// A host with an underlay never says that it knows no such protocol, though nobody reads and
// the buffers are full.
func TestIPFullBufferIsSilent(t *testing.T) {
	a, b := wired(t)
	b.Sysctl("net.ipv4.icmp_ratelimit", "0")
	b.Sysctl("net.ipv6.icmp.ratelimit", "0")
	for _, local := range [][2]string{wired4, wired6} {
		ua, ub := both(t, a, b, local, &IPConfig{RecvBuffer: 4096})
		var lost reports
		ua.Unreachable(lost.Unreachable)
		eb := endpoint(t, ub.LocalAddr())
		c := a.Capture("eth0", "icmp or icmp6[0] = 4 or icmp6[0] = 1")
		p4, p6 := inside(t, 4, 1, 2, 1000), inside(t, 6, 1, 2, 1000)
		for range 100 {
			send(t, ua, to(p4, 0, eb), to(p6, 0, eb))
		}
		fake.Until(t, "full buffers", func() bool { return ub.Stats().RxOverflow > 100 })
		time.Sleep(50 * time.Millisecond)
		if ps := c.Stop(); len(ps) != 0 || lost.Take() != nil || ua.Stats().Errors != (Stats{}).Errors {
			t.Errorf("errors came:\n%s%+v", netns.Dump(ps), ua.Stats().Errors)
		}
		ua.Close()
		ub.Close()
	}
}
