package l3

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// udpTo has gopacket write a UDP datagram from host 1 of segment 10 to its gateway.
func udpTo(t *testing.T, v6 bool, dst netip.Addr, port uint16, payload string) []byte {
	eth := &layers.Ethernet{SrcMAC: host(1).HardwareAddr(), DstMAC: gate(10).HardwareAddr(), EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 50000, DstPort: layers.UDPPort(port)}
	src := addrOf(v6, 10, 1)
	var ip gopacket.SerializableLayer
	if v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		x := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolUDP, HopLimit: 255, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		udp.SetNetworkLayerForChecksum(x)
		ip = x
	} else {
		x := &layers.IPv4{Version: 4, Protocol: layers.IPProtocolUDP, TTL: 255, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		udp.SetNetworkLayerForChecksum(x)
		ip = x
	}
	b := gopacket.NewSerializeBuffer()
	check.OK(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(payload)))
	return b.Bytes()
}

// Datagrams to the gateway's own addresses reach who listens on their port; those that are wrong do not.
func TestListen(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		var got []string
		check.OK(t, l.g.Listen(4000, func(d Datagram) {
			got = append(got, d.Src.String()+" > "+d.Dst.String()+" "+string(d.Payload))
			check.True(t, d.TTL == 255 && d.Interface == l.i10, "TTL %d, vni %d", d.TTL, d.Interface.VNI())
		}))
		check.ErrorHas(t, l.g.Listen(4000, func(Datagram) {}), "l3: ", "UDP port 4000: is in use")
		for _, dst := range []netip.Addr{addrOf(v6, 10, 254), addrOf(v6, 20, 254)} { // of any interface
			got = nil
			good := udpTo(t, v6, dst, 4000, "hello")
			check.Equal(t, "verdict", l.verdict(l.i10, good), frame.Consume)
			want := netip.AddrPortFrom(addrOf(v6, 10, 1), 50000).String() + " > " + netip.AddrPortFrom(dst, 4000).String() + " hello"
			check.True(t, len(got) == 1 && got[0] == want, "%q, want %q", got, want)
		}
		got = nil
		udp := wire.EthernetLen + wire.IPv4Len
		if v6 {
			udp = wire.EthernetLen + wire.IPv6Len
		}
		good := udpTo(t, v6, addrOf(v6, 10, 254), 4000, "hello")
		for _, c := range []struct {
			name string
			edit func(b []byte)
			want frame.Reason
		}{
			{"checksum", func(b []byte) { b[udp+8]++ }, frame.BadChecksum},
			{"too long", func(b []byte) { b[udp+4]++ }, frame.BadHeader},
			{"too short", func(b []byte) { b[udp+5] = 7 }, frame.BadHeader},
		} {
			b := append([]byte(nil), good...)
			c.edit(b)
			check.Equal(t, c.name, l.verdict(l.i10, b), frame.Drop(c.want))
		}
		none := append([]byte(nil), good...)
		none[udp+6], none[udp+7] = 0, 0
		if v6 {
			check.Equal(t, "no checksum", l.verdict(l.i10, none), frame.Drop(frame.BadChecksum))
		} else {
			check.Equal(t, "no checksum", l.verdict(l.i10, none), frame.Consume)
		}
		f := frame.Make(append([]byte(nil), none...))
		f.From, f.VNI = frame.NewDest(1, 0), 10
		f.GSO = frame.GSO{Type: frame.GSOUDP, Size: 2, CsumStart: uint16(f.Headroom() + udp), CsumOffset: 6, DataStart: uint16(f.Headroom() + udp + 8)}
		check.Equal(t, "a superframe", l.i10.Process(&f, frame.At{}), frame.Drop(frame.BadHeader))
		got = nil
		check.Equal(t, "another port", l.verdict(l.i10, udpTo(t, v6, addrOf(v6, 10, 254), 4001, "x")), frame.Reply)
		check.OK(t, l.g.Listen(4000, nil))
		check.Equal(t, "nobody", l.verdict(l.i10, append([]byte(nil), good...)), frame.Reply)
		check.Equal(t, "delivered", len(got), 0)
	}
}

// A datagram of the gateway's own goes to the neighbour's MAC, whose question it raises if there is none.
func TestSendUDP(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		src, dst := netip.AddrPortFrom(addrOf(v6, 10, 254), 49152), netip.AddrPortFrom(addrOf(v6, 10, 1), 4000)
		check.ErrorIs(t, "unknown neighbour", l.i10.SendUDP(src, dst, 255, []byte("hello")), ErrUnresolved)
		check.ErrorIs(t, "unknown neighbour", l.i10.SendUDP(src, dst, 255, []byte("hello")), ErrUnresolved)
		check.Equal(t, "questions", len(l.injected), 1)
		l.knows(l.i10, 1, 0)
		l.injected = nil
		check.OK(t, l.i10.SendUDP(src, dst, 255, []byte("hello")))
		check.Equal(t, "sent", len(l.injected), 1)
		b := l.injected[0].f.Bytes()
		p := packetOf(t, b, layers.LayerTypeEthernet)
		u := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		flow := p.NetworkLayer().NetworkFlow()
		if frame.MAC(b) != host(1) || frame.MAC(b[6:]) != gate(10) || string(u.Payload) != "hello" || u.SrcPort != 49152 || u.DstPort != 4000 ||
			flow.Src().String() != src.Addr().String() || flow.Dst().String() != dst.Addr().String() {
			t.Errorf("%v", p)
		}
		pseudo := append(append(append([]byte(nil), flow.Src().Raw()...), flow.Dst().Raw()...), 0, 17, 0, 13)
		check.True(t, sum16(append(pseudo, b[len(b)-13:]...)) == 0xffff, "checksum of % x", b)
		for _, c := range []struct {
			src, dst netip.AddrPort
			n        int
			want     string
		}{
			{netip.AddrPortFrom(addrOf(v6, 20, 254), 1), dst, 1, "is not an address of vni 10"},
			{src, netip.AddrPortFrom(addrOf(!v6, 10, 1), 1), 1, "another address family"},
			{src, dst, 1201, "payload: is 1201 bytes long"},
		} {
			if err := l.i10.SendUDP(c.src, c.dst, 255, make([]byte, c.n)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	}
}
