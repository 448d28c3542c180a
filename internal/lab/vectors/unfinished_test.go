package vectors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// A leftover is a TCP or UDP packet from behind the tunnel to a host.
type leftover struct{ v6, udp bool }

func (k leftover) String() string {
	return pick(k.udp, "TCP", "UDP") + pick(k.v6, " over IPv4", " over IPv6")
}

var leftovers = []leftover{{false, false}, {false, true}, {true, false}, {true, true}}

// heads is the bytes of its headers.
func (k leftover) heads() int {
	return 14 + pick(k.v6, 20, 40) + pick(k.udp, 20, 8)
}

// frame is the i-th of a row of packets as gopacket writes it, whose payload begins off bytes into
// that of all of them.
func (k leftover) frame(to frame.MAC, i, off int, payload []byte) []byte {
	src := rmac(1)
	e := &layers.Ethernet{DstMAC: to[:], SrcMAC: src[:], EthernetType: layers.EthernetTypeIPv4}
	ip4 := &layers.IPv4{Version: 4, TTL: 9, Id: uint16(i + 7), Protocol: layers.IPProtocolTCP, SrcIP: net.IP{192, 168, 0, 1}, DstIP: net.IP{192, 168, 0, 2}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolTCP, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: uint32(1000 + off), ACK: true, Window: 9}
	udp := &layers.UDP{SrcPort: 1, DstPort: 2}
	var l3 gopacket.NetworkLayer = ip4
	if k.v6 {
		e.EthernetType, l3 = layers.EthernetTypeIPv6, ip6
	}
	var l4 gopacket.SerializableLayer = tcp
	if k.udp {
		ip4.Protocol, ip6.NextHeader, l4 = layers.IPProtocolUDP, layers.IPProtocolUDP, udp
	}
	tcp.SetNetworkLayerForChecksum(l3)
	udp.SetNetworkLayerForChecksum(l3)
	return packets.Of(e, l3.(gopacket.SerializableLayer), l4, gopacket.Payload(payload))
}

// unfinished puts the sum of the pseudo header in the place of the checksum.
func (k leftover) unfinished(f []byte) []byte {
	f = slices.Clone(f)
	at, l4 := 14+12, 34
	if k.v6 {
		at, l4 = 14+8, 54
	}
	n, sum, proto := len(f)-l4, l4+16, byte(6)
	if k.udp {
		sum, proto = l4+6, 17
	}
	end := at + 8
	if k.v6 {
		end = at + 32
	}
	pseudo := append(slices.Clone(f[at:end]), byte(n>>8), byte(n), 0, proto)
	binary.BigEndian.PutUint16(f[sum:], ^ones(pseudo))
	return f
}

// unfinishedRows are about what a kernel leaves to a network card.
func unfinishedRows() (rows []row) {
	text := bytes.Repeat([]byte("vxswitch"), 1<<13)
	for _, k := range leftovers {
		for tags := range 3 {
			wrap := func(f []byte) []byte {
				if tags > 0 {
					f = mem.Tagged(5, f)
				}
				if tags > 1 {
					f = qinq(f)
				}
				return f
			}
			rows = append(rows, row{id: "1.unfinished", name: fmt.Sprintf("%v, %d tags", k, tags), wire: func(l *lab) {
				h, f := l.pair(inner1(vswitch.VLANPass))
				in := k.frame(h.MAC, 0, 0, text[:100])
				f.send(vx(vni, wrap(k.unfinished(in))))
				h.Want(wrap(in))
			}})
		}
		rows = append(rows, row{id: "1.unfinished", name: k.String() + ", in VXLAN-GPE", wire: func(l *lab) {
			h, f := l.pair(gpeVTEP)
			in := k.frame(h.MAC, 0, 0, text[:101])
			f.send(gpe(vni, 3, k.unfinished(in)))
			h.Want(in)
		}}, row{id: "1.unfinished", name: k.String() + ", to another peer", wire: func(l *lab) {
			l.start(vswitch.AttachConfig{Hub: true})
			f, g := l.far(2), l.far(3)
			g.send(vx(vni, eth(frame.Broadcast, rmac(9), "here")))
			l.Settle()
			in := k.frame(rmac(9), 0, 0, text[:100])
			f.send(vx(vni, k.unfinished(in)))
			g.want(vx(vni, in))
		}}, row{id: "1.unfinished-not", name: k.String() + ", right and wrong", wire: func(l *lab) {
			h, f := l.pair()
			right := k.frame(h.MAC, 0, 0, text[:100])
			wrong := slices.Clone(right)
			wrong[k.heads()-2-map[bool]int{false: 2}[k.udp]] ^= 1
			f.send(vx(vni, right), vx(vni, wrong))
			h.Want(right, wrong)
		}})
		for _, path := range []int{1500, 1300} {
			rows = append(rows, row{id: "1.superframe", name: fmt.Sprintf("%v, path MTU %d", k, path), wire: func(l *lab) {
				h, f := l.pair(floods{2})
				if path < 1500 {
					l.narrowPath(2, path, vx(vni, make([]byte, path)))
				}
				l.Net.SetLink(l.addr(2), l.addr(1), memory.Link{MTU: 65535})
				const n = 60000
				size := 14 + l.inner(path) - k.heads()
				var want [][]byte
				for off := 0; off < n; off += size {
					want = append(want, k.frame(h.MAC, len(want), off, text[off:min(off+size, n)]))
				}
				f.send(vx(vni, k.unfinished(k.frame(h.MAC, 0, 0, text[:n]))))
				h.Want(want...)
			}})
		}
	}
	return rows
}
