package memory

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

func ipMember(t testing.TB, n *Network, local string, cfg *Config) *Underlay {
	t.Helper()
	m, err := n.ListenIP(netip.MustParseAddr(local), cfg)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// The network carries IP packets beside datagrams, on the same addresses.
func TestIP(t *testing.T) {
	for _, tc := range [][2]string{{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}} {
		n := NewNetwork(nil)
		a, b := ipMember(t, n, tc[0], nil), ipMember(t, n, tc[1], nil)
		udp := member(t, n, netip.AddrPortFrom(netip.MustParseAddr(tc[1]), 4789).String(), nil)
		ea, eb := endpoint(t, a.LocalAddr()), endpoint(t, b.LocalAddr())
		if a.LocalAddr().Port() != 0 || a.Is4() != a.LocalAddr().Addr().Is4() {
			t.Errorf("%v", a.LocalAddr())
		}
		if _, err := n.ListenIP(netip.MustParseAddr(tc[0]), nil); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("twice: %v", err)
		}
		if _, err := a.Sockets(underlay.TxConfig{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Sockets: %v", err)
		}
		ds := []frame.Datagram{to("E4", 1, eb.WithPort(4789)), to("`6", 1, eb), to("x", 1, eb, eb), to("E1`2E3", 1, eb), to("E", 1, eb), to("", 1, eb)}
		ds[0].TOS, ds[0].TTL, ds[3].Seg, ds[4].Set = 3, 9, 2, 1
		send(t, a, ds...)
		for i, want := range []struct {
			lost uint16
			drop frame.Reason
		}{{}, {}, {2, frame.BadHeader}, {}, {1, frame.SendFailed}, {1, frame.BadHeader}} {
			if ds[i].Lost != want.lost || ds[i].Drop != want.drop {
				t.Errorf("%d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		rs := receive(t, b, 5)
		for i, want := range []struct {
			payload  string
			kind     frame.Kind
			tos, ttl uint8
		}{{"E4", frame.IPv4, 3, 9}, {"`6", frame.IPv6, 0, 64}, {"E1", frame.IPv4, 0, 64}, {"`2", frame.IPv6, 0, 64}, {"E3", frame.IPv4, 0, 64}} {
			r := rs[i]
			if r.Payload != want.payload || r.Kind != want.kind || r.Outer.TOS != want.tos || r.Outer.TTL != want.ttl || r.Outer.Src != ea || r.Outer.Dst != eb {
				t.Errorf("%+v, want %+v", r, want)
			}
		}
		// A datagram to port 0 is not for it, nor a packet for a port.
		send(t, udp, to("E", 0, eb))
		quiet(t, b)
		quiet(t, udp)
		if st := n.Stats(); st.NoListener != 1 || st.Delivered != 5 {
			t.Errorf("%+v", st)
		}
		b.Close()
		if c := ipMember(t, n, tc[1], nil); c.LocalAddr() != b.LocalAddr() {
			t.Errorf("%v", c.LocalAddr())
		}
	}
}

// Flows are spread over the queues and stay in theirs.
func TestIPQueues(t *testing.T) {
	n := NewNetwork(nil)
	a, b := ipMember(t, n, "192.0.2.1", nil), ipMember(t, n, "192.0.2.2", &Config{Queues: 2})
	eb := endpoint(t, b.LocalAddr())
	for range 2 {
		for flow := range 64 {
			send(t, a, to("E"+string(rune('A'+flow)), uint16(flow*1000), eb))
		}
	}
	total := 0
	for q := range 2 {
		n := b.boxes[q].Len()
		seen := map[string]int{}
		for _, r := range receiveFrom(t, b, q, n) {
			seen[r.Payload]++
		}
		if len(seen)*2 != n || n < 32 {
			t.Errorf("queue %d: %d packets of %d flows", q, n, len(seen))
		}
		total += n
	}
	if total != 128 {
		t.Errorf("%d packets", total)
	}
}

// Headers without UDP leave more room, what is too long is told, and so is that nobody is
// there.
func TestIPErrors(t *testing.T) {
	for _, tc := range []struct {
		a, b, nobody string
		header       int
	}{{"192.0.2.1", "192.0.2.2", "192.0.2.3", 20}, {"2001:db8::1", "2001:db8::2", "2001:db8::3", 40}} {
		synctest.Test(t, func(t *testing.T) {
			n := NewNetwork(nil)
			a, b := ipMember(t, n, tc.a, nil), ipMember(t, n, tc.b, nil)
			n.SetDefault(Link{MTU: 1400, PathMTU: 1000, Delay: 10 * time.Millisecond})
			eb, nobody := endpoint(t, b.LocalAddr()), endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(tc.nobody), 0))
			var long, lost reports
			a.PathMTU(long.PathMTU)
			a.Unreachable(lost.Unreachable)
			p := "E" + strings.Repeat("x", 1400-tc.header)
			ds := []frame.Datagram{to(p, 0, eb), to(p[1:], 0, eb), to(p[:1001-tc.header], 0, eb), to(p[:1000-tc.header], 0, eb), to(p[:300], 0, nobody)}
			ds[1].Parts = [][]byte{[]byte("E"), []byte(p[2:])}
			send(t, a, ds...)
			if x := long.Take(); len(x) != 1 || x[0] != (report{To: eb, MTU: 1400, Quoted: ""}) || ds[0].Drop != frame.TooBig || ds[1].Lost+ds[2].Lost+ds[3].Lost+ds[4].Lost != 0 {
				t.Errorf("%v", x)
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if x := long.Take(); len(x) != 2 || x[0] != (report{To: eb, MTU: 1000, Quoted: p[:128]}) {
				t.Errorf("%v", x)
			}
			if x := lost.Take(); len(x) != 1 || x[0] != (report{To: nobody, MTU: 0, Quoted: p[:128]}) {
				t.Errorf("%v", x)
			}
			if s := payloads(receive(t, b, 1)); len(s[0]) != 1000-tc.header {
				t.Errorf("%d bytes", len(s[0]))
			}
			balance(t, n, 5)
			if st := a.Stats(); st.Errors.TooBig != 3 || st.Errors.Refused != 1 {
				t.Errorf("%+v", st)
			}
			send(t, a, to(p[:300], 0, nobody))
			a.Close() // nobody is told after that
			time.Sleep(time.Second)
			synctest.Wait()
			if x := lost.Take(); x != nil {
				t.Errorf("%v", x)
			}
		})
	}
}

func TestIPErrorsOfListen(t *testing.T) {
	n := NewNetwork(nil)
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("239.1.1.1"), netip.IPv4Unspecified()} {
		if _, err := n.ListenIP(a, nil); err == nil || !strings.HasPrefix(err.Error(), "memory: ") {
			t.Errorf("%v: %v", a, err)
		}
	}
	if _, err := n.ListenIP(netip.MustParseAddr("192.0.2.1"), &Config{Queues: -1}); err == nil || !strings.HasPrefix(err.Error(), "memory: Config.Queues: ") {
		t.Error(err)
	}
}
