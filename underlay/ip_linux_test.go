package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func listenIP(t testing.TB, local string, cfg *IPConfig) *IP {
	t.Helper()
	netns.RequireRoot(t)
	u, err := ListenIP(netip.MustParseAddr(local), cfg)
	must(t, err)
	t.Cleanup(func() { u.Close() })
	return u
}

// inside makes an IP packet with a UDP datagram: n bytes in all, between two hosts of a
// private network.
func inside(t testing.TB, version, src, dst, n int) string {
	t.Helper()
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	var ip gopacket.SerializableLayer
	if version == 4 {
		l := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolUDP,
			SrcIP: net.IPv4(172, 16, byte(src>>8), byte(src)), DstIP: net.IPv4(172, 17, byte(dst>>8), byte(dst))}
		udp.SetNetworkLayerForChecksum(l)
		ip, n = l, n-28
	} else {
		l := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolUDP,
			SrcIP: net.ParseIP(fmt.Sprintf("fd77::%x", src)), DstIP: net.ParseIP(fmt.Sprintf("fd78::%x", dst))}
		udp.SetNetworkLayerForChecksum(l)
		ip, n = l, n-48
	}
	return string(packets.Of(ip, udp, gopacket.Payload(pattern(n))))
}

// wired is two hosts on one wire, and the addresses of both families.
var wired4, wired6 = [2]string{"10.0.0.1", "10.0.0.2"}, [2]string{"fd00::1", "fd00::2"}

func wired(t *testing.T) (a, b *netns.Host) {
	n := netns.New(t)
	a, b = n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,fd00::1/64,fe80::1/64", b, "10.0.0.2/24,fd00::2/64,fe80::2/64")
	a.Ready()
	b.Ready()
	reachable(t, a, wired4[1])
	reachable(t, a, wired6[1])
	return a, b
}

// both opens an underlay in each of two hosts.
func both(t *testing.T, a, b *netns.Host, local [2]string, cfg *IPConfig) (ua, ub *IP) {
	t.Helper()
	a.Do(func() { ua = listenIP(t, local[0], cfg) })
	b.Do(func() { ub = listenIP(t, local[1], cfg) })
	return ua, ub
}

// All four combinations of families, both ways, byte for byte.
func TestIPEndToEnd(t *testing.T) {
	a, b := wired(t)
	for _, local := range [][2]string{wired4, wired6, {"fe80::1%eth0", "fe80::2%eth0"}} {
		ua, ub := both(t, a, b, local, nil)
		var ea, eb frame.Endpoint
		a.Do(func() { ea = endpoint(t, ua.LocalAddr()) })
		b.Do(func() { eb = endpoint(t, ub.LocalAddr()) })
		for _, u := range []*IP{ua, ub} {
			if p := u.LocalAddr(); p.Port() != 0 || u.Is4() != p.Addr().Is4() || u.MTU() != 1500 || len(u.Readers()) != 2 {
				t.Errorf("%v: MTU %d, %d readers", p, u.MTU(), len(u.Readers()))
			}
		}
		for _, way := range []struct {
			from, to   *IP
			src, dst   frame.Endpoint
			scope      uint32 // of the sender, as the receiver sees it
			properties string
		}{{ua, ub, ea, eb, eb.Scope, "there"}, {ub, ua, eb, ea, ea.Scope, "back"}} {
			dst := way.dst
			dst.Scope = way.src.Scope // the wire's name at the sender
			for i, version := range []int{4, 6} {
				for n := range 3 {
					p := inside(t, version, n, 7, 100+n)
					d := frame.Datagram{Parts: [][]byte{nil, []byte(p[:11]), {}, []byte(p[11:])}, To: []frame.Endpoint{dst.WithPort(4789)},
						Flow: uint16(n * 20000), TOS: uint8(0xb9 * n), TTL: uint8(7 * n), DF: n != 1}
					send(t, way.from, d)
					r := receiveFrom(t, way.to, i, 1)[0]
					ttl := uint8(7 * n)
					if n == 0 {
						ttl = 64
					}
					src := way.src
					src.Scope = way.scope
					if r.Payload != p || r.Kind != datagrams.Kind(i) || r.Drop != 0 {
						t.Errorf("IPv%d over %v: kind %v, %v, %x, want %x", version, local, r.Kind, r.Drop, r.Payload, p)
					}
					if o := r.Outer; o.TOS != uint8(0xb9*n) || o.TTL != ttl || o.Src != src || o.Dst != way.dst || o.If == 0 {
						t.Errorf("IPv%d over %v: %+v, want %v > %v", version, local, o, src, way.dst)
					}
				}
			}
		}
		for _, u := range []*IP{ua, ub} {
			if st := u.Stats(); st.TxDatagrams != 6 || st.RxDatagrams != 6 || st.Lost() != 0 || st.RxOverflow != 0 || st.RecvBuffer == 0 || st.SendBuffer == 0 {
				t.Errorf("%+v", st)
			}
			u.Close()
		}
	}
}

// What is no IP packet, what is for the other family or another set, and what is a run.
func TestIPSend(t *testing.T) {
	a, b := wired(t)
	ua, ub := both(t, a, b, wired4, nil)
	eb, other := endpoint(t, ub.LocalAddr()), endpoint(t, netip.MustParseAddrPort("[fd00::2]:0"))
	p4, p6 := inside(t, 4, 1, 2, 60), inside(t, 6, 1, 2, 90)
	ds := []frame.Datagram{
		to("", 0, eb), to("\x50", 0, eb, eb), {To: []frame.Endpoint{eb}}, {Parts: [][]byte{{}, nil}, To: []frame.Endpoint{eb}},
		to(p4, 0, other, eb), to(p6, 0, eb), to(p6, 0, eb),
		to(p4+p4+p4[:40], 0, eb, eb),
		to(p4, 0),
	}
	ds[6].Set = 1
	ds[7].Seg = 60
	send(t, ua, ds...)
	for i, want := range []struct {
		lost uint16
		drop frame.Reason
	}{{1, frame.BadHeader}, {2, frame.BadHeader}, {1, frame.BadHeader}, {1, frame.BadHeader}, {1, frame.Unreachable}, {}, {1, frame.SendFailed}, {}, {}} {
		if ds[i].Lost != want.lost || ds[i].Drop != want.drop {
			t.Errorf("datagram %d: lost %d, %v; want %+v", i, ds[i].Lost, ds[i].Drop, want)
		}
	}
	four, six := payloads(receiveFrom(t, ub, 0, 7)), payloads(receiveFrom(t, ub, 1, 1))
	if fmt.Sprint(four) != fmt.Sprint([]string{p4, p4, p4, p4[:40], p4, p4, p4[:40]}) || six[0] != p6 {
		t.Errorf("%x, %x", four, six)
	}
	if st := ua.Stats(); st.TxDatagrams != 8 || st.TxLost[frame.BadHeader] != 5 || st.TxCalls > 4 || st.TxRuns != 0 {
		t.Errorf("%+v", st)
	}
	// A thousand copies.
	d := to(p6, 0)
	for range 1000 {
		d.To = append(d.To, eb)
	}
	if send(t, ua, d); d.Lost != 0 {
		t.Errorf("lost %d: %v", d.Lost, d.Drop)
	}
	receiveFrom(t, ub, 1, 1000)
}

// An underlay on a wildcard address receives what comes for any, of its own family.
func TestIPWildcard(t *testing.T) {
	a, b := wired(t)
	for _, local := range [][3]string{{wired4[0], "0.0.0.0", wired4[1]}, {wired6[0], "::", wired6[1]}} {
		ua, ub := both(t, a, b, [2]string(local[:2]), nil)
		eb := endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(local[2]), 0))
		p := inside(t, 4, 1, 2, 60)
		send(t, ua, to(p, 0, eb))
		if r := receive(t, ub, 1)[0]; r.Payload != p || r.Outer.Dst != eb || ub.MTU() != 1500 {
			t.Errorf("%+v", r)
		}
		send(t, ub, to(p, 0, endpoint(t, ua.LocalAddr())))
		if r := receive(t, ua, 1)[0]; r.Payload != p || r.Outer.Src != eb {
			t.Errorf("%+v", r)
		}
		ua.Close()
		ub.Close()
	}
}

func TestIPConfigErrors(t *testing.T) {
	netns.RequireRoot(t)
	boom := errors.New("boom")
	for _, tc := range []struct {
		field string
		cfg   IPConfig
	}{
		{"Device", IPConfig{Device: strings.Repeat("x", 16)}},
		{"Device", IPConfig{Device: "nosuchdevice"}},
		{"DefaultTTL", IPConfig{DefaultTTL: 256}},
		{"RecvBuffer", IPConfig{RecvBuffer: -1}},
		{"SendBuffer", IPConfig{SendBuffer: -1}},
		{"Queues", IPConfig{Queues: 1000}},
		{"BusyPoll", IPConfig{BusyPoll: -1}},
		{"Control", IPConfig{Control: func(string, string, syscall.RawConn) error { return boom }}},
	} {
		u, err := ListenIP(netip.MustParseAddr("127.0.0.1"), &tc.cfg)
		refused(t, u, err, "underlay: IPConfig."+tc.field+": ", nil)
	}
	for local, want := range map[netip.Addr]error{
		{}:                               nil,
		netip.MustParseAddr("239.1.1.1"): nil,
		netip.MustParseAddr("fe80::1%nosuchdevice"): nil,
		netip.MustParseAddr("192.0.2.77"):           syscall.EADDRNOTAVAIL,
		netip.MustParseAddr("2001:db8::77"):         syscall.EADDRNOTAVAIL,
	} {
		u, err := ListenIP(local, nil)
		refused(t, u, err, "underlay: ", want)
	}
}

func TestIPNeedsPrivilege(t *testing.T) {
	netns.RequireRoot(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, which is nobody's, ends with the goroutine
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			done <- e
			return
		}
		u, err := ListenIP(netip.MustParseAddr("127.0.0.1"), nil)
		if err == nil {
			u.Close()
		}
		done <- err
	}()
	if err := <-done; !errors.Is(err, os.ErrPermission) || !strings.Contains(fmt.Sprint(err), "CAP_NET_RAW") {
		t.Errorf("%v", err)
	}
}

// Every socket has the mark and the device it should, and follows the device.
func TestIPSockets(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		var names []string
		u := listenIP(t, "10.9.0.1", &IPConfig{Mark: 7, Device: "va", Queues: 2, Control: func(network, address string, c syscall.RawConn) error {
			names = append(names, network+" "+address)
			return nil
		}})
		d := to("E", 0, endpoint(t, u.LocalAddr()))
		d.DF = false
		send(t, u, d)
		if len(names) != 4+2+2 || names[0] != "ip4 10.9.0.1" {
			t.Errorf("%q", names)
		}
		var socks []*sock
		for _, r := range u.readers {
			socks = append(socks, r.sock)
		}
		u.ranges[0].all(func(s *txSock) { socks = append(socks, s.sock) })
		have := func(name, value int) (n int) {
			for _, s := range socks {
				if sockopt(t, s, unix.SOL_SOCKET, name) == value {
					n++
				}
			}
			return n
		}
		was, err := net.InterfaceByName("va")
		if err != nil || len(socks) != 8 || have(unix.SO_MARK, 7) != 8 || have(unix.SO_BINDTOIFINDEX, was.Index) != 8 {
			t.Errorf("%v, %d sockets, %d marked", err, len(socks), have(unix.SO_MARK, 7))
			return
		}
		underlaytest.IP(t, "link del va")
		underlaytest.IP(t, "link add va mtu 1400 type veth peer name vb")
		is, err := net.InterfaceByName("va")
		if err != nil || is.Index == was.Index {
			t.Error(err, is)
			return
		}
		fake.Until(t, "all sockets on the new device", func() bool { return have(unix.SO_BINDTOIFINDEX, is.Index) == 8 })
		if u.MTU() != 1400 {
			t.Errorf("MTU %d", u.MTU())
		}
	})
}
