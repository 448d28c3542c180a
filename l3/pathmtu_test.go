package l3

import (
	"bytes"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Routed packets that do not fit: senders are told, or IPv4 without DF is cut.
func TestPathMTU(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		l.knows(l.i10, 1, 0)
		l.knows(l.i20, 4, 0)
		s := between(v6, 1, 4)
		s.payload, s.ttl, s.to, s.from = 1472, 63, host(4), gate(20)
		if v6 {
			s.payload = 1452
		}
		f := frame.Make(s.bytes(t))
		f.VNI = 20
		v := l.i20.PathMTU().Process(&f, frame.At{MTU: 1464})
		check.Need(t, v == frame.Reenter && f.VNI == 10, "IPv6 %v: %v in VNI %d", v6, v, f.VNI)
		b := f.Bytes()
		pk := packetOf(t, b, layers.LayerTypeEthernet)
		check.True(t, frame.MAC(b) == host(1) && frame.MAC(b[6:]) == gate(10), "% x", b[:14])
		if v6 {
			c := pk.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
			if c.TypeCode.Type() != 2 || !bytes.Equal(c.Payload[:4], []byte{0, 0, 1450 >> 8, 1450 & 0xff}) {
				t.Errorf("%v % x", c.TypeCode, c.Payload[:4])
			}
		} else if c := pk.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); uint16(c.TypeCode) != 3<<8|4 || c.Seq != 1450 {
			t.Errorf("%v, MTU %d", c.TypeCode, c.Seq)
		}
	}
	l := newLab(t, nil)
	for _, size := range []int{1423, 1424, 2000, 8972} {
		l.injected = nil
		s := between(false, 1, 4)
		s.df, s.payload, s.to, s.from = false, size, host(4), gate(20)
		s.options = []layers.IPv4Option{{OptionType: 0x94, OptionLength: 4, OptionData: []byte{0, 0}}}
		in := s.bytes(t)
		f := frame.Make(in)
		f.VNI = 20
		if v := l.i20.PathMTU().Process(&f, frame.At{MTU: 1464}); v != frame.Consume {
			t.Fatalf("%v", v)
		}
		var all []byte
		for k, x := range l.injected {
			b := x.f.Bytes()
			ip := packetOf(t, b, layers.LayerTypeEthernet).NetworkLayer().(*layers.IPv4)
			more := k < len(l.injected)-1
			if len(b) > 1464 || int(ip.FragOffset)*8 != len(all) || (ip.Flags&layers.IPv4MoreFragments != 0) != more || ip.Id != 7 || len(ip.Options) != 1 {
				t.Errorf("fragment %d: %d bytes, %+v", k, len(b), ip)
			}
			all = append(all, ip.Payload...)
		}
		check.True(t, bytes.Equal(all, in[14+24:]), "%d bytes came out as %d", len(in)-38, len(all))
	}
	bridged := frame.Make(between(false, 1, 4).bytes(t))
	bridged.From = frame.NewDest(1, 0)
	check.Equal(t, "bridged", l.i20.PathMTU().Process(&bridged, frame.At{MTU: 90}), frame.Continue)
}
