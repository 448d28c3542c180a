package datapath

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// sealed returns an IPv4 packet behind an Ethernet header with a right header checksum.
func sealed(b []byte) []byte {
	n := int(b[14]&15) * 4
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], wire.Checksum(wire.Sum(b[14:14+n], 0)))
	return b
}

// RFC 6040, section 4.2, over and under both families: what user space lets pass without a word is carried as
// user space passes it on, and all it counts or drops is a miss.
func TestReceiveECN(t *testing.T) {
	g := newRig(t)
	quiet := map[[2]uint8]uint8{ // inner, outer: result
		{0, 0}: 0, {1, 0}: 1, {1, 1}: 1, {1, 3}: 3, {2, 0}: 2, {2, 2}: 2, {2, 1}: 1, {2, 3}: 3, {3, 0}: 3, {3, 2}: 3, {3, 3}: 3,
	}
	for fam := range 2 {
		for _, v6 := range []bool{false, true} {
			for in := range uint8(4) {
				for out := range uint8(4) {
					s := shape{dst: macNear, src: macFar, v6: v6, tos: 0xa8 | in, size: 100}
					payload := vxlan(s.bytes())
					was := g.v.Stats().ECN
					drop := g.userReads(fam, payload, 0x40|out).Drop
					loud := drop != frame.NotDropped || g.v.Stats().ECN != was
					now, ok := quiet[[2]uint8{in, out}]
					if loud == ok {
						t.Fatalf("inner %d, outer %d: user space says %v", in, out, drop)
					}
					if g.reads(fam, payload, 0x40|out) != ok {
						t.Errorf("family %d, IPv6 inside %v, inner %d, outer %d: carried %v", fam, v6, in, out, !ok)
					}
					if !ok {
						if why := g.d.why(t, TunnelIn, received(fam, payload, out), Meta{}); why != Congestion {
							t.Errorf("inner %d, outer %d: %v", in, out, why)
						}
						continue
					}
					_, got, _, _ := g.d.Run(TunnelIn, received(fam, payload, out), Meta{})
					s.tos = 0xa8 | now
					if want := s.bytes(); !bytes.Equal(got, want) {
						t.Errorf("inner %d, outer %d:\n%x, want\n%x", in, out, got, want)
					}
				}
			}
		}
	}
}

// What is carried out of a tunnel, and why the rest is not.
func TestReceiveMisses(t *testing.T) {
	g := newRig(t)
	for fam := range 2 {
		udp := [...]int{34, 54}[fam]
		vx, in := udp+8, udp+16
		s := shape{dst: macNear, src: macFar, size: 100}
		good := received(fam, vxlan(s.bytes()), 0)
		long := shape{dst: macNear, src: macFar, size: maxLen - 42}
		longer := shape{dst: macNear, src: macFar, size: maxLen - 41}
		nd := shape{dst: macNear, src: macFar, v6: true, proto: layers.IPProtocolICMPv6, icmp: 135}
		type row struct {
			name string
			b    []byte
			want Cause
		}
		const carried, silent = NumCauses, NumCauses
		rows := []row{
			{"plain", good, carried},
			{"IPv6", received(fam, vxlan(shape{dst: macNear, src: macFar, v6: true}.bytes()), 0), carried},
			{"a later fragment", received(fam, vxlan(shape{dst: macNear, src: macFar, offset: 7, size: 30}.bytes()), 0), carried},
			{"padded inside", received(fam, vxlan(append(s.bytes(), 0, 0)), 0), carried},
			{"the longest", received(fam, vxlan(long.bytes()), 0), carried},
			{"longer", received(fam, vxlan(longer.bytes()), 0), TooBig},
			{"neighbour solicitation", received(fam, vxlan(nd.bytes()), 0), Neighbour},
			{"DHCP", received(fam, vxlan(shape{dst: macNear, src: macFar, sport: 67}.bytes()), 0), DHCP},
			{"ARP", set(good, in+13, 6), Kind},
			{"VLAN tag", set(set(good, in+12, 0x81), in+13, 0), Kind},
			{"no I flag", set(good, vx, 0), Tunnel},
			{"another flag", set(good, vx, 0x88), Tunnel},
			{"reserved bits", set(good, vx+2, 1), Tunnel},
			{"the last byte", set(good, vx+7, 1), Tunnel},
			{"another VNI", set(good, vx+6, 9), NoFlow},
			{"another inner destination", set(good, in+5, 9), NoFlow},
			{"another inner source", set(good, in+11, 77), NoFlow},
			{"another UDP port", set(good, udp+3, 1), Elsewhere},
			{"any source port", set(good, udp+1, 1), carried},
			{"a UDP checksum", set(good, udp+6, 1), Checksum},
			{"UDP length", set(good, udp+5, good[udp+5]-1), OuterIP},
			{"trailing bytes", append(bytes.Clone(good), 0, 0), OuterIP},
			{"not UDP", set(good, [...]int{23, 20}[fam], 6), silent},
			{"another host's", set(good, 0, 2), silent},
			{"cut off", good[:udp+20], silent},
		}
		if fam == 0 {
			rows[22].b = sealed(rows[22].b)
			rows = append(rows, []row{
				{"header checksum", set(good, 24, good[24]^1), OuterIP},
				{"options", sealed(set(good, 14, 0x46)), OuterIP},
				{"first fragment", sealed(set(good, 20, 0x20)), OuterIP},
				{"later fragment", sealed(set(good, 21, 5)), OuterIP},
				{"without DF", sealed(set(good, 20, 0)), carried},
				{"IP length", sealed(set(good, 17, good[17]-1)), OuterIP},
				{"another address", sealed(set(good, 33, 9)), Elsewhere},
				{"another peer", sealed(set(good, 29, 9)), NoFlow},
				{"any TTL", sealed(set(good, 22, 1)), carried},
			}...)
		} else {
			rows = append(rows, []row{
				{"extension header", set(good, 20, 60), silent},
				{"version", set(good, 14, 0x45), OuterIP},
				{"IP length", set(good, 19, good[19]-1), OuterIP},
				{"another address", set(good, 53, 9), Elsewhere},
				{"another address", set(good, 40, 9), Elsewhere},
				{"another peer", set(good, 37, 9), NoFlow},
				{"any flow label", set(good, 17, 9), carried},
			}...)
		}
		for _, c := range rows {
			act, _, _, err := g.d.Run(TunnelIn, c.b, Meta{})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			got := g.d.why(t, TunnelIn, c.b, Meta{})
			notMine := c.name == "not UDP" || c.name == "another host's" || c.name == "cut off" || c.name == "extension header"
			if got != c.want || (act == Redirect) != (c.want == carried && !notMine) {
				t.Errorf("family %d, %s: %v, action %d, want %v", fam, c.name, got, act, c.want)
			}
		}
	}
}

// A header of VXLAN-GPE is carried only as it is sent with an Ethernet frame, and neither kind of header where the other is expected.
func TestReceiveGPE(t *testing.T) {
	const version, next = encap.GPEVersionMask, encap.GPE(0xff << 32)
	plain := encap.GPEFlagVNI | encap.GPEFlagProtocol | encap.GPE(encap.NextEthernet)<<32 | vni<<8
	for kind, rows := range map[encap.Type]map[encap.GPE]Cause{
		encap.TypeGPE: {
			plain:                                       NumCauses,
			plain &^ encap.GPEFlagProtocol:              Tunnel,
			plain &^ (encap.GPEFlagProtocol | next):     Tunnel, // VXLAN
			plain &^ encap.GPEFlagVNI:                   Tunnel,
			plain | encap.GPEFlagBUM:                    Tunnel, // user space remembers it
			plain | encap.GPEFlagOAM:                    Tunnel,
			plain | version:                             Tunnel,
			plain | version&(version-1):                 Tunnel,
			plain&^next | encap.GPE(encap.NextIPv4)<<32: Tunnel,
			plain&^next | encap.GPE(encap.NextNSH)<<32:  Tunnel,
			plain | 1<<40:                               Tunnel,
			plain | 1<<63:                               Tunnel,
			plain | 1:                                   Tunnel,
			plain | 1<<8:                                NoFlow,
		},
		encap.TypeVXLAN: {plain: Tunnel, plain &^ (encap.GPEFlagProtocol | next): NumCauses},
	} {
		g := newRigOf(t, kind)
		for head, want := range rows {
			for fam := range 2 {
				b := g.wrap(shape{dst: macNear, src: macFar, size: 100}.bytes())
				binary.BigEndian.PutUint64(b, uint64(head))
				if got := g.d.why(t, TunnelIn, received(fam, b, 0), Meta{}); got != want {
					t.Errorf("%v, family %d, header %#x: %v, want %v", kind, fam, uint64(head), got, want)
				}
				g.reads(fam, b, 0)
			}
		}
	}
}

// A UDP checksum is accepted as the entry says: over IPv6 one that is zero, and one that no card has verified.
func TestReceiveChecksums(t *testing.T) {
	d := load(t)
	d.Slot(0).Validate(Validity{1, 0, 0})
	for fam := range 2 {
		at := [...]int{34, 54}[fam] + 6
		none := received(fam, vxlan(shape{dst: macNear, src: macFar}.bytes()), 0)
		some := set(none, at, 1)
		k := InKey{Peer: peerOf(fam, 0).As16(), VNI: vni, Dst: macNear, Src: macFar}
		for _, c := range []struct{ zero, unverified bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
			f := &Flow{SrcEpoch: 1, DstEpoch: 2, Oif: 1, How: Egress, Max: 1500,
				Outer: Outer{Local: locals[fam], Port: 4789, ZeroChecksum: c.zero, Unverified: c.unverified}}
			check.OK(t, d.Put(k, f))
			for _, x := range []struct {
				b  []byte
				ok bool
			}{{none, c.zero}, {some, c.unverified}} {
				for _, m := range []Meta{{}, {Complete: d.sums()}} {
					if why := d.why(t, TunnelIn, x.b, m); (why == NumCauses) != x.ok || !x.ok && why != Checksum {
						t.Errorf("family %d, %+v, %+v: %v", fam, c, m, why)
					}
				}
			}
			check.OK(t, d.Delete(k))
		}
	}
}

// Several datagrams that the kernel has put together are not one superframe, and are left to user space.
func TestReceiveMerged(t *testing.T) {
	g := newRig(t)
	one := vxlan(shape{dst: macNear, src: macFar, proto: layers.IPProtocolTCP, size: 500}.bytes())
	whole := vxlan(shape{dst: macNear, src: macFar, proto: layers.IPProtocolTCP, size: 1500}.bytes())
	uso := vxlan(shape{dst: macNear, src: macFar, size: 1500}.bytes())
	for fam := range 2 {
		for _, c := range []struct {
			what    string
			payload []byte
			size    int
			want    Cause
		}{
			{"merged", bytes.Repeat(one, 3), len(one), Merged},
			{"TCP superframe", whole, 500, Room}, // see TestSuperframes
			{"its segments too long", whole, maxLen, TooBig},
			{"UDP superframe", uso, 500, Segments},
			{"padded", append(bytes.Clone(whole), 0), 500, Merged},
		} {
			if c.want == Segments && g.d.decapL4 {
				c.want = Room
			}
			for i := range g.d.slots {
				g.d.slots[i].merged.Store(0)
			}
			if why := g.d.why(t, TunnelIn, received(fam, c.payload, 0), Meta{GSOSize: uint32(c.size), GSOSegs: 3}); why != c.want {
				t.Errorf("family %d, %s: %v, want %v", fam, c.what, why, c.want)
			}
			if c.want != Merged {
				continue
			}
			if why := g.d.why(t, TunnelIn, received(fam, one, 0), Meta{}); why != Merged {
				t.Errorf("family %d, one alone after %s: %v, want %v", fam, c.what, why, Merged)
			}
		}
	}
}
