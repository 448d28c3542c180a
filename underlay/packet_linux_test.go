package underlay

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var _ ported = (*Packet)(nil)

// A veth is two hosts and a veth between them. Host a has the addresses .100, b .2; the
// packet underlays of the tests have .1, which nobody else has.
type veth struct {
	t    testing.TB
	a, b *netns.Host
	ip6  bool

	// What host b sends from, of some tests.
	from   *UDP
	fromIP *IP
}

func newVeth(t testing.TB, ip6 bool) *veth {
	n := netns.New(t)
	v := &veth{t: t, a: n.Host("a"), b: n.Host("b"), ip6: ip6}
	n.Link(v.a, "10.9.0.100/24,fd09::100/64", v.b, "10.9.0.2/24,fd09::2/64")
	v.a.Ready()
	v.b.Ready()
	return v
}

func bothFamilies(t *testing.T, f func(t *testing.T, v *veth)) {
	for _, ip6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[ip6], func(t *testing.T) { f(t, newVeth(t, ip6)) })
	}
}

// at returns the address of host n at a port.
func (v *veth) at(n int, port uint16) netip.AddrPort {
	a := netip.AddrFrom4([4]byte{10, 9, 0, byte(n)})
	if v.ip6 {
		a = netip.MustParseAddr(fmt.Sprintf("fd09::%d", n))
	}
	return netip.AddrPortFrom(a, port)
}

func (v *veth) end(n int) frame.Endpoint { return endpoint(v.t, v.at(n, 4789)) }

// packet opens a packet underlay at host a, address 1.
func (v *veth) packet(cfg *PacketConfig) *Packet {
	v.t.Helper()
	return v.packetAt(v.a, 1, cfg)
}

func (v *veth) packetAt(h *netns.Host, n int, cfg *PacketConfig) *Packet {
	v.t.Helper()
	var c PacketConfig
	if cfg != nil {
		c = *cfg
	}
	c.Device = "eth0"
	var p *Packet
	var err error
	h.Do(func() { p, err = ListenPacket(v.at(n, 4789), &c) })
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { p.Close() })
	return p
}

// udp opens a UDP underlay at a host's own address.
func (v *veth) udp(h *netns.Host, n int, cfg *UDPConfig) *UDP {
	v.t.Helper()
	var u *UDP
	h.Do(func() { u = listen(v.t, v.at(n, 4789).String(), cfg) })
	return u
}

// eachKind runs a test about what all underlays with ports have in common: at host a, each kind
// in turn, with a UDP underlay at host b.
func eachKind(t *testing.T, f func(t *testing.T, v *veth, a ported, b *UDP)) {
	open := map[string]func(v *veth) ported{
		"UDP":               func(v *veth) ported { return v.udp(v.a, 100, nil) },
		"Packet":            func(v *veth) ported { return v.packet(nil) },
		"Packet, NoOffload": func(v *veth) ported { return v.packet(&PacketConfig{NoOffload: true}) },
		"Packet, own MAC":   func(v *veth) ported { return v.packet(&PacketConfig{MAC: frame.MAC{2, 1, 2, 3, 4, 5}}) },
		"Packet, checksums": func(v *veth) ported { return v.packet(&PacketConfig{Checksum: ChecksumOn}) },
	}
	bothFamilies(t, func(t *testing.T, v *veth) {
		b := v.udp(v.b, 2, &UDPConfig{MaxDatagram: 9000})
		for name, f2 := range open {
			t.Run(name, func(t *testing.T) {
				v := *v
				v.t = t
				a := f2(&v)
				defer a.Close()
				f(t, &v, a, b)
			})
		}
	})
}

func TestKindsEndToEnd(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		ea, eb := endpoint(t, a.LocalAddr()), v.end(2)
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
			if r.Payload != want.payload || r.Outer.TOS != want.tos || r.Outer.TTL != want.ttl || r.Drop != 0 {
				t.Errorf("datagram %d: %+v, want %+v", i, r, want)
			}
			if r.Outer.Src.Host() != ea.Host() || r.Outer.Src.Port != rs[0].Outer.Src.Port || r.Outer.Src.Port < 49152 {
				t.Errorf("datagram %d: from %v, want %v", i, r.Outer.Src, ea.Host())
			}
		}
		// And the answer, which goes to the VTEP port, not to where this came from.
		send(t, b, frame.Datagram{Parts: [][]byte{[]byte("back")}, To: []frame.Endpoint{ea}, TOS: 1, TTL: 255, DF: true},
			frame.Datagram{To: []frame.Endpoint{ea}})
		back := receive(t, a, 2)
		if r := back[0]; r.Payload != "back" || r.Outer.TOS != 1 || r.Outer.TTL != 255 || r.Outer.Src.Host() != eb.Host() || r.Outer.Dst != ea || r.Outer.If == 0 || r.Drop != 0 {
			t.Errorf("answer: %+v", r)
		}
		if back[1].Payload != "" || back[1].Drop != 0 {
			t.Errorf("empty answer: %+v", back[1])
		}
		until(t, "what waited for its next hop is counted", func() bool { return a.Stats().TxDatagrams == 3 })
		if st := a.Stats(); st.TxDatagrams != 3 || st.RxDatagrams != 2 || st.Lost() != 0 || st.RecvBuffer == 0 || st.SendBuffer == 0 {
			t.Errorf("stats %+v", st)
		}
		if a.Is4() == v.ip6 || a.MTU() != 1500 {
			t.Errorf("Is4 %v, MTU %d", a.Is4(), a.MTU())
		}
	})
}

// warm has a and its next hop know each other, so that nothing has to wait.
func warm(t *testing.T, v *veth, a ported, b *UDP) {
	t.Helper()
	v.b.IP("neigh", "flush", "dev", "eth0") // the one before may have had another MAC
	send(t, a, to("hello", 0, v.end(2)))
	send(t, b, to("hello", 0, endpoint(t, a.LocalAddr())))
	receive(t, a, 1)
	receive(t, b, 1)
}

func TestKindsRuns(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		warm(t, v, a, b)
		ea, eb := endpoint(t, a.LocalAddr()), v.end(2)
		for _, tc := range []struct{ n, seg, head int }{
			{8, 8, 3}, {9, 8, 3}, {640, 10, 3}, {650, 10, 3}, {659, 10, 3}, {60 * 1400, 1400, 8}, {3001, 1000, 1}, {5, 8, 3},
		} {
			for _, up := range []bool{true, false} {
				from, to, e := a, ported(b), eb
				if !up {
					from, to, e = b, a, ea
				}
				d, want := runOf(tc.n, tc.seg, tc.head, 77, e, e)
				d.TOS, d.TTL = 0xb9, 9
				ds := []frame.Datagram{d}
				send(t, from, ds...)
				if ds[0].Lost != 0 {
					t.Errorf("%+v: lost %d: %v", tc, ds[0].Lost, ds[0].Drop)
				}
				rs := receive(t, to, 2*len(want))
				if !slices.Equal(payloads(rs), append(want, want...)) {
					t.Errorf("%+v, up %v: arrived changed", tc, up)
				}
				for _, r := range rs {
					if r.Outer.TOS != 0xb9 || r.Outer.TTL != 9 || r.Outer.Src.Port != rs[0].Outer.Src.Port || r.Drop != 0 {
						t.Errorf("%+v: %+v", tc, r.Outer)
					}
				}
			}
		}
		st := a.Stats()
		if p, ok := a.(*Packet); ok && (p.cfg.NoOffload != (st.TxRuns == 0) || st.RxRuns == 0) {
			t.Errorf("NoOffload %v: %d runs sent, %d received", p.cfg.NoOffload, st.TxRuns, st.RxRuns)
		}
		if st.Lost() != 0 || st.RxErrors != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A flow keeps its port and its order when lone datagrams, runs and datagrams without DF take
// turns.
func TestKindsKeepOrder(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		warm(t, v, a, b)
		eb := v.end(2)
		set, err := a.Sockets(TxConfig{SrcPorts: PortRange{20000, 29999}, Checksum: ChecksumOn})
		if err != nil {
			t.Fatal(err)
		}
		var ds []frame.Datagram
		want := make(map[uint16][]string)
		for i := range 60 {
			flow := uint16(i % 3 * 20001)
			d, s := runOf(25, 10, 4, flow, eb)
			if i%2 == 0 {
				d = to(fmt.Sprint("lone ", i), flow, eb)
				s = []string{fmt.Sprint("lone ", i)}
			}
			d.DF, d.Set = i%5 != 0, set
			ds, want[flow] = append(ds, d), append(want[flow], s...)
		}
		send(t, a, ds...)
		seen := make(map[uint16][]string)
		for _, r := range receive(t, b, 30+30*3) {
			if p := r.Outer.Src.Port; p < 20000 || p > 29999 {
				t.Errorf("source port %d", p)
			}
			seen[r.Outer.Src.Port] = append(seen[r.Outer.Src.Port], r.Payload)
		}
		if len(seen) != 3 {
			t.Errorf("%d source ports", len(seen))
		}
		for flow, w := range want {
			if !slices.ContainsFunc(slices.Collect(maps.Values(seen)), func(g []string) bool { return slices.Equal(g, w) }) {
				t.Errorf("flow %d out of order", flow)
			}
		}
	})
}

func TestKindsLost(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		warm(t, v, a, b)
		eb := v.end(2)
		other := endpoint(t, netip.MustParseAddrPort("[fd00::9]:9"))
		if v.ip6 {
			other = endpoint(t, netip.MustParseAddrPort("192.0.2.9:9"))
		}
		overhead := datagrams.UDPHeaders(a.Is4())
		fits, long := strings.Repeat("x", 1500-overhead), strings.Repeat("x", 1501-overhead)
		run, _ := runOf(3*len(long), len(long), 8, 1, eb, eb)
		var said reports // by Send, and by who reads errors
		a.PathMTU(said.PathMTU)
		ds := []frame.Datagram{
			to(long, 1, eb), to("one", 1, eb, other, eb), to("port 0", 1, eb.WithPort(0)), to("two", 1, eb),
			run, to(fits, 1, eb), to("no such set", 1, eb), to("three", 1, eb),
		}
		ds[6].Set = 31
		send(t, a, ds...)
		for i, want := range []struct {
			lost uint16
			drop frame.Reason
		}{{1, frame.TooBig}, {1, frame.Unreachable}, {1, frame.Unreachable}, {}, {2, frame.TooBig}, {}, {1, frame.SendFailed}, {}} {
			if ds[i].Lost != want.lost || ds[i].Drop != want.drop {
				t.Errorf("datagram %d: lost %d, %v, want %d, %v", i, ds[i].Lost, ds[i].Drop, want.lost, want.drop)
			}
		}
		if got := payloads(receive(t, b, 5)); !slices.Equal(got, []string{"one", "one", "two", fits, "three"}) {
			t.Errorf("%.20q", got)
		}
		if st := a.Stats(); st.TxLost[frame.TooBig] != 1+2*3 || st.TxLost[frame.Unreachable] != 2 {
			t.Errorf("%+v", st)
		}
		said.WantMTU(t, 1500)
		quiet(t, b)
	})
}

func TestKindsPauseAndClose(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		warm(t, v, a, b)
		r, batch := a.Readers()[0], frame.NewBatch(nil)
		quiet(t, a)
		a.Pause()
		send(t, b, to("one", 0, endpoint(t, a.LocalAddr())))
		if err := r.Read(batch); !errors.Is(err, frame.ErrPaused) {
			t.Error(err)
		}
		a.Resume()
		if got := receive(t, a, 1)[0].Payload; got != "one" {
			t.Error(got)
		}
		done := make(chan error)
		go func() { done <- r.Read(batch) }()
		time.Sleep(10 * time.Millisecond)
		for range 2 {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := r.Read(batch); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		ds := []frame.Datagram{to("late", 0, v.end(2), v.end(2))}
		if err := a.Sender(0).Send(ds); !errors.Is(err, net.ErrClosed) || ds[0].Lost != 2 || ds[0].Drop != frame.PortDown {
			t.Error(err, ds[0].Lost, ds[0].Drop)
		}
		if _, err := a.Sockets(TxConfig{Checksum: ChecksumOff}); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestKindsAllocs(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *UDP) {
		warm(t, v, a, b)
		ea, eb := endpoint(t, a.LocalAddr()), v.end(2)
		run, want := runOf(2500, 1000, 8, 5, eb)
		ds := make([]frame.Datagram, 32)
		for i := range ds {
			ds[i] = to("payload", uint16(i<<11), eb)
			ds[i].TOS, ds[i].TTL = uint8(i), uint8(60+i)
			ds[i].DF = i%2 == 0
		}
		ds = append(ds, run)
		ss, sb, ra, rb, batch := a.Sender(0), b.Sender(0), a.Readers()[0], b.Readers()[0], frame.NewBatch(new(frame.Arenas))
		back := []frame.Datagram{to("back", 1, ea), to("back", 1, ea)}
		if n := testing.AllocsPerRun(100, func() {
			if err := errors.Join(ss.Send(ds), sb.Send(back)); err != nil {
				t.Fatal(err)
			}
			for n := 0; n < 32+len(want); n += len(batch.Frames) {
				if err := rb.Read(batch); err != nil {
					t.Fatal(err)
				}
			}
			for n := 0; n < 2; n += len(batch.Frames) {
				if err := ra.Read(batch); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations for a Send and its Reads", n)
		}
	})
}

func TestPacketConfigErrors(t *testing.T) {
	v := newVeth(t, false)
	for _, tc := range []struct {
		local string
		cfg   *PacketConfig
		want  string
	}{
		{"10.9.0.1:4789", nil, "PacketConfig.Device"},
		{"10.9.0.1:4789", &PacketConfig{Device: "nosuch"}, "no such device"},
		{"10.9.0.1:4789", &PacketConfig{Device: "lo"}, "not an Ethernet interface"},
		{"10.9.0.1:0", &PacketConfig{Device: "eth0"}, "port"},
		{"0.0.0.0:4789", &PacketConfig{Device: "eth0"}, "0.0.0.0"},
		{"239.1.1.1:4789", &PacketConfig{Device: "eth0"}, "multicast"},
		{"192.0.2.1:4789", &PacketConfig{Device: "eth0"}, "PacketConfig.Prefix: needed"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", Prefix: netip.MustParsePrefix("fd09::/64")}, "PacketConfig.Prefix"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", Gateway: netip.MustParseAddr("fd09::1")}, "PacketConfig.Gateway"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", Gateway: netip.MustParseAddr("10.8.0.1")}, "PacketConfig.Gateway"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", Gateway: netip.MustParseAddr("10.9.0.1")}, "PacketConfig.Gateway"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", MAC: frame.MAC{1}}, "PacketConfig.MAC"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", DefaultTTL: 300}, "PacketConfig.DefaultTTL"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", Queues: 1000}, "PacketConfig.Queues"},
		{"10.9.0.1:4789", &PacketConfig{Device: "eth0", SrcPorts: PortRange{9, 8}}, "PacketConfig.SrcPorts"},
	} {
		v.a.Do(func() {
			p, err := ListenPacket(netip.MustParseAddrPort(tc.local), tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s %+v: %v, want %q", tc.local, tc.cfg, err, tc.want)
			}
			if err == nil {
				p.Close()
			}
		})
	}
	v.a.Do(func() {
		if _, err := ListenPacket(v.at(1, 4789), &PacketConfig{Device: "nosuch"}); !errors.Is(err, unix.ENODEV) {
			t.Error(err)
		}
	})
}
