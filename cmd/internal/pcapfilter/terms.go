package pcapfilter

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// Types of frames.
const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeRARP = 0x8035
	typeIPv6 = 0x86dd
)

// Protocols in IP.
const (
	tcp      = 6
	udp      = 17
	fragment = 44
	icmp6    = 58
	sctp     = 132
)

// carried is a protocol in IP.
type carried struct {
	number uint32
	v4, v6 bool
}

var inIP = map[string]carried{
	"tcp": {tcp, true, true}, "udp": {udp, true, true}, "sctp": {sctp, true, true}, "icmp": {1, true, false}, "icmp6": {icmp6, false, true},
	"igmp": {2, true, false}, "igrp": {9, true, false}, "pim": {103, true, true}, "vrrp": {112, true, false}, "carp": {112, true, false},
	"esp": {50, true, true}, "ah": {51, true, true},
}

var etherTypes = map[string]uint32{"ip": typeIPv4, "ip6": typeIPv6, "arp": typeARP, "rarp": typeRARP}

// network is where the network header begins.
func (p *parser) network() uint32 {
	if p.link == RawIP {
		return 0
	}
	return 14 + 4*p.tags
}

// linkType is true for frames of a type.
func (p *parser) linkType(t uint32) node {
	switch {
	case p.link == Ethernet:
		return equal(p.network()-2, 2, t)
	case t == typeIPv4:
		return field{off: 0, size: 1, mask: 0xf0, op: bpf.JumpEqual, value: 0x40}
	case t == typeIPv6:
		return field{off: 0, size: 1, mask: 0xf0, op: bpf.JumpEqual, value: 0x60}
	}
	return constant(false)
}

// protocol is true for packets with a protocol. Over IPv6 it may be behind a fragment header.
func (p *parser) protocol(c carried) node {
	var list []node
	n := p.network()
	if c.v4 {
		list = append(list, both(p.linkType(typeIPv4), equal(n+9, 1, c.number)))
	}
	if c.v6 {
		list = append(list, both(p.linkType(typeIPv6),
			either(equal(n+6, 1, c.number), both(equal(n+6, 1, fragment), equal(n+40, 1, c.number)))))
	}
	return either(list...)
}

// unfragmented is true for packets of IPv4 that begin with the header of their protocol.
func (p *parser) unfragmented() node {
	return field{off: p.network() + 6, size: 2, op: bpf.JumpBitsNotSet, value: 0x1fff}
}

// abbreviation is a protocol without a value.
func (p *parser) abbreviation(h head) (node, error) {
	if t, ok := etherTypes[h.protocol]; ok {
		return p.linkType(t), nil
	}
	if c, ok := inIP[h.protocol]; ok {
		return p.protocol(c), nil
	}
	return nil, p.unexpected(p.peek(), fmt.Sprintf("must follow %q: src, dst, host, proto, broadcast, multicast or [", h.first.text))
}

// alone reads a condition that has no head.
func (p *parser) alone() (node, error) {
	w := *p.take()
	switch w.text {
	case "broadcast":
		return p.broadcast(head{first: w})
	case "multicast":
		return p.multicast(head{first: w})
	case "vlan":
		return p.vlan(w)
	}
	n := p.take()
	if n.kind != number {
		return nil, p.unexpected(n, fmt.Sprintf("must be a number of bytes after %q", w.text))
	}
	op := bpf.JumpLessOrEqual
	if w.text == "greater" {
		op = bpf.JumpGreaterOrEqual
	}
	return relation{op, &value{kind: length}, &value{kind: literal, k: n.value}}, nil
}

func (p *parser) onEthernet(w *word) error {
	if p.link != Ethernet {
		return w.wrong("is for Ethernet, and these packets begin with IP")
	}
	return nil
}

func (p *parser) broadcast(h head) (node, error) {
	if h.protocol != "" && h.protocol != "ether" {
		return nil, h.first.wrong("only ether may come before broadcast: the netmask of a network is not known")
	}
	return station("dst", [6]byte{255, 255, 255, 255, 255, 255}), p.onEthernet(&h.first)
}

func (p *parser) multicast(h head) (node, error) {
	switch h.protocol {
	case "", "ether":
		return field{off: 0, size: 1, op: bpf.JumpBitsSet, value: 1}, p.onEthernet(&h.first)
	case "ip":
		return both(p.linkType(typeIPv4), field{off: p.network() + 16, size: 1, op: bpf.JumpGreaterOrEqual, value: 224}), nil
	case "ip6":
		return both(p.linkType(typeIPv6), equal(p.network()+24, 1, 255)), nil
	}
	return nil, h.first.wrong("only ether, ip or ip6 may come before multicast")
}

// vlan is true for tagged frames. What follows is looked for behind the tag.
func (p *parser) vlan(w word) (node, error) {
	if err := p.onEthernet(&w); err != nil {
		return nil, err
	}
	n := either(p.linkType(0x8100), p.linkType(0x88a8), p.linkType(0x9100))
	if id := p.peek(); id.kind == number {
		if p.take(); id.value > 4095 {
			return nil, id.wrong("must be a VLAN, 0 to 4095")
		}
		n = both(n, field{off: p.network(), size: 2, mask: 0xfff, op: bpf.JumpEqual, value: id.value})
	}
	p.tags++
	return n, nil
}

// id reads the value of a head.
func (p *parser) id(h head) (node, error) {
	w := p.take()
	p.last = h
	switch h.what {
	case "port", "portrange":
		return p.port(h, w)
	case "proto":
		return p.proto(h, w)
	}
	if h.protocol == "ether" {
		return p.ether(h, w)
	}
	if w.kind == mac {
		return nil, w.wrong("a MAC needs ether in front, such as: ether host " + w.text)
	}
	if h.protocol != "" && etherTypes[h.protocol] == 0 {
		return nil, h.first.wrong("must not come before an address; allowed are ether, ip, ip6, arp and rarp")
	}
	switch w.kind {
	case ipv4, number:
		return p.network4(h, w)
	case ipv6:
		return p.network6(h, w)
	}
	return nil, p.unexpected(w, "must be an address; names are not looked up")
}

// ether is a MAC.
func (p *parser) ether(h head, w *word) (node, error) {
	if w.kind != mac || h.what == "net" {
		return nil, p.unexpected(w, "must be a MAC such as 02:00:00:00:00:01, after ether host, ether src or ether dst")
	}
	return station(h.direction, w.mac), p.onEthernet(w)
}

// station is a MAC at the start of a frame: before all tags.
func station(direction string, m [6]byte) node {
	at := func(off uint32) node {
		return both(equal(off+2, 4, binary.BigEndian.Uint32(m[2:])), equal(off, 2, uint32(binary.BigEndian.Uint16(m[:]))))
	}
	return directed(direction, at(6), at(0))
}

// directed joins what is true for the source and for the destination.
func directed(direction string, src, dst node) node {
	switch direction {
	case "src":
		return src
	case "dst":
		return dst
	case "src and dst":
		return both(src, dst)
	}
	return either(src, dst)
}

// network4 is an address of IPv4, or a network.
func (p *parser) network4(h head, w *word) (node, error) {
	if h.protocol == "ip6" {
		return nil, w.wrong("must be an address of IPv6 after ip6")
	}
	addr, bits := uint32(0), 32
	if w.kind == number {
		if addr, bits = w.value<<24, 8; w.value == 0 || w.value > 255 || strings.HasPrefix(w.text, "0") {
			return nil, w.wrong("must be an address")
		}
	} else {
		b := w.addr.As4()
		addr, bits = binary.BigEndian.Uint32(b[:]), 8*w.parts
	}
	if h.what != "net" && bits < 32 {
		return nil, w.wrong("must be a whole address; a network needs net in front")
	}
	mask := ^uint32(0) << (32 - bits)
	switch next := p.peek(); {
	case !next.is("/", "mask") && h.what == "net" && addr != 0 && addr>>24 == 0:
		return nil, w.wrong("needs a mask, such as /24")
	case next.is("/", "mask") && h.what != "net":
		return nil, next.wrong("only after net")
	case next.is("/", "mask") && w.kind == number:
		return nil, w.wrong("must have all its parts before a mask, such as: net 10.0.0.0/8")
	case p.accept("/"):
		n, err := p.prefix(32)
		if err != nil {
			return nil, err
		}
		mask = ^uint32(0) << (32 - n)
	case p.accept("mask"):
		m := p.take()
		if m.kind != ipv4 || m.parts != 4 {
			return nil, p.unexpected(m, "must be a mask such as 255.255.255.0")
		}
		b := m.addr.As4()
		mask = binary.BigEndian.Uint32(b[:])
	}
	if addr&^mask != 0 {
		return nil, w.wrong("has bits behind its mask that are not 0")
	}
	base := p.network()
	at := func(t, src, dst uint32) node {
		return both(p.linkType(t), directed(h.direction, masked(base+src, addr, mask), masked(base+dst, addr, mask)))
	}
	switch h.protocol {
	case "ip":
		return at(typeIPv4, 12, 16), nil
	case "arp", "rarp":
		return at(etherTypes[h.protocol], 14, 24), nil
	}
	return either(at(typeIPv4, 12, 16), at(typeARP, 14, 24), at(typeRARP, 14, 24)), nil
}

// network6 is an address of IPv6, or a network.
func (p *parser) network6(h head, w *word) (node, error) {
	if h.protocol != "" && h.protocol != "ip6" {
		return nil, w.wrong("must be an address of IPv4 after " + h.protocol)
	}
	bits := uint32(128)
	if next := p.peek(); next.is("/") {
		if p.take(); h.what != "net" {
			return nil, next.wrong("only after net")
		}
		var err error
		if bits, err = p.prefix(128); err != nil {
			return nil, err
		}
	}
	if prefix, err := w.addr.Prefix(int(bits)); err != nil || prefix.Addr() != w.addr {
		return nil, w.wrong("has bits behind its mask that are not 0")
	}
	b := w.addr.As16()
	at := func(off uint32) node {
		n := node(constant(true))
		for i := uint32(0); i < 16; i += 4 {
			mask := uint32(uint64(0xffffffff) << (32 - min(max(int(bits)-int(8*i), 0), 32)))
			n = both(n, masked(off+i, binary.BigEndian.Uint32(b[i:]), mask))
		}
		return n
	}
	return both(p.linkType(typeIPv6), directed(h.direction, at(p.network()+8), at(p.network()+24))), nil
}

// prefix reads the length of a prefix.
func (p *parser) prefix(most uint32) (uint32, error) {
	w := p.take()
	if w.kind != number || w.value > most {
		return 0, p.unexpected(w, fmt.Sprintf("must be a prefix length, 0 to %d", most))
	}
	return w.value, nil
}

// port is a port, or a range of them.
func (p *parser) port(h head, w *word) (node, error) {
	low, high, err := ports(h, w)
	if err != nil {
		return nil, err
	}
	list := []uint32{tcp, udp, sctp}
	if h.protocol != "" {
		c, ok := inIP[h.protocol]
		if !ok || !slices.Contains(list, c.number) {
			return nil, h.first.wrong("must not come before a port; allowed are tcp, udp and sctp")
		}
		list = []uint32{c.number}
	}
	n := p.network()
	of := func(protocol uint32) (a []node) {
		for _, x := range list {
			a = append(a, equal(protocol, 1, x))
		}
		return a
	}
	at := func(f field) node {
		if f.size = 2; low == high && h.what == "port" {
			f.op, f.value = bpf.JumpEqual, low
			return f
		}
		above, below := f, f
		above.op, above.value = bpf.JumpGreaterOrEqual, low
		below.op, below.value = bpf.JumpLessOrEqual, high
		return both(above, below)
	}
	v6 := both(p.linkType(typeIPv6), either(of(n+6)...), directed(h.direction, at(field{off: n + 40}), at(field{off: n + 42})))
	v4 := both(p.linkType(typeIPv4), either(of(n+9)...), p.unfragmented(),
		directed(h.direction, at(field{behind: true, base: n}), at(field{behind: true, base: n, off: 2})))
	return either(v6, v4), nil
}

// ports reads a port or a range.
func ports(h head, w *word) (low, high uint32, err error) {
	const most = 65535
	if w.kind == number && w.value <= most {
		return w.value, w.value, nil
	}
	if h.what == "port" {
		return 0, 0, w.wrong("must be a port, 0 to 65535; names are not looked up")
	}
	a, b, _ := strings.Cut(w.text, "-")
	x, err := strconv.ParseUint(a, 10, 16)
	y, e := strconv.ParseUint(b, 10, 16)
	if err != nil || e != nil || x > y || w.kind != name || a != strconv.Itoa(int(x)) || b != strconv.Itoa(int(y)) {
		return 0, 0, w.wrong("must be two ports such as 80-90, the lower one first; names are not looked up")
	}
	return uint32(x), uint32(y), nil
}

// proto is the number or name of a protocol.
func (p *parser) proto(h head, w *word) (node, error) {
	if h.direction != "" {
		return nil, h.first.wrong("a protocol has no direction")
	}
	switch h.protocol {
	case "ether":
		if t, ok := etherTypes[w.text]; ok && w.kind == escaped {
			return p.linkType(t), nil
		}
		if w.kind != number || w.value <= 1500 || w.value > 0xffff {
			return nil, w.wrong(`must be an EtherType, 1501 to 65535, or \ip, \ip6, \arp or \rarp with the backslash; LLC is not supported`)
		}
		return p.linkType(w.value), nil
	case "", "ip", "ip6":
	default:
		return nil, h.first.wrong("must not come before proto; allowed are ether, ip and ip6")
	}
	c := carried{v4: h.protocol != "ip6", v6: h.protocol != "ip"}
	known, ok := inIP[w.text]
	switch {
	case w.kind == escaped && ok:
		c.number = known.number
	case w.kind == number && w.value <= 255:
		c.number = w.value
	default:
		return nil, w.wrong(`must be a protocol, 0 to 255, or a name with a backslash such as \tcp`)
	}
	return p.protocol(c), nil
}
