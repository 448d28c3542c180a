package capture

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/vtep"
)

// fakeUnderlay hands over one packet at a time and keeps what it is told to send.
type fakeUnderlay struct {
	fake.Underlay
	local  netip.AddrPort
	in     []byte
	outer  frame.Outer
	sent   []frame.Datagram
	told   func(frame.Endpoint, int, []byte)
	paused int
	closed int
}

func newFakeUnderlay(local string) *fakeUnderlay {
	return &fakeUnderlay{local: netip.MustParseAddrPort(local)}
}

func (u *fakeUnderlay) Readers() []frame.Reader                     { return []frame.Reader{u} }
func (u *fakeUnderlay) Sender(w int) frame.Sender                   { return fakeSender{u, w} }
func (u *fakeUnderlay) LocalAddr() netip.AddrPort                   { return u.local }
func (u *fakeUnderlay) MTU() int                                    { return 1499 }
func (u *fakeUnderlay) PathMTU(f func(frame.Endpoint, int, []byte)) { u.told = f }
func (u *fakeUnderlay) Pause()                                      { u.paused++ }
func (u *fakeUnderlay) Resume()                                     { u.paused-- }
func (u *fakeUnderlay) Close() error                                { u.closed++; return net.ErrClosed }

func (u *fakeUnderlay) Read(b *frame.Batch) error {
	b.Reset()
	b.Borrow(u.in, 0, len(u.in))
	b.Outer[0] = u.outer
	return nil
}

type fakeSender struct {
	u *fakeUnderlay
	w int
}

func (s fakeSender) Send(ds []frame.Datagram) error {
	if s.w == 7 {
		s.u.sent = append(s.u.sent, ds...)
	}
	return nil
}

func endpointOf(t testing.TB, s string) frame.Endpoint {
	t.Helper()
	e := check.Must(frame.EndpointFrom(netip.MustParseAddrPort(s)))(t)
	return e
}

// want is a packet of the underlay as gopacket makes it. Without ports it is IP in IP.
type want struct {
	src, dst string
	tos, ttl uint8
	df       bool
	payload  []byte
}

func (w want) bytes(t testing.TB) []byte {
	t.Helper()
	src, dst := netip.MustParseAddrPort(w.src), netip.MustParseAddrPort(w.dst)
	raw, is4 := dst.Port() == 0, dst.Addr().Is4()
	proto := layers.IPProtocolUDP
	switch {
	case raw && len(w.payload) > 0 && w.payload[0]>>4 == 6:
		proto = layers.IPProtocolIPv6
	case raw:
		proto = layers.IPProtocolIPv4
	}
	ip4 := &layers.IPv4{Version: 4, TOS: w.tos, TTL: w.ttl, Protocol: proto, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
	if w.df {
		ip4.Flags = layers.IPv4DontFragment
	}
	ip6 := &layers.IPv6{Version: 6, TrafficClass: w.tos, HopLimit: w.ttl, NextHeader: proto, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
	udp := &layers.UDP{SrcPort: layers.UDPPort(src.Port()), DstPort: layers.UDPPort(dst.Port())}
	all := []gopacket.SerializableLayer{ip6, udp, gopacket.Payload(w.payload)}
	udp.SetNetworkLayerForChecksum(ip6)
	if is4 {
		all[0] = ip4
		udp.SetNetworkLayerForChecksum(ip4)
	}
	if raw {
		all = slices.Delete(all, 1, 2)
	}
	b := packets.Of(all...)
	if is4 && !raw {
		b[26], b[27] = 0, 0 // no UDP checksum over IPv4
	}
	return b
}

// captures captures what f does with an underlay and compares the file.
func captures(t *testing.T, under *fakeUnderlay, f func(u vtep.Underlay), wants ...want) {
	t.Helper()
	c := newCapture(t, nil)
	u := c.Underlay(under)
	var file bytes.Buffer
	check.OK(t, c.Start(&file))
	f(u)
	check.OK(t, c.Stop())
	got := entries(t, file.Bytes())
	if len(got) != len(wants) {
		t.Fatalf("%d packets, want %d", len(got), len(wants))
	}
	for i, g := range got {
		w := wants[i].bytes(t)
		if g.intf != under.local.String() || g.link != layers.LinkTypeRaw || g.length != len(w) || !bytes.Equal(g.data, w) {
			t.Errorf("packet %d on %s, link type %v:\ngot  %x\nwant %x", i, g.intf, g.link, g.data, w)
		}
	}
}

func TestCaptureOfSentDatagrams(t *testing.T) {
	p := fake.Ethernet(1000, 7)
	for _, a := range []struct{ local, one, two, group string }{
		{"192.0.2.1", "192.0.2.2:4789", "198.51.100.3:8472", "239.1.2.3:4789"},
		{"[2001:db8::1]", "[2001:db8::2]:4789", "[2001:db8::3]:8472", "[ff02::5]:4789"},
	} {
		is4 := a.local[0] != '['
		under := newFakeUnderlay(a.local + ":4789")
		one, two, group := endpointOf(t, a.one), endpointOf(t, a.two), endpointOf(t, a.group)
		ds := []frame.Datagram{
			{Parts: [][]byte{p[:8], p[8:71], p[71:71], p[71:100]}, To: []frame.Endpoint{one, two}, Flow: 3, TOS: 0xb9, TTL: 17, DF: true},
			{Parts: [][]byte{p[:5], p[5:100], p[100:200]}, To: []frame.Endpoint{two, one}, Seg: 51, Flow: 65535},
			{Parts: [][]byte{p[:99]}, To: []frame.Endpoint{group}, Seg: 500, Flow: 16384},
			{To: []frame.Endpoint{one}},
			{Parts: [][]byte{make([]byte, maxPayload+1)}, To: []frame.Endpoint{one}}, // impossible
			{Parts: [][]byte{p}},
		}
		wants := []want{
			{a.local + ":49155", a.one, 0xb9, 17, is4, p[:100]},
			{a.local + ":49155", a.two, 0xb9, 17, is4, p[:100]},
		}
		for _, to := range []string{a.two, a.one} {
			for off := 0; off < 200; off += 51 {
				wants = append(wants, want{a.local + ":65535", to, 0, 64, false, p[off:min(off+51, 200)]})
			}
		}
		wants = append(wants,
			want{a.local + ":49152", a.group, 0, 1, false, p[:99]},
			want{a.local + ":49152", a.one, 0, 64, false, nil})
		captures(t, under, func(u vtep.Underlay) {
			check.OK(t, u.Sender(7).Send(ds))
		}, wants...)
		if len(under.sent) != len(ds) || &under.sent[0].Parts[0][0] != &p[0] || under.sent[1].Seg != 51 {
			t.Errorf("%d datagrams reached the underlay", len(under.sent))
		}
	}
}

func TestCaptureOfReceivedPackets(t *testing.T) {
	p := fake.Ethernet(99, 1)
	for _, a := range []struct{ local, bound, src, group string }{
		{"192.0.2.1:4789", "192.0.2.1:4789", "192.0.2.2:50000", "239.1.2.3:4789"},
		{"[2001:db8::1]:4789", "[2001:db8::1]:4789", "[2001:db8::2]:50000", "[ff02::5]:4789"},
		{"0.0.0.0:8472", "0.0.0.0:8472", "192.0.2.2:50000", "192.0.2.9:8472"},
	} {
		under := newFakeUnderlay(a.bound)
		captures(t, under, func(u vtep.Underlay) {
			b := frame.NewBatch(nil)
			for _, dst := range []frame.Endpoint{{}, endpointOf(t, a.group), endpointOf(t, a.group).WithPort(0)} {
				under.in, under.outer = p, frame.Outer{Src: endpointOf(t, a.src), Dst: dst, TOS: 0x03, TTL: 63}
				if err := u.Readers()[0].Read(b); err != nil || !bytes.Equal(b.Frames[0].Bytes(), p) || b.Outer[0] != under.outer {
					t.Fatal(err)
				}
			}
		},
			want{a.src, a.local, 3, 63, false, p},
			want{a.src, a.group, 3, 63, false, p},
			want{a.src, a.group, 3, 63, false, p})
	}
}

// A sum that comes out as zero is sent as all ones (RFC 8200, section 8.1).
func TestCaptureUDPChecksumOfZero(t *testing.T) {
	var h outerHeader
	a := addresses{src: frame.Endpoint{Port: 1}, dst: frame.Endpoint{Port: 2}}
	b := h.fill(&a, [][]byte{{0, 0}}, 2)
	sum := uint16(b[46])<<8 | uint16(b[47])
	b = h.fill(&a, [][]byte{{byte(sum >> 8)}, {byte(sum)}}, 2)
	if b[46] != 0xff || b[47] != 0xff {
		t.Errorf("checksum %x", b[46:48])
	}
}

func TestCaptureUnderlayIsOtherwiseTheSame(t *testing.T) {
	under := newFakeUnderlay("192.0.2.1:4789")
	u := newCapture(t, nil).Underlay(under)
	u.PathMTU(func(frame.Endpoint, int, []byte) {})
	u.Pause()
	if u.LocalAddr() != under.local || u.MTU() != 1499 || under.told == nil || under.paused != 1 {
		t.Errorf("%v, MTU %d, paused %d", u.LocalAddr(), u.MTU(), under.paused)
	}
	u.Resume()
	if err := u.Close(); err != net.ErrClosed || under.paused != 0 || under.closed != 1 {
		t.Errorf("Close: %v", err)
	}
	for _, nothing := range []vtep.Underlay{nil, (*fakeUnderlay)(nil)} {
		if u := newCapture(t, nil).Underlay(nothing); u != nil {
			t.Errorf("%T is captured", nothing)
		}
	}
}
