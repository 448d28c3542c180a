package underlay

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Which errors say that a packet did not get there, for its sender to be told.
func TestUnreachableCodes(t *testing.T) {
	for _, tc := range []struct {
		name              string
		origin, typ, code uint8
		want              bool
	}{
		{"network", unix.SO_EE_ORIGIN_ICMP, 3, 0, true}, // RFC 2003, section 4.1
		{"host", unix.SO_EE_ORIGIN_ICMP, 3, 1, true},
		{"protocol", unix.SO_EE_ORIGIN_ICMP, 3, 2, true},
		{"port", unix.SO_EE_ORIGIN_ICMP, 3, 3, false},
		{"too big", unix.SO_EE_ORIGIN_ICMP, 3, 4, false},
		{"source route", unix.SO_EE_ORIGIN_ICMP, 3, 5, false},
		{"prohibited", unix.SO_EE_ORIGIN_ICMP, 3, 13, true},
		{"source quench", unix.SO_EE_ORIGIN_ICMP, 4, 0, false}, // section 4.2
		{"redirect", unix.SO_EE_ORIGIN_ICMP, 5, 1, false},      // section 4.3
		{"time exceeded", unix.SO_EE_ORIGIN_ICMP, 11, 0, true}, // section 4.4
		{"parameter", unix.SO_EE_ORIGIN_ICMP, 12, 0, false},    // section 4.5
		{"no route", unix.SO_EE_ORIGIN_ICMP6, 1, 0, true},      // RFC 2473, section 8
		{"address", unix.SO_EE_ORIGIN_ICMP6, 1, 3, true},
		{"port", unix.SO_EE_ORIGIN_ICMP6, 1, 4, false},
		{"hop limit", unix.SO_EE_ORIGIN_ICMP6, 3, 0, true},
		{"next header", unix.SO_EE_ORIGIN_ICMP6, 4, 1, true},
		{"option", unix.SO_EE_ORIGIN_ICMP6, 4, 2, false},
		{"our own interface", unix.SO_EE_ORIGIN_LOCAL, 3, 1, false},
	} {
		u, told := new(base), false
		f := func(frame.Endpoint, []byte) { told = true }
		u.unreachable.Store(&f)
		if u.countError(&sys.QueuedError{Errno: unix.EHOSTUNREACH, Origin: tc.origin, Type: tc.typ, Code: tc.code}); told != tc.want {
			t.Errorf("%s, type %d, code %d: told %v", tc.name, tc.typ, tc.code, told)
		}
	}
}

// The watch has the sockets that are open.
func TestErrWatchForgets(t *testing.T) {
	u := listen(t, "127.0.0.1:0", &UDPConfig{Checksum: ChecksumAuto})
	want := func(when string) {
		t.Helper()
		var open []*txSock
		u.mu.Lock()
		for _, p := range u.ranges {
			p.all(func(s *txSock) { open = append(open, s) })
		}
		u.mu.Unlock()
		u.watch.mu.Lock()
		defer u.watch.mu.Unlock()
		if len(u.watch.socks) != len(open) {
			t.Errorf("%s: %d sockets are watched, %d open", when, len(u.watch.socks), len(open))
		}
		for _, s := range open {
			if u.watch.socks[s.fd] != s {
				t.Errorf("%s: port %d is not watched", when, s.port)
			}
		}
	}
	want("at first")
	run, _ := runOf(64, 8, 0, 0, endpoint(t, u.LocalAddr()))
	run.DF = false
	send(t, u, run)
	want("with runs without DF")
	for _, a := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.1"} {
		if err := u.SetLocal(netip.MustParseAddr(a)); err != nil {
			t.Fatal(err)
		}
		want(a)
	}
	u.Close()
	if n := len(u.watch.socks); n != 0 {
		t.Errorf("%d sockets are watched after Close", n)
	}
}

// tooBig makes an ICMP error about what frameOf makes the other way, of which it quotes so much of
// the payload.
func tooBig(ip6 bool, mtu, payload int) []byte {
	q := frameOf(ip6, make([]byte, 1400))[wire.EthernetLen:]
	at := datagrams.IPHeader(!ip6)
	if ip6 {
		copy(q[8:], testIP6[:])
		copy(q[24:], peerIP6[:])
	} else {
		copy(q[12:], testIP4[:])
		copy(q[16:], peerIP4[:])
	}
	c := slices.Concat([]byte{3, 4, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, q[:at+wire.UDPLen+payload])
	if ip6 {
		c[0], c[1] = 2, 0
		h := wire.IPv6Header{NextHeader: 58, HopLimit: 63, PayloadLen: uint16(len(c)), Src: peerIP6, Dst: testIP6}
		ip := make([]byte, 40)
		h.Put(ip)
		binary.BigEndian.PutUint16(c[2:], ^wire.Fold(wire.Sum(c, wire.Pseudo6(ip, 58, len(c)))))
		return slices.Concat(testMAC[:], peerMAC[:], []byte{0x86, 0xdd}, ip, c)
	}
	binary.BigEndian.PutUint16(c[2:], ^wire.Fold(wire.Sum(c, 0)))
	ip := make([]byte, 20)
	h := wire.IPv4Header{TTL: 63, Protocol: 1, TotalLen: uint16(len(ip) + len(c)), Src: peerIP4, Dst: testIP4}
	h.Put(ip)
	return slices.Concat(testMAC[:], peerMAC[:], []byte{8, 0}, ip, c)
}

// A packet underlay believes an MTU only if the error quotes the header of a tunnel: there is no
// socket whose port would have to be guessed.
func TestPacketErrorQuote(t *testing.T) {
	for i, ip6 := range []bool{false, true} {
		rule := &testRule[i]
		p := &Packet{is4: !ip6, dev: sys.NewPacketInterface("underlay", "none", nil)}
		if _, err := p.sets.Number(TxConfig{SrcPorts: PortRange{49152, 65535}}, p.newSet); err != nil {
			t.Fatal(err)
		}
		p.hops = newHops(nil, nil, &p.late.Lost)
		p.place.Store(&packetPlace{rules: *rule, who: messenger{is4: !ip6, mac: rule.mac, ip: rule.ip}})
		told := 0
		p.PathMTU(func(to frame.Endpoint, mtu int, quoted []byte) {
			told++
			if mtu != 1300 || len(quoted) < leastQuote || to.Port != 4789 {
				t.Errorf("%v, %d, %d bytes", to, mtu, len(quoted))
			}
		})
		for _, n := range []int{0, 1, 7} {
			p.heard(tooBig(ip6, 1300, n))
		}
		if told != 0 || p.errors.TooBig.Load() != 3 {
			t.Errorf("IPv6 %v: %d of %d errors without a tunnel's header were believed", ip6, told, p.errors.TooBig.Load())
		}
		for _, n := range []int{8, 100} {
			p.heard(tooBig(ip6, 1300, n))
		}
		if told != 2 {
			t.Errorf("IPv6 %v: %d of 2 errors with one were believed", ip6, told)
		}
	}
}
