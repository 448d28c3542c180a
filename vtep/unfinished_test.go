package vtep

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// left describes a packet that a kernel left to a network card.
type left struct {
	v6, udp, bare bool
	tags, n       int // VLAN tags, bytes of payload
}

func (k left) String() string {
	return fmt.Sprintf("v6=%v,udp=%v,bare=%v,tags=%d,n=%d", k.v6, k.udp, k.bare, k.tags, k.n)
}

// allLeft are the families, bare for VXLAN-GPE and behind up to two VLAN tags.
func allLeft(n int) (all []left) {
	for i := range 16 {
		k := left{v6: i&1 != 0, udp: i&2 != 0, tags: i >> 2, n: n}
		if k.bare = k.tags == 3; k.bare {
			k.tags = 0
		}
		all = append(all, k)
	}
	return all
}

func (k left) kind() frame.Kind {
	switch {
	case !k.bare:
		return frame.Ethernet
	case k.v6:
		return frame.IPv6
	}
	return frame.IPv4
}

// data is where its payload begins.
func (k left) data() int {
	n := 40
	if k.udp {
		n = 28
	}
	if k.v6 {
		n += 20
	}
	if !k.bare {
		n += 14 + 4*k.tags
	}
	return n
}

// packet returns it as gopacket writes it, and with the sum of its pseudo header in the place of
// its checksum.
func (k left) packet(t testing.TB) (finished, unfinished []byte) {
	t.Helper()
	payload := bytes.Repeat([]byte{7, 1, 3}, k.n/3+1)[:k.n]
	ip4 := &layers.IPv4{Version: 4, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{192, 168, 7, 1}, DstIP: net.IP{192, 168, 7, 2}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolTCP, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 2000, Seq: 77, ACK: true, PSH: true, Window: 500}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	var l3, l4 gopacket.SerializableLayer = ip4, tcp
	l4len, at := 20+k.n, 16
	if k.udp {
		l4, l4len, at = udp, 8+k.n, 6
		ip4.Protocol, ip6.NextHeader = layers.IPProtocolUDP, layers.IPProtocolUDP
	}
	typ := layers.EthernetTypeIPv4
	tcp.SetNetworkLayerForChecksum(ip4)
	udp.SetNetworkLayerForChecksum(ip4)
	pseudo := append(append([]byte{}, ip4.SrcIP...), ip4.DstIP...)
	if k.v6 {
		typ, l3 = layers.EthernetTypeIPv6, ip6
		tcp.SetNetworkLayerForChecksum(ip6)
		udp.SetNetworkLayerForChecksum(ip6)
		pseudo = append(append([]byte{}, ip6.SrcIP...), ip6.DstIP...)
	}
	all := []gopacket.SerializableLayer{l3, l4, gopacket.Payload(payload)}
	if !k.bare {
		e := &layers.Ethernet{DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: typ}
		for range k.tags {
			all = append([]gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: 5, Type: e.EthernetType}}, all...)
			e.EthernetType = layers.EthernetTypeDot1Q
		}
		all = append([]gopacket.SerializableLayer{e}, all...)
	}
	b := packets.Of(all...)
	finished = bytes.Clone(b[:k.data()+k.n]) // gopacket pads
	sum := l4len + 6
	if k.udp {
		sum += 17 - 6
	}
	for i := 0; i < len(pseudo); i += 2 {
		sum += int(binary.BigEndian.Uint16(pseudo[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	unfinished = bytes.Clone(finished)
	l4at := len(finished) - l4len
	binary.BigEndian.PutUint16(unfinished[l4at+at:], uint16(sum))
	return finished, unfinished
}

// in returns a packet behind the header of VXLAN, or VXLAN-GPE.
func in(typ encap.Type, kind frame.Kind, b []byte) []byte {
	if typ == encap.TypeGPE {
		return gpe(vni, kind, false, b)
	}
	return vx(vni, b)
}

// What a kernel's tunnel device leaves to a card that is not there comes out finished at the far
// side of the next tunnel, in packets of that MTU: superframes are cut to what the way they came
// takes, be it narrower to one peer. What is finished is not touched, long or short.
func TestUnfinishedOnReceipt(t *testing.T) {
	for _, typ := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
		for _, n := range []int{3, 1200, 5000, 60000} {
			for _, k := range allLeft(n) {
				if k.bare && typ != encap.TypeGPE {
					continue
				}
				t.Run(fmt.Sprintf("%v/%v", typ, k), func(t *testing.T) {
					finished, unfinished := k.packet(t)
					u, far := fake4(), fake4()
					far.mtu = 9000
					v, w := newVTEP(t, &Config{Type: typ}, u), newVTEP(t, &Config{Type: typ}, far)
					check.OK(t, v.Control().Open(vni))
					to := addPeer(t, w, at(9))
					narrow := addPeer(t, v, at(2))
					u.path(endpoint(t, at(2)), 1000, nil)
					r := v.Readers()[0]
					for _, from := range []uint16{0, narrow} {
						src, mtu := at(1), v.MTU(0)
						if from != 0 {
							src, mtu = at(2), v.MTU(narrow)
						}
						fs := u.hear(t, r, src, in(typ, k.kind(), unfinished), in(typ, k.kind(), finished))
						f, g := &fs[0], &fs[1]
						if f.Drop != 0 || g.Drop != 0 || g.GSO != (frame.GSO{}) || !bytes.Equal(g.Bytes(), finished) {
							t.Fatalf("%v, %v %+v", f.Drop, g.Drop, g.GSO)
						}
						if f.GSO.Flags&^frame.AnySize != frame.NeedsCsum || f.SegLen() != min(mtu, len(finished)) || (f.GSO.Type != 0) != (len(finished) > mtu) {
							t.Fatalf("MTU %d: %+v, segments of %d", mtu, f.GSO, f.SegLen())
						}
						far.sent = nil
						check.OK(t, w.Writer(0).Write([]frame.Out{{F: f, Peer: to, Tag: vni}}))
						check.Need(t, len(far.sent) == 1, "%d sent", len(far.sent))
						k.check(t, far.sent[0], finished)
					}
				})
			}
		}
	}
}

// check reads a run, or a lone packet, as the peer gets it.
func (k left) check(t *testing.T, s sent, finished []byte) {
	t.Helper()
	if s.seg == 0 {
		check.True(t, bytes.Equal(s.payload[8:], finished), "not what gopacket writes: % x", s.payload)
		return
	}
	first := map[frame.Kind]gopacket.LayerType{frame.Ethernet: layers.LayerTypeEthernet, frame.IPv4: layers.LayerTypeIPv4, frame.IPv6: layers.LayerTypeIPv6}[k.kind()]
	var got []byte
	for b := s.payload; len(b) > 0; b = b[min(s.seg, len(b)):] {
		p := gopacket.NewPacket(b[8:min(s.seg, len(b))], first, gopacket.Default)
		var sum uint16
		var err error
		switch l4 := p.TransportLayer().(type) {
		case *layers.TCP:
			l4.SetNetworkLayerForChecksum(p.NetworkLayer())
			sum, err = l4.ComputeChecksum()
		case *layers.UDP:
			l4.SetNetworkLayerForChecksum(p.NetworkLayer())
			buf := gopacket.NewSerializeBuffer()
			was := l4.Checksum
			err = gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l4, gopacket.Payload(l4.Payload))
			sum = binary.BigEndian.Uint16(buf.Bytes()[6:]) - was
		default:
			t.Fatal(p)
		}
		if err != nil || sum != 0 || p.ErrorLayer() != nil {
			t.Fatalf("checksum off by %#x, %v: %v", sum, err, p)
		}
		got = append(got, p.TransportLayer().LayerPayload()...)
	}
	if !bytes.Equal(got, finished[k.data():]) {
		t.Errorf("%d bytes of payload, want %d", len(got), len(finished)-k.data())
	}
}

// What the underlay says of a superframe of UDP is what it is cut into; it says so of nothing else.
func TestUnfinishedTold(t *testing.T) {
	for _, k := range []left{{udp: true, n: 4500}, {udp: true, v6: true, tags: 2, n: 4500}, {n: 4500}} {
		finished, unfinished := k.packet(t)
		u := fake4()
		v := newVTEP(t, nil, u)
		check.OK(t, v.Control().Open(vni))
		told := frame.GSO{Type: frame.GSOUDP, Size: 1000}
		for _, data := range [][]byte{unfinished, finished} {
			u.in = append(u.in, packetIn{src: endpoint(t, at(1)), data: vx(vni, data), gso: told})
		}
		b := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(b))
		want := uint16(1000)
		if !k.udp {
			want = uint16(v.MTU(0) - k.data())
		}
		if f := &b.Frames[0]; f.Drop != 0 || f.GSO.Size != want || f.GSO.Flags&^frame.AnySize != frame.NeedsCsum {
			t.Errorf("%v: %v %+v", k, f.Drop, f.GSO)
		}
		if f := &b.Frames[1]; f.Drop != 0 || f.GSO != (frame.GSO{}) {
			t.Errorf("%v, finished: %v %+v", k, f.Drop, f.GSO)
		}
	}
}

// IP in IP has no header to tell by, and a kernel leaves the same to a card.
func TestUnfinishedIPIP(t *testing.T) {
	for _, k := range []left{{bare: true, n: 100}, {bare: true, v6: true, udp: true, n: 100}, {bare: true, udp: true, n: 5000}} {
		finished, unfinished := k.packet(t)
		u := raw4()
		v := ipipVTEP(t, Config{}, u)
		addPeer(t, v, host(at(1)))
		u.add(t, host(at(1)), ipPacket{k.kind(), unfinished})
		u.add(t, host(at(1)), ipPacket{k.kind(), finished})
		b := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(b))
		if f := &b.Frames[0]; f.Drop != 0 || f.GSO.Flags&^frame.AnySize != frame.NeedsCsum || f.SegLen() != min(f.Len(), v.MTU(1)) {
			t.Errorf("%v: %v %+v", k, f.Drop, f.GSO)
		}
		if f := &b.Frames[1]; f.Drop != 0 || f.GSO != (frame.GSO{}) {
			t.Errorf("%v, finished: %v %+v", k, f.Drop, f.GSO)
		}
	}
}

// asking is an underlay that asks whether a message is one datagram.
type asking struct {
	*fake
	super func([]byte) bool
}

func (u *asking) Superframes(f func([]byte) bool) { u.super = f }

// What is longer than a datagram can be is one only if it is a superframe, all of it, behind a
// header of this tunnel's; a run of such, or of anything else, is none.
func TestSuperframeOrRun(t *testing.T) {
	ask := func(typ encap.Type) func([]byte) bool {
		u := &asking{fake: fake4()}
		newVTEP(t, &Config{Type: typ}, u)
		return u.super
	}
	vxlan, gpeTunnel := ask(encap.TypeVXLAN), ask(encap.TypeGPE)
	for _, k := range allLeft(3000) {
		finished, unfinished := k.packet(t)
		one := gpe(vni, k.kind(), false, unfinished)
		check.True(t, gpeTunnel(one) && vxlan(vx(vni, unfinished)) != k.bare, "%v: no superframe", k)
		for name, b := range map[string][]byte{
			"finished": gpe(vni, k.kind(), false, finished),
			"two":      append(bytes.Clone(one), one...),
			"longer":   append(bytes.Clone(one), 0),
			"shorter":  one[:len(one)-1],
			"OAM":      append([]byte{one[0] | 1}, one[1:]...),
			"header":   one[:8], "nothing": nil,
		} {
			if gpeTunnel(b) || vxlan(b) && name != "OAM" {
				t.Errorf("%v, %s: a superframe", k, name)
			}
		}
	}
}
