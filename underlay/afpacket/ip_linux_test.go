package afpacket

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/underlay"
)

// ip opens an underlay of IP-in-IP at host a, address 1, and raw sockets at host b.
func (v *veth) ip(cfg Config) (*Underlay, *underlay.IP) {
	v.T.Helper()
	cfg.Device = "eth0"
	p := netns.Open(v.T, v.A, func() (*Underlay, error) { return ListenIP(v.At(1, 0).Addr(), &cfg) })
	return p, netns.Open(v.T, v.B, func() (*underlay.IP, error) { return underlay.ListenIP(v.At(2, 0).Addr(), nil) })
}

// inner makes an IP packet of n bytes, as far as an underlay looks.
func inner(version byte, n int) string {
	return string(version<<4) + strings.Repeat("x", n-1)
}

// Packets in IP go both ways with raw sockets of the kernel, with their fields; a run leaves in pieces, each with
// a header.
func TestIP(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		for _, noOffload := range []bool{false, true} {
			p, b := v.ip(Config{NoOffload: noOffload, MAC: frame.MAC{2, 1, 2, 3, 4, 5}})
			if p.LocalAddr() != v.At(1, 0) || p.Is4() == v.IP6 || p.MTU() != 1500 {
				t.Errorf("%v", p.LocalAddr())
			}
			us, them := v.End(1), v.End(2)
			us.Port, them.Port = 0, 0
			four, six := inner(4, 60), inner(6, 90)
			send(t, p, to(four, 1, them)) // waits for the next hop
			if g := underlaytest.ReceiveFrom(t, b, 0, 1)[0]; g.Payload != four || g.Kind != frame.IPv4 || g.Outer.TTL != 64 || g.Outer.Src != us {
				t.Errorf("%+v", g)
			}
			d := to(six, 1, them)
			d.TOS, d.TTL = 0xb9, 7
			send(t, p, d)
			if g := underlaytest.ReceiveFrom(t, b, 1, 1)[0]; g.Payload != six || g.Kind != frame.IPv6 || g.Outer.TTL != 7 || g.Outer.TOS != 0xb9 {
				t.Errorf("%+v", g)
			}
			seen := v.B.Capture("eth0", "proto 4 or ip6 proto 4 or ip6 proto 41")
			run := frame.Datagram{Seg: 1000, To: []frame.Endpoint{them}}
			for _, n := range []int{1000, 1000, 503} {
				x := inner(4, n)
				run.Parts = append(run.Parts, []byte(x[:20]), []byte(x[20:]))
			}
			send(t, p, run)
			for i, g := range underlaytest.ReceiveFrom(t, b, 0, 3) {
				if g.Payload != inner(4, []int{1000, 1000, 503}[i]) {
					t.Errorf("segment %d: %d bytes", i, len(g.Payload))
				}
			}
			if ids := map[uint16]bool{}; !v.IP6 {
				for _, x := range seen.Stop() {
					h := wire.IPv4(x.Data[14:])
					ids[h.ID()] = true
					if !h.ChecksumOK() || x.Data[20]&0x40 != 0 {
						t.Errorf("%x", h[:20])
					}
				}
				if len(ids) != 3 {
					t.Errorf("identifications %v without DF", ids)
				}
			}

			send(t, b, to(six, 1, us), to(four, 1, us))
			got := receive(t, p, 2)
			slices.SortFunc(got, func(a, b underlaytest.Got) int { return int(a.Kind) - int(b.Kind) })
			for i, want := range []struct {
				payload string
				kind    frame.Kind
			}{{four, frame.IPv4}, {six, frame.IPv6}} {
				if g := got[i]; g.Payload != want.payload || g.Kind != want.kind || g.Outer.Src != them || g.Outer.Dst != us || g.Drop != 0 {
					t.Errorf("%+v", g)
				}
			}

			ds := []frame.Datagram{to(inner(5, 60), 1, them), to("", 1, them), to(inner(4, 1500), 1, them)}
			send(t, p, ds...)
			for i, why := range []frame.Reason{frame.BadHeader, frame.BadHeader, frame.TooBig} {
				if ds[i].Lost != 1 || ds[i].Drop != why {
					t.Errorf("%d lost, %v, want %v", ds[i].Lost, ds[i].Drop, why)
				}
			}
			if st := p.Stats(); st.TxDatagrams != 5 || st.RxDatagrams != 2 || st.TxRuns != 0 {
				t.Errorf("%+v", st)
			}
			if _, err := p.Sockets(underlay.TxConfig{Checksum: underlay.ChecksumOn}); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("Sockets: %v", err)
			}
			if err := p.Join(netip.MustParseAddr("239.1.1.1")); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("Join: %v", err)
			}
			p.Close()
			b.Close()
		}
	})
}

// A fragment is dropped by name. Over IPv6, options in front of the inner packet are not.
func TestIPReceive(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		p, b := v.ip(Config{})
		us := v.End(1)
		us.Port = 0
		if !v.IP6 {
			d := to(inner(4, 2000), 1, us)
			d.DF = false
			send(t, b, d)
			for _, g := range receive(t, p, 2) {
				if g.Drop != frame.Fragment {
					t.Errorf("%+v", g)
				}
			}
			return
		}
		x := inner(6, 60)
		for _, c := range []struct {
			next byte
			ext  []byte
			drop frame.Reason
			kind frame.Kind
		}{
			{60, []byte{41, 0, 4, 1, 4, 1, 0, 0}, 0, frame.IPv6},
			{60, append([]byte{41, 1}, make([]byte, 14)...), 0, frame.IPv6},
			{60, []byte{41, 99, 4, 1, 4, 1, 0, 0}, frame.BadHeader, 0},
			{0, []byte{41, 0, 4, 1, 4, 1, 0, 0}, frame.BadHeader, 0},
			{44, []byte{41, 0, 0, 1, 0, 0, 0, 1}, frame.Fragment, 0},
			{41, nil, 0, frame.IPv6},
			{4, nil, 0, frame.IPv4},
		} {
			h := wire.IPv6Header{NextHeader: c.next, HopLimit: 9, PayloadLen: uint16(len(c.ext) + len(x)), Src: v.End(2).IP, Dst: us.IP}
			head := make([]byte, 40)
			h.Put(head)
			v.B.Inject("eth0", slices.Concat(p.mac[:], []byte{2, 0, 0, 0, 0, 9, 0x86, 0xdd}, head, c.ext, []byte(x)))
			if g := receive(t, p, 1)[0]; g.Drop != c.drop || g.Kind != c.kind || c.drop == 0 && g.Payload != x {
				t.Errorf("next header %d: %+v", c.next, g)
			}
		}
	})
}

// ICMP errors of a router about packets in IP are told.
func TestIPErrors(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v *veth) {
		n := netns.New(t)
		r, c := n.Router("r"), n.Host("c")
		cidr := map[bool][2]string{false: {"10.9.0.254/24", "10.8.0.1/24"}, true: {"fd09::fe/64", "fd08::1/64"}}[v.IP6]
		n.Link(v.A, "", r, cidr[0])
		n.Link(r, cidr[1], c, "")
		r.MTU("eth1", 1400)
		r.Ready()
		gw := netip.MustParsePrefix(cidr[0])
		p := netns.Open(t, v.A, func() (*Underlay, error) {
			return ListenIP(v.At(1, 0).Addr(), &Config{Device: "eth1", Prefix: gw, Gateway: gw.Addr()})
		})
		var long, lost underlaytest.Reports
		p.PathMTU(long.PathMTU)
		p.Unreachable(lost.Unreachable)
		far := netip.MustParsePrefix(cidr[1]).Addr().Next()
		e, err := frame.EndpointFrom(netip.AddrPortFrom(far, 0))
		must(t, err)
		send(t, p, to(inner(4, 1420), 1, e))
		long.WantMTU(t, 1400)
		nowhere, err := frame.EndpointFrom(netip.AddrPortFrom(map[bool]netip.Addr{false: netip.MustParseAddr("10.7.0.1"), true: netip.MustParseAddr("fd07::1")}[v.IP6], 0))
		must(t, err)
		send(t, p, to(inner(6, 100), 1, nowhere))
		lost.WantMTU(t, 0)
		if st := p.Stats(); st.Errors.TooBig != 1 || st.Errors.Unreachable != 1 {
			t.Errorf("%+v", st.Errors)
		}
	})
}

func TestIPConfigErrors(t *testing.T) {
	local := netip.MustParseAddr("10.9.0.1")
	for want, cfg := range map[string]*Config{
		"SrcPorts: IP-in-IP has no UDP header":        {Device: "eth0", SrcPorts: underlay.PortRange{Lo: 1, Hi: 2}},
		"Checksum: IP-in-IP has no UDP header":        {Device: "eth0", Checksum: underlay.ChecksumOn},
		"ZeroChecksum6RX: IP-in-IP has no UDP header": {Device: "eth0", ZeroChecksum6RX: true},
		"Device: the name of an interface":            nil,
	} {
		_, err := ListenIP(local, cfg)
		if err == nil || !strings.HasPrefix(err.Error(), "afpacket: Config."+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
