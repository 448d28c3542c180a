package afpacket

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

var _ ported = (*Underlay)(nil)

// A veth is two hosts, and underlays there.
type veth struct{ *underlaytest.Veth }

func newVeth(t testing.TB, ip6 bool) *veth { return &veth{underlaytest.NewVeth(t, ip6)} }

func bothFamilies(t *testing.T, f func(t *testing.T, v *veth)) {
	underlaytest.BothFamilies(t, func(t *testing.T, v *underlaytest.Veth) { f(t, &veth{v}) })
}

// packet opens a packet underlay at host a, address 1.
func (v *veth) packet(cfg *Config) *Underlay {
	v.T.Helper()
	return v.packetAt(v.A, 1, cfg)
}

func (v *veth) packetAt(h *netns.Host, n int, cfg *Config) *Underlay {
	v.T.Helper()
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c.Device = "eth0"
	return netns.Open(v.T, h, func() (*Underlay, error) { return Listen(v.At(n, 4789), &c) })
}

// udp opens a UDP underlay at a host's own address.
func (v *veth) udp(h *netns.Host, n int, cfg *underlay.UDPConfig) *underlay.UDP {
	v.T.Helper()
	return listenUDP(v.T, h, v.At(n, 4789), cfg)
}

func listenUDP(t testing.TB, h *netns.Host, at netip.AddrPort, cfg *underlay.UDPConfig) *underlay.UDP {
	t.Helper()
	return netns.Open(t, h, func() (*underlay.UDP, error) { return underlay.ListenUDP(at, cfg) })
}

// eachKind runs a test about what all underlays with ports have in common: at host a, each kind
// in turn, with a UDP underlay at host b.
func eachKind(t *testing.T, f func(t *testing.T, v *veth, a ported, b *underlay.UDP)) {
	open := map[string]func(v *veth) ported{
		"UDP":               func(v *veth) ported { return v.udp(v.A, 100, nil) },
		"Packet":            func(v *veth) ported { return v.packet(nil) },
		"Packet, NoOffload": func(v *veth) ported { return v.packet(&Config{NoOffload: true}) },
		"Packet, own MAC":   func(v *veth) ported { return v.packet(&Config{MAC: frame.MAC{2, 1, 2, 3, 4, 5}}) },
		"Packet, checksums": func(v *veth) ported { return v.packet(&Config{Checksum: underlay.ChecksumOn}) },
	}
	bothFamilies(t, func(t *testing.T, v *veth) {
		b := v.udp(v.B, 2, &underlay.UDPConfig{MaxDatagram: 9000})
		for name, f2 := range open {
			t.Run(name, func(t *testing.T) {
				of := *v.Veth
				of.T = t
				v := &veth{&of}
				a := f2(v)
				defer a.Close()
				f(t, v, a, b)
			})
		}
	})
}

func TestKindsEndToEnd(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		ea, eb := endpoint(t, a.LocalAddr()), v.End(2)
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
		fake.Until(t, "what waited for its next hop is counted", func() bool { return a.Stats().TxDatagrams == 3 })
		if st := a.Stats(); st.TxDatagrams != 3 || st.RxDatagrams != 2 || st.Lost() != 0 || st.RecvBuffer == 0 || st.SendBuffer == 0 {
			t.Errorf("stats %+v", st)
		}
		if a.Is4() == v.IP6 || a.MTU() != 1500 {
			t.Errorf("Is4 %v, MTU %d", a.Is4(), a.MTU())
		}
	})
}

// warm has a and its next hop know each other, so that nothing has to wait.
func warm(t *testing.T, v *veth, a ported, b *underlay.UDP) {
	t.Helper()
	v.B.IP("neigh", "flush", "dev", "eth0") // the one before may have had another MAC
	send(t, a, to("hello", 0, v.End(2)))
	send(t, b, to("hello", 0, endpoint(t, a.LocalAddr())))
	receive(t, a, 1)
	receive(t, b, 1)
}

func TestKindsRuns(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		warm(t, v, a, b)
		ea, eb := endpoint(t, a.LocalAddr()), v.End(2)
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
		if p, ok := a.(*Underlay); ok && (p.cfg.NoOffload != (st.TxRuns == 0) || st.RxRuns == 0) {
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
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		warm(t, v, a, b)
		eb := v.End(2)
		set, err := a.Sockets(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 20000, Hi: 29999}, Checksum: underlay.ChecksumOn})
		must(t, err)
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
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		warm(t, v, a, b)
		eb := v.End(2)
		other := endpoint(t, netip.MustParseAddrPort("[fd00::9]:9"))
		if v.IP6 {
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
			{Parts: slices.Repeat([][]byte{{1}}, 1025), To: []frame.Endpoint{eb}, Flow: 1, DF: true},
		}
		ds[6].Set = 31
		send(t, a, ds...)
		for i, want := range []struct {
			lost uint16
			drop frame.Reason
		}{{1, frame.TooBig}, {1, frame.Unreachable}, {1, frame.Unreachable}, {}, {2, frame.TooBig}, {}, {1, frame.SendFailed}, {}, {1, frame.SendFailed}} {
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

func TestKindsClosed(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		warm(t, v, a, b)
		a.Close()
		ds := []frame.Datagram{to("late", 0, v.End(2), v.End(2), v.End(3))} // the MAC of 3 is unknown
		if err := a.Sender(0).Send(ds); !errors.Is(err, net.ErrClosed) || ds[0].Lost != 3 || ds[0].Drop != frame.PortDown {
			t.Error(err, ds[0].Lost, ds[0].Drop)
		}
		if _, err := a.Sockets(underlay.TxConfig{Checksum: underlay.ChecksumOff}); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestKindsAllocs(t *testing.T) {
	eachKind(t, func(t *testing.T, v *veth, a ported, b *underlay.UDP) {
		warm(t, v, a, b)
		ea, eb := endpoint(t, a.LocalAddr()), v.End(2)
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
			must(t, errors.Join(ss.Send(ds), sb.Send(back)))
			for n := 0; n < 32+len(want); n += len(batch.Frames) {
				must(t, rb.Read(batch))
			}
			for n := 0; n < 2; n += len(batch.Frames) {
				must(t, ra.Read(batch))
			}
		}); n != 0 {
			t.Errorf("%v allocations for a Send and its Reads", n)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	v := newVeth(t, false)
	for _, tc := range []struct {
		local string
		cfg   *Config
		want  string
	}{
		{"10.9.0.1:4789", nil, "Config.Device"},
		{"10.9.0.1:4789", &Config{Device: "nosuch"}, "no such device"},
		{"10.9.0.1:4789", &Config{Device: "lo"}, "not an Ethernet interface"},
		{"10.9.0.1:0", &Config{Device: "eth0"}, "port"},
		{"0.0.0.0:4789", &Config{Device: "eth0"}, "0.0.0.0"},
		{"239.1.1.1:4789", &Config{Device: "eth0"}, "multicast"},
		{"192.0.2.1:4789", &Config{Device: "eth0"}, "Config.Prefix: required"},
		{"10.9.0.1:4789", &Config{Device: "eth0", Prefix: netip.MustParsePrefix("fd09::/64")}, "Config.Prefix"},
		{"10.9.0.1:4789", &Config{Device: "eth0", Gateway: netip.MustParseAddr("fd09::1")}, "Config.Gateway"},
		{"10.9.0.1:4789", &Config{Device: "eth0", Gateway: netip.MustParseAddr("10.8.0.1")}, "Config.Gateway"},
		{"10.9.0.1:4789", &Config{Device: "eth0", Gateway: netip.MustParseAddr("10.9.0.1")}, "Config.Gateway"},
		{"10.9.0.1:4789", &Config{Device: "eth0", MAC: frame.MAC{1}}, "Config.MAC"},
		{"10.9.0.1:4789", &Config{Device: "eth0", DefaultTTL: 300}, "Config.DefaultTTL"},
		{"10.9.0.1:4789", &Config{Device: "eth0", Queues: 1000}, "Config.Queues"},
		{"10.9.0.1:4789", &Config{Device: "eth0", SrcPorts: underlay.PortRange{Lo: 9, Hi: 8}}, "Config.SrcPorts"},
	} {
		v.A.Do(func() {
			p, err := Listen(netip.MustParseAddrPort(tc.local), tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s %+v: %v, want %q", tc.local, tc.cfg, err, tc.want)
			}
			if err == nil {
				p.Close()
			}
		})
	}
	v.A.Do(func() {
		if _, err := Listen(v.At(1, 4789), &Config{Device: "nosuch"}); !errors.Is(err, unix.ENODEV) {
			t.Error(err)
		}
	})
}
