package afpacket

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/underlay"
)

// tooBig makes an ICMP error about what frameOf makes the other way, of which it quotes so much of
// the payload.
func tooBig(ip6 bool, mtu, payload int) []byte {
	q := frameOf(ip6, make([]byte, 1400))[wire.EthernetLen:]
	at := datagrams.IPHeader(!ip6)
	if ip6 {
		copy(q[8:], testIP6[:])
		copy(q[24:], peerIP6[:])
	} else {
		copy(q[12:], testIP4[:])
		copy(q[16:], peerIP4[:])
	}
	c := slices.Concat([]byte{3, 4, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, q[:at+wire.UDPLen+payload])
	if ip6 {
		c[0], c[1] = 2, 0
		h := wire.IPv6Header{NextHeader: 58, HopLimit: 63, PayloadLen: uint16(len(c)), Src: peerIP6, Dst: testIP6}
		ip := make([]byte, 40)
		h.Put(ip)
		binary.BigEndian.PutUint16(c[2:], ^wire.Fold(wire.Sum(c, wire.Pseudo6(ip, 58, len(c)))))
		return slices.Concat(testMAC[:], peerMAC[:], []byte{0x86, 0xdd}, ip, c)
	}
	binary.BigEndian.PutUint16(c[2:], ^wire.Fold(wire.Sum(c, 0)))
	ip := make([]byte, 20)
	h := wire.IPv4Header{TTL: 63, Protocol: 1, TotalLen: uint16(len(ip) + len(c)), Src: peerIP4, Dst: testIP4}
	h.Put(ip)
	return slices.Concat(testMAC[:], peerMAC[:], []byte{8, 0}, ip, c)
}

// An underlay believes an MTU only if the error quotes the header of a tunnel: there is no
// socket whose port would have to be guessed.
func TestErrorQuote(t *testing.T) {
	for i, ip6 := range []bool{false, true} {
		rule := &testRule[i]
		p := &Underlay{is4: !ip6, dev: sys.NewPacketInterface("afpacket", "Config", "none", nil)}
		if _, err := p.sets.Number(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 49152, Hi: 65535}}, p.newSet); err != nil {
			t.Fatal(err)
		}
		p.hops = newHops(nil, nil, &p.late.Lost)
		p.rules.Store(rule)
		p.messenger = messenger{is4: !ip6, mac: rule.mac, ip: rule.ip}
		told := 0
		p.PathMTU(func(to frame.Endpoint, mtu int, quoted []byte) {
			told++
			if mtu != 1300 || len(quoted) < leastQuote || to.Port != 4789 {
				t.Errorf("%v, %d, %d bytes", to, mtu, len(quoted))
			}
		})
		for _, n := range []int{0, 1, 7} {
			p.handle(tooBig(ip6, 1300, n))
		}
		if told != 0 || p.errors.TooBig.Load() != 3 {
			t.Errorf("IPv6 %v: %d of %d errors without a tunnel's header were believed", ip6, told, p.errors.TooBig.Load())
		}
		for _, n := range []int{8, 100} {
			p.handle(tooBig(ip6, 1300, n))
		}
		if told != 2 {
			t.Errorf("IPv6 %v: %d of 2 errors with one were believed", ip6, told)
		}
	}
}
