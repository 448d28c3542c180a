package l3

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var (
	_ vswitch.Stage = (*CrossConnect)(nil)
	_ vswitch.Stage = CrossConnectPathMTU{}
)

// A stubTunnel has names for peers, and says of each as often as it is told that it failed.
type stubTunnel struct {
	names  map[uint16]string
	failed map[uint16]int
	asked  int
}

func newStubTunnel() *stubTunnel {
	return &stubTunnel{map[uint16]string{1: "198.51.100.1", 2: "198.51.100.2", 3: "198.51.100.3"}, map[uint16]int{}, 0}
}

func (s *stubTunnel) PeerName(peer uint16) string { return s.names[peer] }
func (s *stubTunnel) Failed(peer uint16) bool {
	s.asked++
	if s.failed[peer] == 0 {
		return false
	}
	s.failed[peer]--
	return true
}

var near, far = frame.NewDest(1, 0), frame.NewDest(2, 3)

// A wireLab is a wire from a TUN to peer 3 of a tunnel.
type wireLab struct {
	*CrossConnect
	tunnel *stubTunnel
	sent   []injected
	full   bool
}

func newWireLab(t testing.TB) *wireLab {
	t.Helper()
	l := &wireLab{tunnel: newStubTunnel()}
	var err error
	l.CrossConnect, err = NewCrossConnect(&CrossConnectConfig{Near: near, Far: far, Tunnel: l.tunnel, Send: func(to frame.Dest, f *frame.Frame) bool {
		l.sent = append(l.sent, injected{f.VNI, to, f.Clone()})
		return !l.full
	}})
	check.OK(t, err)
	return l
}

// bare returns a packet from 10.0.10.1 to 10.0.20.4, or the like of IPv6, as an IP port has it.
func bare(t testing.TB, v6 bool, from frame.Dest, edit func(s *shape)) frame.Frame {
	t.Helper()
	s := between(v6, 1, 4)
	s.noEthernet = true
	if edit != nil {
		edit(&s)
	}
	f := frame.Make(s.bytes(t))
	f.Kind, f.From, f.VNI = frame.IPv4, from, 100
	if v6 {
		f.Kind = frame.IPv6
	}
	return f
}

// checkBareError fails the test unless b is an ICMP error from one address to another that
// quotes in, the packet it is about.
func checkBareError(t *testing.T, b, in []byte, v6 bool, typ4, typ6 uint16, mtu int, from, to netip.Addr) {
	t.Helper()
	var src, dst, quote []byte
	var typ, want uint16
	said := 0
	if v6 {
		p := packetOf(t, b, layers.LayerTypeIPv6)
		ip, c := p.NetworkLayer().(*layers.IPv6), p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
		src, dst, typ, want, quote = ip.SrcIP, ip.DstIP, uint16(c.TypeCode), typ6, c.Payload[4:]
		said = int(c.Payload[2])<<8 | int(c.Payload[3])
	} else {
		p := packetOf(t, b, layers.LayerTypeIPv4)
		ip, c := p.NetworkLayer().(*layers.IPv4), p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		src, dst, typ, want, quote = ip.SrcIP, ip.DstIP, uint16(c.TypeCode), typ4, c.Payload
		said = int(c.Seq)
	}
	if !bytes.Equal(src, from.AsSlice()) || !bytes.Equal(dst, to.AsSlice()) || typ != want || said != mtu {
		t.Errorf("IPv6 %v: type %#x, MTU %d from %v to %v, want %#x, %d from %v to %v", v6, typ, said, src, dst, want, mtu, from, to)
	}
	check.True(t, bytes.HasPrefix(in, quote) && len(quote) >= 28, "quotes % x", quote)
}

// What comes in at one end goes out at the other, as it is; the rest is nobody's business.
func TestCrossConnect(t *testing.T) {
	l := newWireLab(t)
	for _, v6 := range []bool{false, true} {
		for _, c := range []struct {
			name string
			from frame.Dest
			edit func(s *shape)
			want frame.Verdict
		}{
			{"out", near, nil, frame.Forward(far)},
			{"in", far, nil, frame.Forward(near)},
			{"in from another peer", frame.NewDest(2, 9), nil, frame.Forward(near)},
			{"TTL 1", near, func(s *shape) { s.ttl = 1 }, frame.Forward(far)},
			{"TTL 0", near, func(s *shape) { s.ttl = 0 }, frame.Forward(far)},
			{"to a group", near, func(s *shape) {
				s.dst = netip.MustParseAddr(map[bool]string{false: "224.0.0.5", true: "ff02::5"}[v6])
			}, frame.Forward(far)},
			{"from elsewhere", frame.NewDest(3, 0), nil, frame.Continue},
			{"from the switch itself", 0, nil, frame.Continue},
		} {
			f := bare(t, v6, c.from, c.edit)
			was, kind := bytes.Clone(f.Bytes()), f.Kind
			if v := l.Process(&f, frame.At{}); v != c.want || !bytes.Equal(f.Bytes(), was) || f.Kind != kind || f.From != c.from || f.VNI != 100 {
				t.Errorf("%s, IPv6 %v: %v, want %v; %+v", c.name, v6, v, c.want, f)
			}
		}
	}
	for _, from := range []frame.Dest{near, far} {
		f := frame.Make(between(false, 1, 4).bytes(t))
		f.From = from
		check.Equal(t, "Ethernet", l.Process(&f, frame.At{}), frame.Continue)
	}
	check.Equal(t, "frames sent", len(l.sent), 0)
	// Without a tunnel nobody is asked.
	w := check.Must(NewCrossConnect(&CrossConnectConfig{Near: near, Far: far, Send: func(frame.Dest, *frame.Frame) bool { return true }}))(t)
	f := bare(t, false, near, nil)
	check.Equal(t, "Process", w.Process(&f, frame.At{}), frame.Forward(far))
}

// The sender is told that its host is not reached, once; the packet goes on.
func TestWireFailed(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, payload := range []int{0, 64, 1400} {
			l := newWireLab(t)
			l.tunnel.failed[3], l.tunnel.failed[1] = 1, 5
			for k := range 3 {
				from := []frame.Dest{far, near, near}[k]
				f := bare(t, v6, from, func(s *shape) { s.payload = payload })
				was := bytes.Clone(f.Bytes())
				want := []frame.Verdict{frame.Forward(near), frame.Forward(far), frame.Forward(far)}[k]
				if v := l.Process(&f, frame.At{}); v != want || !bytes.Equal(f.Bytes(), was) {
					t.Errorf("packet %d: %v, or changed", k, v)
				}
				if told := len(l.sent); told != min(k, 1) {
					t.Fatalf("packet %d: told %d times", k, told)
				}
				if k == 1 {
					x := l.sent[0]
					if x.to != near || x.vni != 100 || x.f.Kind != f.Kind || x.f.GSO != (frame.GSO{}) {
						t.Errorf("%+v", x)
					}
					checkBareError(t, x.f.Bytes(), was, v6, 3<<8|1, 1<<8|3, 0, addrOf(v6, 20, 4), addrOf(v6, 10, 1))
				}
			}
		}
	}
}

// Of what nobody is told of; and no sender more often than ten times in a second.
func TestWireFailedInSilence(t *testing.T) {
	l := newWireLab(t)
	for _, c := range []struct {
		name string
		v6   bool
		edit func(s *shape)
		bits func(b []byte)
	}{
		{"ICMP error", false, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv4, 3 }, nil},
		{"ICMPv6 error", true, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 1 }, nil},
		{"from a group", false, func(s *shape) { s.src = netip.MustParseAddr("224.0.0.5") }, nil},
		{"to a group", false, func(s *shape) { s.dst = netip.MustParseAddr("224.0.0.5") }, nil},
		{"to a group of IPv6", true, func(s *shape) { s.dst = netip.MustParseAddr("ff02::5") }, nil},
		{"from ::", true, func(s *shape) { s.src = netip.MustParseAddr("::") }, nil},
		{"later fragment", false, nil, func(b []byte) { b[7] = 9; fixSum(b) }},
		{"header checksum", false, nil, func(b []byte) { b[10] ^= 1 }},
		{"version", false, nil, func(b []byte) { b[0] = 0x55 }},
		{"cut short", true, nil, func(b []byte) { b[4] = 0xff }},
	} {
		l.tunnel.failed[3] = 1
		f := bare(t, c.v6, near, c.edit)
		if c.bits != nil {
			c.bits(f.Bytes())
		}
		if v := l.Process(&f, frame.At{}); v != frame.Forward(far) || len(l.sent) != 0 || l.tunnel.failed[3] != 1 { // somebody else is to be told
			t.Errorf("%s: %v, told %d times", c.name, v, len(l.sent))
		}
		l.sent = nil
	}
	l.tunnel.failed[3] = 100
	for range 50 {
		f := bare(t, false, near, nil)
		l.Process(&f, frame.At{})
	}
	check.True(t, len(l.sent) == DefaultPerSender, "told %d times in a second", len(l.sent))
}

func fixSum(ip []byte) {
	ip[10], ip[11] = 0, 0
	sum := ^sum16(ip[:int(ip[0]&15)*4])
	ip[10], ip[11] = byte(sum>>8), byte(sum)
}

// Packets that do not fit: with DF and of IPv6 the sender is told in the name of the host
// they are for; others are cut, and the pieces go where the whole was going.
func TestCrossConnectPathMTU(t *testing.T) {
	const mtu = 1400
	for _, v6 := range []bool{false, true} {
		for _, from := range []frame.Dest{near, far} {
			l := newWireLab(t)
			f := bare(t, v6, from, func(s *shape) { s.payload = 1452 })
			in := bytes.Clone(f.Bytes())
			if v := l.PathMTU().Process(&f, frame.At{MTU: mtu, To: far}); v != frame.Reply || len(l.sent) != 0 {
				t.Fatalf("IPv6 %v: %v", v6, v)
			}
			checkBareError(t, f.Bytes(), in, v6, 3<<8|4, 2<<8, mtu, addrOf(v6, 20, 4), addrOf(v6, 10, 1))
		}
	}
	for _, n := range []int{1373, 2000, 8000} {
		l := newWireLab(t)
		f := bare(t, false, near, func(s *shape) { s.df, s.payload = false, n })
		in := bytes.Clone(f.Bytes())
		if v := l.PathMTU().Process(&f, frame.At{MTU: mtu, To: far}); v != frame.Consume || !bytes.Equal(f.Bytes(), in) {
			t.Fatalf("%v, or changed", v)
		}
		var all []byte
		for k, x := range l.sent {
			ip := packetOf(t, x.f.Bytes(), layers.LayerTypeIPv4).Layer(layers.LayerTypeIPv4).(*layers.IPv4)
			more := k < len(l.sent)-1
			if x.to != far || x.f.Kind != frame.IPv4 || x.f.Len() > mtu || int(ip.FragOffset)*8 != len(all) || (ip.Flags&layers.IPv4MoreFragments != 0) != more || ip.TTL != 64 || ip.Id != 7 {
				t.Errorf("fragment %d to %v: %d bytes, %+v", k, x.to, x.f.Len(), ip)
			}
			all = append(all, ip.Payload...)
		}
		if !bytes.Equal(all, in[20:]) || len(l.sent) != (n+8+mtu-24-1)/(mtu-24) {
			t.Errorf("%d bytes came out as %d in %d pieces", len(in)-20, len(all), len(l.sent))
		}
	}
}

func TestCrossConnectPathMTURefuses(t *testing.T) {
	cut := func(s *shape) { s.df, s.payload = false, 2000 }
	super := bare(t, false, near, cut)
	super.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOUDP, Size: 1500, CsumStart: uint16(super.Headroom() + 20), CsumOffset: 6, DataStart: uint16(super.Headroom() + 28)}
	damaged := bare(t, false, near, cut)
	damaged.Bytes()[10] ^= 1
	damagedDF := bare(t, false, near, func(s *shape) { s.payload = 2000 })
	damagedDF.Bytes()[10] ^= 1
	for _, c := range []struct {
		name string
		f    frame.Frame
		mtu  int
		full bool
		want frame.Verdict
	}{
		{"a superframe", super, 1400, false, frame.Drop(frame.TooBig)},
		{"an MTU that no link may have", bare(t, false, near, cut), 67, false, frame.Drop(frame.TooBig)},
		{"IPv6 below its least MTU", bare(t, true, near, cut), 1279, false, frame.Drop(frame.TooBig)},
		{"a header that is damaged", damaged, 1400, false, frame.Drop(frame.TooBig)},
		{"with DF, too", damagedDF, 1400, false, frame.Drop(frame.TooBig)},
		{"nowhere to go", bare(t, false, near, cut), 1400, true, frame.Drop(frame.PortFull)},
		{"what fits", bare(t, true, near, nil), 1400, false, frame.Continue},
		{"what fits, with DF", bare(t, false, near, nil), 1400, false, frame.Continue},
		{"of the switch's own", bare(t, true, 0, func(s *shape) { s.payload = 2000 }), 1400, false, frame.Drop(frame.TooBig)},
	} {
		l := newWireLab(t)
		l.full = c.full
		was := bytes.Clone(c.f.Bytes())
		if v := l.PathMTU().Process(&c.f, frame.At{MTU: c.mtu, To: far}); v != c.want || !bytes.Equal(c.f.Bytes(), was) || !c.full && len(l.sent) != 0 {
			t.Errorf("%s: %v, want %v; %d sent", c.name, v, c.want, len(l.sent))
		}
	}
	// Frames are answered as TooBig does, and never cut.
	l := newWireLab(t)
	s := between(false, 1, 4)
	s.payload = 2000
	f := frame.Make(s.bytes(t))
	f.From = near
	if v := l.PathMTU().Process(&f, frame.At{MTU: 1414, To: far}); v != frame.Reply || gopacket.NewPacket(f.Bytes(), layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeICMPv4) == nil {
		t.Error(v)
	}
}

func TestCrossConnectConfig(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	for name, c := range map[string]CrossConnectConfig{
		"Near: ":     {Far: far, Send: send},
		"Far: ":      {Near: near, Send: send},
		"Far: 1/3: ": {Near: near, Far: frame.NewDest(1, 3), Send: send},
		"Send: ":     {Near: near, Far: far},
	} {
		if w, err := NewCrossConnect(&c); err == nil || w != nil || !strings.HasPrefix(err.Error(), "l3: CrossConnectConfig."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What passes allocates nothing.
func TestWireAllocations(t *testing.T) {
	l := newWireLab(t)
	for _, v6 := range []bool{false, true} {
		for _, from := range []frame.Dest{near, far} {
			f := bare(t, v6, from, nil)
			if n := testing.AllocsPerRun(100, func() {
				if v := l.Process(&f, frame.At{}); v.Action() != frame.ActForward {
					t.Fatal(v)
				}
			}); n != 0 {
				t.Errorf("IPv6 %v from %v: %v allocations", v6, from, n)
			}
		}
	}
}
