package gso

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/vxswitch/vxswitch/frame"
)

// packet describes a TCP or UDP packet; the zero value and a payload make a plain
// TCP segment over IPv4 over Ethernet.
type packet struct {
	bare       bool // without Ethernet
	tags       int
	v6, udp    bool
	ipOptions  []byte // IPv4 options, or an IPv6 hop-by-hop header
	tcpOptions []byte
	id         uint16
	df         bool
	seq        uint32
	flags      uint8 // beside ACK
	payload    []byte
}

var (
	timestamps = []byte{1, 1, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7}
	routerAl4  = []byte{0x94, 4, 0, 0}
	routerAl6  = []byte{6, 0, 5, 2, 0, 0, 1, 0}
)

// l3, l4 and data are where things begin.
func (k packet) l3() int {
	if k.bare {
		return 0
	}
	return 14 + 4*k.tags
}

func (k packet) l4() int {
	if k.v6 {
		return k.l3() + 40 + len(k.ipOptions)
	}
	return k.l3() + 20 + len(k.ipOptions)
}

func (k packet) data() int {
	if k.udp {
		return k.l4() + 8
	}
	return k.l4() + 20 + len(k.tcpOptions)
}

func (k packet) frameKind() frame.Kind {
	switch {
	case !k.bare:
		return frame.Ethernet
	case k.v6:
		return frame.IPv6
	}
	return frame.IPv4
}

// bytes returns the packet with complete checksums.
func (k packet) bytes() []byte {
	var b []byte
	if !k.bare {
		b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)
		for i := range k.tags {
			b = append(b, 0x81, 0, 0, byte(100+i))
		}
		if k.v6 {
			b = append(b, 0x86, 0xdd)
		} else {
			b = append(b, 8, 0)
		}
	}
	var l4 []byte
	proto := byte(6)
	if k.udp {
		proto = 17
		l4 = append(l4, 0x30, 0x39, 0, 9, 0, 0, 0, 0)
		binary.BigEndian.PutUint16(l4[4:], uint16(8+len(k.payload)))
	} else {
		l4 = append(l4, 0x30, 0x39, 0, 80)
		l4 = binary.BigEndian.AppendUint32(l4, k.seq)
		l4 = append(l4, 9, 8, 7, 6, byte(5+len(k.tcpOptions)/4)<<4, 0x10|k.flags, 1, 2, 0, 0, 0, 0)
		l4 = append(l4, k.tcpOptions...)
	}
	l4 = append(l4, k.payload...)
	if k.v6 {
		next := proto
		if len(k.ipOptions) > 0 {
			next = 0
		}
		b = append(b, 0x61, 0x23, 0x45, 0x67, 0, 0, next, 61)
		binary.BigEndian.PutUint16(b[len(b)-4:], uint16(len(k.ipOptions)+len(l4)))
		b = append(b, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
		b = append(b, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2)
	} else {
		b = append(b, 0x45+byte(len(k.ipOptions)/4), 0x12, 0, 0)
		binary.BigEndian.PutUint16(b[len(b)-2:], uint16(20+len(k.ipOptions)+len(l4)))
		b = binary.BigEndian.AppendUint16(b, k.id)
		if k.df {
			b = append(b, 0x40, 0)
		} else {
			b = append(b, 0, 0)
		}
		b = append(b, 61, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	}
	at := len(b)
	b = append(b, k.ipOptions...)
	if k.v6 && len(k.ipOptions) > 0 {
		b[at] = proto
	}
	b = append(b, l4...)
	refChecksums(b, k.l3(), k.l4(), !k.v6, proto)
	return b
}

// gso is the metadata of the packet as a superframe, offsets from the start of the packet.
func (k packet) gso(size int) frame.GSO {
	g := frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOTCP4, Size: uint16(size), CsumStart: uint16(k.l4()), CsumOffset: 16, DataStart: uint16(k.data())}
	switch {
	case k.udp:
		g.Type, g.CsumOffset = frame.GSOUDP, 6
	case k.v6:
		g.Type = frame.GSOTCP6
	}
	return g
}

// super returns the packet as a superframe, its checksum that of the pseudo header.
func (k packet) super(size int) *frame.Frame {
	b := k.bytes()
	at := k.l4() + int(k.gso(size).CsumOffset)
	b[at], b[at+1] = 0, 0
	binary.BigEndian.PutUint16(b[at:], ^refPseudo(b, k.l3(), k.l4(), !k.v6, b[at:at]))
	return over(b, k.frameKind(), k.gso(size))
}

// over makes a frame of p with some headroom; the offsets of g count from the start of p.
func over(p []byte, kind frame.Kind, g frame.GSO) *frame.Frame {
	f := frame.Make(p)
	f.Kind, f.GSO = kind, g
	if g != (frame.GSO{}) {
		f.GSO.CsumStart += uint16(f.Headroom())
		f.GSO.DataStart += uint16(f.Headroom())
	}
	return &f
}

// outs puts plain frames on their way out.
func outs(kind frame.Kind, ps ...[]byte) []frame.Out {
	out := make([]frame.Out, len(ps))
	for i, p := range ps {
		out[i].F = over(p, kind, frame.GSO{})
	}
	return out
}

// pattern is n bytes that differ.
func pattern(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// packets are one of each family.
func packets(payload int) map[string]packet {
	m := map[string]packet{
		"tcp4":         {},
		"tcp4 options": {tcpOptions: timestamps},
		"tcp4 bare":    {bare: true},
		"tcp4 tag":     {tags: 1},
		"tcp4 df":      {df: true, tags: 2},
		"tcp6":         {v6: true},
		"tcp6 options": {v6: true, tcpOptions: timestamps, tags: 2},
		"tcp6 bare":    {v6: true, bare: true},
		"udp4":         {udp: true},
		"udp4 bare":    {udp: true, bare: true},
		"udp6":         {udp: true, v6: true, tags: 1},
		"udp6 bare":    {udp: true, v6: true, bare: true},
	}
	for name, k := range m {
		k.id, k.seq, k.payload = 0xfffe, 0xfffffff0, pattern(payload)
		if !k.udp {
			k.flags = psh
		}
		m[name] = k
	}
	return m
}

const (
	fin, syn, rst, psh, ack, urg, ece, cwr = 1, 2, 4, 8, 16, 32, 64, 128
)
