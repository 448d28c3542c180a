package l3

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// syn4 is an IPv4 SYN whose options begin with pad no-operations; syn6 one of IPv6.
func synOf(t testing.TB, v6 bool, mss uint16, pad int, flags func(*layers.TCP), vids ...uint16) []byte {
	t.Helper()
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: 3, SYN: true, Window: 1000}
	for range pad {
		tcp.Options = append(tcp.Options, layers.TCPOption{OptionType: layers.TCPOptionKindNop})
	}
	tcp.Options = append(tcp.Options,
		layers.TCPOption{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{byte(mss >> 8), byte(mss)}},
		layers.TCPOption{OptionType: layers.TCPOptionKindSACKPermitted, OptionLength: 2})
	if flags != nil {
		flags(tcp)
	}
	var ls []gopacket.SerializableLayer
	if v6 {
		ip := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolTCP, SrcIP: ip6A, DstIP: ip6B}
		tcp.SetNetworkLayerForChecksum(ip)
		ls = append(ether(layers.EthernetTypeIPv6, vids...), ip, tcp)
	} else {
		ip := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: net.IP(ip4A), DstIP: net.IP(ip4B)}
		tcp.SetNetworkLayerForChecksum(ip)
		ls = append(ether(layers.EthernetTypeIPv4, vids...), ip, tcp)
	}
	return packets.Of(ls...)
}

// What comes out is what gopacket writes for the smaller size: options and checksum, at
// even and at odd places.
func TestMSSClamp(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		least := uint16(1450 - 40)
		if v6 {
			least = 1450 - 60
		}
		for pad := range 4 {
			for _, vids := range [][]uint16{nil, {7}, {7, 9}} {
				for _, mss := range []uint16{least - 1, least, least + 1, 8960, 65535} {
					c := check.Must(NewMSSClamp(1450))(t)
					f := frame.Make(synOf(t, v6, mss, pad, nil, vids...))
					if v := c.Process(&f, frame.At{}); v != frame.Continue {
						t.Fatal(v)
					}
					if want := synOf(t, v6, min(mss, least), pad, nil, vids...); !bytes.Equal(f.Bytes(), want) {
						t.Errorf("IPv6 %v, MSS %d, %d in front, tags %v:\n% x, want\n% x", v6, mss, pad, vids, f.Bytes(), want)
					}
					if (c.Clamped() == 1) != (mss > least) {
						t.Errorf("%d clamped", c.Clamped())
					}
				}
			}
		}
		c := check.Must(NewMSSClamp(1450))(t)
		for name, in := range map[string][]byte{
			"no SYN": synOf(t, v6, 9000, 0, func(h *layers.TCP) { h.SYN = false }),
			"cut":    synOf(t, v6, 9000, 0, nil)[:60],
			"UDP":    between(v6, 1, 4).bytes(t),
		} {
			f := frame.Make(in)
			if c.Process(&f, frame.At{}); !bytes.Equal(f.Bytes(), in) {
				t.Errorf("%s: changed", name)
			}
		}
		f := frame.Make(synOf(t, v6, 9000, 0, nil)[14:])
		f.Kind = frame.IPv4
		if v6 {
			f.Kind = frame.IPv6
		}
		f.GSO = frame.GSO{Flags: frame.NeedsCsum}
		sum := bytes.Clone(f.Bytes()[f.Len()-28+16 : f.Len()-28+18])
		if c.Process(&f, frame.At{}); c.Clamped() != 1 || !bytes.Equal(f.Bytes()[f.Len()-28+16:f.Len()-28+18], sum) {
			t.Errorf("an unfinished checksum was changed; %d clamped", c.Clamped())
		}
	}
	for _, mtu := range []int{67, 65536, -1} {
		check.True(t, check.Err(NewMSSClamp(mtu)) != nil, "MTU %d", mtu)
	}
}

func FuzzMSSClamp(f *testing.F) {
	f.Add(synOf(f, false, 9000, 1, nil))
	f.Add(synOf(f, true, 9000, 0, nil, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _ := NewMSSClamp(1450)
		g := frame.Make(b)
		if c.Process(&g, frame.At{}); g.Len() != len(b) || c.Clamped() == 0 && !bytes.Equal(g.Bytes(), b) {
			t.Error("changed, and not counted")
		}
	})
}
