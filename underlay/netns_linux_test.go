package underlay

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func TestWireHeaders4(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			dst := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 2}, Port: 4789}
			c := underlaytest.NewCapture(t, "vb")
			for _, sum := range []Checksum{ChecksumAuto, ChecksumOn, ChecksumOff} {
				if sum == ChecksumOff && onPortable(t) {
					continue
				}
				u := listen(t, "10.9.0.1:4789", &UDPConfig{Checksum: sum, DefaultTTL: 50, MaxDatagram: 2048})
				send(t, u,
					frame.Datagram{Parts: [][]byte{[]byte("abcd")}, To: []frame.Endpoint{dst}, TOS: 0xbb, TTL: 3, DF: true},
					frame.Datagram{Parts: [][]byte{[]byte("efgh")}, To: []frame.Endpoint{dst}})
				p, q := c.Packet(t), c.Packet(t)
				if p[1] != 0xbb || p[8] != 3 || p[6] != 0x40 || string(p[28:32]) != "abcd" {
					t.Errorf("with DF: % x", p[:32])
				}
				if q[1] != 0 || q[8] != 50 || q[6] != 0 || string(q[28:32]) != "efgh" {
					t.Errorf("without DF: % x", q[:32])
				}
				if dport := binary.BigEndian.Uint16(p[22:]); dport != 4789 {
					t.Errorf("destination port %d", dport)
				}
				if zero := p[26] == 0 && p[27] == 0; zero != (sum != ChecksumOn && !onPortable(t)) {
					t.Errorf("mode %d: checksum %x", sum, p[26:28])
				}
				u.Close()
			}
		})
	})
}

func TestWireHeaders6(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			dst := frame.Endpoint{IP: [16]byte{0: 0xfd, 1: 0x09, 15: 2}, Port: 4789}
			c := underlaytest.NewCapture(t, "vb")
			for _, sum := range []Checksum{ChecksumAuto, ChecksumOn, ChecksumOff} {
				if sum == ChecksumOff && onPortable(t) {
					continue
				}
				u := listen(t, "[fd09::1]:4789", &UDPConfig{Checksum: sum, DefaultTTL: 50})
				send(t, u,
					frame.Datagram{Parts: [][]byte{[]byte("abcd")}, To: []frame.Endpoint{dst}, TOS: 0xbb, TTL: 3, DF: true},
					frame.Datagram{Parts: [][]byte{[]byte("efgh")}, To: []frame.Endpoint{dst}, DF: true})
				p, q := c.Packet(t), c.Packet(t)
				if p[0]<<4|p[1]>>4 != 0xbb || p[7] != 3 || string(p[48:52]) != "abcd" {
					t.Errorf("% x", p[:52])
				}
				if q[0]<<4|q[1]>>4 != 0 || q[7] != 50 {
					t.Errorf("% x", q[:52])
				}
				if zero := p[46] == 0 && p[47] == 0; zero != (sum == ChecksumOff) {
					t.Errorf("mode %d: checksum %x", sum, p[46:48])
				}
				u.Close()
			}
		})
	})
}

// Above the interface's MTU a datagram with DF is lost as too big, one without is
// fragmented.
func TestWireMTU(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			underlaytest.IP(t, "link set va mtu 1400")
			for _, tc := range []struct {
				local string
				dst   frame.Endpoint
				most  int
			}{
				{"10.9.0.1:4789", frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 2}, Port: 4789}, 1372},
				{"[fd09::1]:4789", frame.Endpoint{IP: [16]byte{0: 0xfd, 1: 0x09, 15: 2}, Port: 4789}, 1352},
			} {
				u := listen(t, tc.local, nil)
				if u.MTU() != 1400 {
					t.Errorf("%s: MTU %d", tc.local, u.MTU())
				}
				if x, ok := u.(*UDP); ok && x.cfg.MaxDatagram != 2048 {
					t.Errorf("%s: MaxDatagram %d", tc.local, x.cfg.MaxDatagram)
				}
				fits, long := strings.Repeat("x", tc.most), strings.Repeat("x", tc.most+1)
				ds := []frame.Datagram{to(fits, 0, tc.dst), to(long, 0, tc.dst, tc.dst), to(fits, 0, tc.dst), to(long, 0, tc.dst)}
				ds[3].DF = false
				send(t, u, ds...)
				for i, want := range []uint16{0, 2, 0, 0} {
					if ds[i].Lost != want || want > 0 && ds[i].Drop != frame.TooBig {
						t.Errorf("%s: datagram %d: lost %d, %v", tc.local, i, ds[i].Lost, ds[i].Drop)
					}
				}
				if st := u.Stats(); st.Errors.TooBig == 0 && !onPortable(t) || st.TxLost[frame.TooBig] != 2 {
					t.Errorf("%s: %+v", tc.local, st)
				}
				u.Close()
			}
		})
	})
}

func TestMarkAndDevice(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := listen(t, "10.9.0.1:4789", &UDPConfig{Mark: 0x8000_0007, Device: "va", Queues: 2})
		send(t, u, frame.Datagram{}) // opens the sockets without DF
		socks := []*sock{u.readers[0].sock, u.readers[1].sock}
		for _, k := range []kind{0, mayFragment} {
			for _, s := range txSocksOf(u, k) {
				socks = append(socks, s.sock)
			}
		}
		if len(socks) != 2+32 {
			t.Errorf("%d sockets", len(socks))
		}
		for _, s := range socks {
			if m := sockopt(t, s, unix.SOL_SOCKET, unix.SO_MARK); uint32(m) != 0x8000_0007 {
				t.Errorf("mark %#x", m)
			}
			_ = s.raw.Control(func(fd uintptr) {
				d, err := unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
				if d != "va" {
					t.Errorf("device %q, %v", d, err)
				}
			})
		}
		if u.MTU() != 1500 {
			t.Errorf("MTU %d", u.MTU())
		}
	})
}

func TestNoRouteAndNeighbourThatIsNotThere(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			u := listen(t, "10.9.0.1:4789", nil)
			v4 := func(a, b, c, d byte) frame.Endpoint {
				return frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d}, Port: 4789}
			}
			noRoute, absent, good := v4(203, 0, 113, 1), v4(10, 9, 0, 77), v4(10, 9, 0, 2)
			ds := []frame.Datagram{to("x", 0, noRoute, good, noRoute, good)}
			send(t, u, ds...)
			if ds[0].Lost != 2 || ds[0].Drop != frame.Unreachable {
				t.Errorf("no route: lost %d, %v", ds[0].Lost, ds[0].Drop)
			}
			if onPortable(t) {
				return // it has no errors to count
			}
			// ARP gives up after three seconds by default.
			underlaytest.IP(t, "ntable change name arp_cache dev va retrans 50")
			send(t, u, to("x", 0, absent))
			for range 100 {
				time.Sleep(20 * time.Millisecond)
				ds := []frame.Datagram{to("x", 0, good)}
				send(t, u, ds...)
				if ds[0].Lost != 0 {
					t.Errorf("a healthy peer lost one: %v", ds[0].Drop)
				}
				if u.Stats().Errors.Unreachable > 0 {
					return
				}
			}
			t.Errorf("no error was queued: %+v", u.Stats())
		})
	})
}

func TestLinkLocal(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			u := listen(t, "[fe80::9%va]:4789", nil)
			ifi, err := net.InterfaceByName("va")
			if err != nil {
				t.Error(err)
				return
			}
			e := endpoint(t, u.LocalAddr())
			if e.Scope != uint32(ifi.Index) || u.MTU() != 1500 {
				t.Errorf("scope %d, MTU %d", e.Scope, u.MTU())
			}
			send(t, u, to("x", 0, e))
			r := receive(t, u, 1)[0]
			if r.Outer.Src.Host() != e.Host() || r.Outer.Dst != e {
				t.Errorf("%v > %v, want %v", r.Outer.Src, r.Outer.Dst, e)
			}
		})
	})
}

// fill sends 200 copies of what may be an IPv4 packet, and wants those that find no room to be lost.
func fill(t *testing.T, u network, absent frame.Endpoint) {
	t.Helper()
	ds := []frame.Datagram{{Parts: [][]byte{{0x45}, make([]byte, 1000)}, To: slices.Repeat([]frame.Endpoint{absent}, 200), DF: true}}
	send(t, u, ds...)
	st := u.Stats()
	if ds[0].Drop != frame.PortFull || st.TxLost[frame.PortFull] != uint64(ds[0].Lost) || st.TxDatagrams == 0 || st.TxDatagrams+uint64(ds[0].Lost) != 200 {
		t.Errorf("lost %d, %v; %+v", ds[0].Lost, ds[0].Drop, st)
	}
}

// Datagrams that wait for a neighbour fill the socket's buffer; what does not fit is
// dropped, and nobody waits.
func TestSendBufferFull(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		underlaytest.InNamespace(t, func(t *testing.T) {
			u := listen(t, "10.9.0.1:4789", &UDPConfig{SendBuffer: 4096})
			absent := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 77}, Port: 4789}
			fill(t, u, absent)
			if n := u.Stats().TxCalls; n > 8 && !onPortable(t) {
				t.Errorf("%d calls", n)
			}
		})
	})
}

// The same with raw IP: what waits for a neighbour fills the buffer, and nobody waits.
func TestIPSendBufferFull(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		for _, tc := range []struct{ local, absent string }{{"10.9.0.1", "10.9.0.77"}, {"fd09::1", "fd09::77"}} {
			u := listenIP(t, tc.local, &IPConfig{SendBuffer: 4096})
			absent := endpoint(t, netip.AddrPortFrom(netip.MustParseAddr(tc.absent), 0))
			start := time.Now()
			fill(t, u, absent)
			if took := time.Since(start); took > time.Second {
				t.Errorf("waited for %v", took)
			}
		}
	})
}

// A zone is the interface that has the name now.
func TestLinkLocalOfADeviceMadeAgain(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		for range 2 {
			listen(t, "[fe80::9%va]:4789", nil).Close()
			listenIP(t, "fe80::9%va", nil).Close()
			for _, c := range []string{"link del va", "link add va type veth peer name vb", "link set va up", "link set vb up", "addr add fe80::9/64 dev va nodad"} {
				underlaytest.IP(t, c)
			}
		}
	})
}
