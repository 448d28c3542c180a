package snoop

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A message is IGMP or MLD that has been verified. It borrows the frame.
type message struct {
	typ byte
	src [16]byte

	group      group  // of a query, zero for all groups; of reports without records, and leaves
	maxResp    uint32 // of a query, in ms
	robustness uint8  // of a query, 0 = not said
	interval   uint32 // of a query, in seconds; 0 = not said
	suppress   bool   // of a query: timers stay as they are (RFC 3376, section 4.1.5)
	sources    bool   // of a query: it is about some sources of the group
	toAll      bool   // of a query: all hosts get it
	records    []byte // of a report, as many as it says
}

// parse verifies the message of p. Of a hello of PIM nothing else is used.
func (p *packet) parse() (m message, why frame.Reason) {
	if p.family == v4 {
		return p.parse4()
	}
	return p.parse6()
}

// parse4 parses IGMP (RFC 3376, section 4, and section 7.1 for the versions of queries).
func (p *packet) parse4() (m message, why frame.Reason) {
	ip, ok := wire.ParseIPv4(p.ip)
	switch {
	case !ok:
		return m, frame.BadHeader
	case !ip.ChecksumOK():
		return m, frame.BadChecksum
	}
	m.src = wire.Mapped(ip.Src())
	b := ip.Payload()
	switch {
	case len(b) < 4 || ip.Protocol() != protoPIM && len(b) < 8:
		return m, frame.BadHeader
	case wire.Checksum(wire.Sum(b, 0)) != 0:
		return m, frame.BadChecksum
	case ip.Protocol() == protoPIM:
		return m, frame.NotDropped
	}
	m.typ = b[0]
	switch m.typ {
	case igmpQuery:
		m.group = mapped(b[4:8])
		switch {
		case len(b) >= 12:
			m.maxResp = 100 * float8(b[1])
			m.query(b[8:])
		case len(b) != 8:
			return m, frame.BadHeader
		case b[1] == 0: // version 1
			m.maxResp = 10_000
		default:
			m.maxResp = 100 * uint32(b[1])
		}
		return m, m.checkQuery()
	case igmpReport1, igmpReport2, igmpLeave:
		if m.group = mapped(b[4:8]); !m.group.isMulticast() {
			return m, frame.BadHeader
		}
	case igmpReport3:
		m.records = b[8:]
		return m, m.checkRecords(int(binary.BigEndian.Uint16(b[6:])), 4)
	}
	return m, frame.NotDropped
}

// parse6 parses MLD (RFC 2710, section 3; RFC 3810, section 5).
func (p *packet) parse6() (m message, why frame.Reason) {
	ip, ok := wire.ParseIPv6(p.ip)
	if !ok || p.message > len(ip) {
		return m, frame.BadHeader
	}
	m.src = ip.Src()
	b, protocol := ip[p.message:], uint8(wire.ProtoICMPv6)
	if ip.NextHeader() == protoPIM {
		protocol = protoPIM
	}
	switch {
	case len(b) < 4 || protocol != protoPIM && len(b) < 8:
		return m, frame.BadHeader
	case wire.Checksum(wire.Sum(b, wire.Pseudo6(ip, protocol, len(b)))) != 0:
		return m, frame.BadChecksum
	case protocol == protoPIM:
		return m, frame.NotDropped
	}
	m.typ = b[0]
	linkLocal := m.src[0] == 0xfe && m.src[1]&0xc0 == 0x80
	switch {
	case ip[7] != 1 || !linkLocal && (p.kind == query || m.src != [16]byte{}): // hop limit (RFC 3810, section 6.2), source (sections 5.1.14 and 5.2.13)
		return m, frame.BadHeader
	case m.typ == mldRouterAd:
	case m.typ == mldReport2:
		m.records = b[8:]
		return m, m.checkRecords(int(binary.BigEndian.Uint16(b[6:])), 16)
	case len(b) < 24:
		return m, frame.BadHeader
	default:
		m.group = group(b[8:24])
		if m.group[0] != 0xff && (p.kind == report || m.group != group{}) {
			return m, frame.BadHeader
		}
		if p.kind == query {
			m.maxResp = float16(binary.BigEndian.Uint16(b[4:]))
			switch {
			case len(b) >= 28:
				m.query(b[24:])
			case len(b) != 24:
				return m, frame.BadHeader
			}
			return m, m.checkQuery()
		}
	}
	return m, frame.NotDropped
}

// query reads what queries of the newer versions have behind the group.
func (m *message) query(b []byte) {
	m.suppress, m.robustness, m.interval = b[0]&8 != 0, b[0]&7, float8(b[1])
	m.sources = binary.BigEndian.Uint16(b[2:]) != 0
}

// checkQuery verifies the group of a query: one, or none for all.
func (m *message) checkQuery() frame.Reason {
	if m.general() || m.group.isMulticast() {
		return frame.NotDropped
	}
	return frame.BadHeader
}

// general reports whether a query is about all groups.
func (m *message) general() bool { return m.group == group{} || m.group == mapped([]byte{0, 0, 0, 0}) }

// checkRecords cuts records off behind the n-th. Addresses have size bytes.
func (m *message) checkRecords(n, size int) frame.Reason {
	b := m.records
	for range n {
		if len(b) < 4+size {
			return frame.BadHeader
		}
		length := recordLen(b, size)
		if len(b) < length {
			return frame.BadHeader
		}
		b = b[length:]
	}
	m.records = m.records[:len(m.records)-len(b)]
	return frame.NotDropped
}

// recordLen returns the length of the first record: header, group, sources, auxiliary data.
func recordLen(b []byte, size int) int {
	return 4 + size + size*int(binary.BigEndian.Uint16(b[2:])) + 4*int(b[1])
}

// Types of records (RFC 3376, section 4.2.12). BLOCK says nothing about the group as a whole, and unknown types are ignored.
const (
	modeIsInclude = 1
	modeIsExclude = 2
	toInclude     = 3
	toExclude     = 4
	allow         = 5
)

// changes calls f for each group that the message is about.
func (m *message) changes(f func(g group, leaves bool)) {
	switch m.typ {
	case igmpReport1, igmpReport2, mldReport1:
		f(m.group, false)
	case igmpLeave, mldDone:
		f(m.group, true)
	case igmpReport3, mldReport2:
		size := 4
		if m.typ == mldReport2 {
			size = 16
		}
		for b := m.records; len(b) > 0; b = b[recordLen(b, size):] {
			g, sources := mapped(b[4:4+size]), binary.BigEndian.Uint16(b[2:]) != 0
			if !g.isMulticast() || size == 16 && g[0] != 0xff {
				continue
			}
			switch b[0] {
			case modeIsExclude, toExclude:
				f(g, false)
			case modeIsInclude, allow:
				if sources {
					f(g, false)
				}
			case toInclude:
				f(g, !sources)
			}
		}
	}
}

// mapped returns an address of 4 or 16 bytes as a group.
func mapped(b []byte) group {
	if len(b) == 4 {
		return wire.Mapped([4]byte(b))
	}
	return group(b)
}

// float8 decodes a Max Resp Code or QQIC (RFC 3376, sections 4.1.1 and 4.1.7).
func float8(c byte) uint32 {
	if c < 128 {
		return uint32(c)
	}
	return uint32(c&0xf|0x10) << (c>>4&7 + 3)
}

// putFloat8 encodes the largest number that is not above n.
func putFloat8(n uint32) byte {
	if n < 128 {
		return byte(n)
	}
	c := byte(255)
	for float8(c) > n {
		c--
	}
	return c
}

// float16 decodes a Maximum Response Code (RFC 3810, section 5.1.3).
func float16(c uint16) uint32 {
	if c < 1<<15 {
		return uint32(c)
	}
	return uint32(c&0xfff|0x1000) << (c>>12&7 + 3)
}
