package l3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Errors go back the way the packet came, quote it, and come from the interface it came in
// on.
func TestErrors(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, c := range []struct {
			name       string
			edit       func(s *shape)
			typ4, typ6 uint16
		}{
			{"TTL 1", func(s *shape) { s.ttl = 1 }, 11 << 8, 3 << 8},
			{"TTL 0", func(s *shape) { s.ttl = 0 }, 11 << 8, 3 << 8},
			{"no route", func(s *shape) { s.dst = addrOf(v6, 99, 1) }, 3 << 8, 1 << 8},
			{"UDP to the gateway", func(s *shape) { s.dst = addrOf(v6, 20, 254) }, 3<<8 | 3, 1<<8 | 4},
			{"a long one", func(s *shape) { s.ttl, s.payload = 1, 1400 }, 11 << 8, 3 << 8},
			{"an empty one", func(s *shape) { s.ttl, s.payload = 1, 0 }, 11 << 8, 3 << 8},
		} {
			l := newLab(t, nil)
			s := between(v6, 1, 4)
			c.edit(&s)
			in := s.bytes(t)
			v, f := l.in(l.i10, in)
			check.Need(t, v == frame.Reply, "%s, IPv6 %v: %v", c.name, v6, v)
			checkError(t, f.Bytes(), in, v6, c.typ4, c.typ6, at4(10, 254), at6(10, 254))
			// The same where the answer does not fit in front of the packet.
			g := frame.Over(bytes.Clone(in), 0, len(in))
			g.From, g.VNI = frame.NewDest(9, 3), 10
			switch v := l.i10.Process(&g, frame.At{}); {
			case v == frame.Reply: // it was longer than the answer
			case v == frame.Consume && len(l.injected) == 1 && l.injected[0].vni == 10:
				checkError(t, l.injected[0].f.Bytes(), in, v6, c.typ4, c.typ6, at4(10, 254), at6(10, 254))
			default:
				t.Errorf("%s, IPv6 %v: %v", c.name, v6, v)
			}
			if st := l.i10.Stats(); st.Errors != 2 {
				t.Errorf("%+v", st)
			}
		}
	}
}

func checkError(t *testing.T, out, in []byte, v6 bool, typ4, typ6 uint16, from4, from6 netip.Addr) {
	t.Helper()
	p := packetOf(t, out, layers.LayerTypeEthernet)
	eth := p.LinkLayer().(*layers.Ethernet)
	if frame.MAC(eth.DstMAC) != frame.MAC(in[6:]) || frame.MAC(eth.SrcMAC) != frame.MAC(in) {
		t.Errorf("from %v to %v", eth.SrcMAC, eth.DstMAC)
	}
	var quote []byte
	if v6 {
		ip, c := p.NetworkLayer().(*layers.IPv6), p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
		if a, _ := netip.AddrFromSlice(ip.SrcIP); uint16(c.TypeCode) != typ6 || a != from6 || !bytes.Equal(ip.DstIP, in[22:38]) {
			t.Errorf("%v from %v to %v", c.TypeCode, ip.SrcIP, ip.DstIP)
		}
		quote = c.Payload[4:]
	} else {
		ip, c := p.NetworkLayer().(*layers.IPv4), p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		if a, _ := netip.AddrFromSlice(ip.SrcIP); uint16(c.TypeCode) != typ4 || a != from4 || !bytes.Equal(ip.DstIP, in[26:30]) {
			t.Errorf("%v from %v to %v", c.TypeCode, ip.SrcIP, ip.DstIP)
		}
		quote = c.Payload
	}
	check.True(t, bytes.HasPrefix(in[14:], quote) && len(quote) >= 28, "quotes % x", quote)
}

// No errors about errors, later fragments, nor beyond the rate.
func TestNoErrors(t *testing.T) {
	l := newLab(t, &GatewayConfig{PerSender: 3})
	s := between(false, 1, 4)
	s.ttl, s.proto, s.icmp = 1, layers.IPProtocolICMPv4, 3
	check.Equal(t, "about an error", l.verdict(l.i10, s.bytes(t)), frame.Drop(frame.TTL))
	s = between(true, 1, 4)
	s.ttl, s.proto, s.icmp = 1, layers.IPProtocolICMPv6, 1
	check.Equal(t, "about an error of IPv6", l.verdict(l.i10, s.bytes(t)), frame.Drop(frame.TTL))
	s = between(false, 1, 4)
	s.ttl = 1
	b := s.bytes(t)
	b[21] = 9
	b[24], b[25] = 0, 0
	sum := ^sum16(b[14:34])
	b[24], b[25] = byte(sum>>8), byte(sum)
	check.Equal(t, "about a later fragment", l.verdict(l.i10, b), frame.Drop(frame.TTL))
	for k := range 5 {
		want := frame.Reply
		if k >= 3 {
			want = frame.Drop(frame.TTL)
		}
		check.Equal(t, fmt.Sprintf("error %d", k), l.verdict(l.i10, s.bytes(t)), want)
	}
	if st := l.i10.Stats(); st.Errors != 3 || st.Limited != 2 {
		t.Errorf("%+v", st)
	}
}
