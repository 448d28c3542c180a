package oracle

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A sample is a route by its values, apart from how either side has them.
type sample struct {
	kind    route.Kind
	rd      pair
	esi     [10]byte
	tag     uint32
	mac     [6]byte
	ip      netip.Addr
	bits    int // of a prefix
	labels  []uint32
	gateway netip.Addr // of a prefix, or none
	hop     netip.Addr
	tunnel  tunnel // of a Multicast

	communities []community
}

// A pair is a route distinguisher or a route target: its type, and both its numbers.
type pair struct {
	typ   uint8 // 0: AS of two bytes, 1: IPv4 address, 2: AS of four bytes
	admin uint32
	n     uint32
}

// tunnel is the PMSI tunnel attribute.
type tunnel struct {
	typ, flags uint8
	label      uint32
	end        netip.Addr
}

// A community has a name, and up to two values.
type community struct {
	name string
	a, b uint64
}

func (p pair) bytes() (b [8]byte) {
	b[1] = p.typ
	if p.typ == 0 {
		binary.BigEndian.PutUint16(b[2:], uint16(p.admin))
		binary.BigEndian.PutUint32(b[4:], p.n)
		return b
	}
	binary.BigEndian.PutUint32(b[2:], p.admin)
	binary.BigEndian.PutUint16(b[6:], uint16(p.n))
	return b
}

// String is what an operator reads, in our form.
func (p pair) String() string {
	if p.typ == 1 {
		return fmt.Sprintf("%v:%d", ip4(p.admin), p.n)
	}
	return fmt.Sprintf("%d:%d", p.admin, p.n)
}

func ip4(n uint32) netip.Addr { return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n))) }

func mac48(n uint64) (m frame.MAC) {
	copy(m[:], binary.BigEndian.AppendUint64(nil, n)[2:])
	return m
}

// A source makes samples at random.
type source struct {
	*rand.Rand
	all bool // communities that gobgp does not know, too
}

func newSource(seed uint64, all bool) source { return source{rand.New(rand.NewPCG(seed, 0)), all} }

func (s source) read(b []byte) {
	for i := range b {
		b[i] = byte(s.Uint32())
	}
}

func (s source) addr(v6 bool) netip.Addr {
	if !v6 {
		return ip4(s.Uint32() | 1<<24)
	}
	var b [16]byte
	s.read(b[:])
	b[0] = 0x20
	return netip.AddrFrom16(b)
}

func (s source) pair(n uint32) pair {
	p := pair{uint8(s.IntN(3)), s.Uint32(), n}
	switch p.typ {
	case 0:
		p.admin &= 0xffff
	default:
		p.n &= 0xffff
	}
	return p
}

// esi returns an identifier of one of the types of RFC 7432, section 5. gobgp resets a session over one of types 1, 2, 4 and 5 that does
// not end in zero; we take them, and have none in our settings.
func (s source) esi() (e [10]byte) {
	s.read(e[:])
	if e[0] %= 6; e[0] != 0 && e[0] != 3 {
		e[9] = 0
	}
	return e
}

func (s source) label() uint32 { return s.Uint32() >> 8 }

// edge returns 0, the highest number, or one between.
func (s source) edge() uint32 { return [...]uint32{0, 1<<32 - 1, s.Uint32()}[s.IntN(3)] }

// sample returns the i-th route of those with different keys, of which there may be 65,536.
func (s source) sample(i int) (x sample) {
	v6 := s.IntN(2) == 0
	x.kind, x.rd, x.hop = route.Kind(1+i%5), s.pair(uint32(i)), s.addr(s.IntN(4) == 0)
	if x.kind != route.Multicast && s.IntN(3) > 0 {
		x.esi = s.esi()
	}
	if x.kind != route.Segment {
		x.tag = s.edge()
	}
	switch x.kind {
	case route.AutoDiscovery:
		x.labels = []uint32{s.label()}
	case route.MACIP:
		s.read(x.mac[:])
		if s.IntN(3) > 0 {
			x.ip = s.addr(v6)
		}
		for range 1 + s.IntN(2) {
			x.labels = append(x.labels, s.label())
		}
	case route.Multicast:
		x.ip = s.addr(v6)
		x.tunnel = tunnel{[]uint8{6, 10}[s.IntN(2)], uint8(s.IntN(256)), s.label(), s.addr(v6)}
	case route.Segment:
		x.ip = s.addr(v6)
	case route.Prefix:
		x.ip = s.addr(v6)
		x.bits = s.IntN(x.ip.BitLen() + 1)
		if s.IntN(2) == 0 {
			x.gateway = s.addr(v6)
		}
		x.labels = []uint32{s.label()}
	}
	x.communities = s.communities(i)
	return x
}

// communities returns those of the i-th route, which no other has: one UPDATE is one route.
func (s source) communities(i int) (list []community) {
	list = append(list, community{"target-2", 1, uint64(i)})
	for range s.IntN(3) {
		p := s.pair(s.Uint32())
		list = append(list, community{fmt.Sprint("target-", []int{2, 1, 4}[p.typ]), uint64(p.admin), uint64(p.n)})
	}
	more := []community{
		{"encapsulation", uint64([]uint16{8, 12, 10, 19}[s.IntN(4)]), 0},
		{"gateway", 0, 0},
		{"mobility", uint64(s.edge()), uint64(s.IntN(2))},
		{"router-mac", s.Uint64() >> 16, 0},
		{"esi-label", uint64(s.IntN(2)), 0},
		{"es-import", s.Uint64() >> 16, 0},
	}
	if s.all {
		more = append(more, community{"nd", uint64(s.IntN(4)), 0}, community{"election", uint64(s.IntN(32)), uint64(s.Uint32())})
	}
	s.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return append(list, more[:s.IntN(len(more)+1)]...)
}

func (s source) samples(n int) (list []sample) {
	for i := range n {
		list = append(list, s.sample(i))
	}
	return list
}

// key is what of a sample is there when it is withdrawn.
func (x sample) key() sample {
	k := sample{kind: x.kind, rd: x.rd, tag: x.tag, mac: x.mac, ip: x.ip, bits: x.bits}
	if x.kind == route.AutoDiscovery || x.kind == route.Segment {
		k.esi = x.esi
	}
	return k
}
